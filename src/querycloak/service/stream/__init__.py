"""Applies entries of the write-ahead log: the stream, the click join, the classifier, the worker thread."""
