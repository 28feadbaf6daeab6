"""Paper 004: cover traffic, and an attack that learns to recognise it (`link-learned`)."""
