"""A made-up search log that behaves like AOL 2006: invented people, real-looking habits.

Nobody in it exists: names, towns, sites, addresses and numbers are put together from syllables and
digits. `docs/explanation/made-up-log.md` sets its statistics beside the published ones.
"""

from querycloak.synthetic.marketing import marketing
from querycloak.synthetic.whole import generate, pieces

__all__ = ["generate", "marketing", "pieces"]
