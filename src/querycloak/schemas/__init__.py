"""Versioned JSON schemas of what QueryCloak writes."""
