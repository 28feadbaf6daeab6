"""Compiled loops over integer arrays: no texts, no files, no policy."""
