"""The crowd (paper 003, chapter 4): friends forward and submit each other's queries.

`Member` decides without input or output; `peer` drives it over TLS. `simulator` runs the same rules,
compiled, for millions of members.
"""
