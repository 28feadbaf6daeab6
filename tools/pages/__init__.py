"""The generated pages of the reference, one a module; each has `page() -> str`."""
