"""Cover by fake queries (paper 004): four ways to make them, in a file and live."""
