"""For tests, and for authors of plugins: made-up logs, conformance checks, hypothesis strategies."""
