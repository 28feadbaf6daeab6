"""Paper 003, chapter 5: microaggregation of histories, and removals."""
