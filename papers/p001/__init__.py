"""Paper 001: (k,m)-anonymity by deleting terms (`km`)."""
