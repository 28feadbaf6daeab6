"""A crowd of friends who submit each other's queries (paper 003, chapter 4): simulated, and for real."""
