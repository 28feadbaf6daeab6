"""Every defence against every attack on one log: planned, run in parallel, carried on after a stop, told."""
