"""What runs at the searcher's side: cover for her queries before a search engine sees them."""
