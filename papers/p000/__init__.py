"""Paper 000: swapping users within categories (`swap`, `cohort`)."""
