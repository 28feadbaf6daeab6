"""Engines drive methods over a log; they contain no protection algorithm."""
