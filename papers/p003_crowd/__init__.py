"""Paper 003, chapter 4: a crowd of friends who submit each other's queries."""
