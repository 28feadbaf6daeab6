"""The service's face: HTTP in and out, tokens, limits, metrics and a page; no logic of its own."""
