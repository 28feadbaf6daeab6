"""Paper 002: replacing queries by the exponential mechanism (`dp-semantic`)."""
