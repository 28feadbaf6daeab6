"""Planted faults: small changes of the code that named tests must notice."""
