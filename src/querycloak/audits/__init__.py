"""Parts that audits of several methods use: evidence, lineage, and counts of users."""
