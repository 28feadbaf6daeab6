"""Golden outputs: what commands write and print for fixed seeds, stored, so that no change is unnoticed."""
