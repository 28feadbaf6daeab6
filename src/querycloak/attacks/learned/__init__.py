"""Linkage that is learned: features of searches, relations of pairs, boosted trees, and privacy numbers."""
