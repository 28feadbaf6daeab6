"""Programs that protect one searcher, without the help of a search engine: a crowd, and dummy queries."""
