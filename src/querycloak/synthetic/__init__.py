"""A synthetic search log modelled on AOL 2006.

Names, towns, sites, addresses and numbers are composed of invented syllables and digits.
`docs/explanation/made-up-log.md` compares its statistics with the published ones.
"""

from querycloak.synthetic.generator import generate, pieces
from querycloak.synthetic.marketing import marketing

__all__ = ["generate", "marketing", "pieces"]
