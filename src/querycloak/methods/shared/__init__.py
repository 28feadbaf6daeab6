"""Code that two or more methods use."""
