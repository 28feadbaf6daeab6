"""What all studies share."""
