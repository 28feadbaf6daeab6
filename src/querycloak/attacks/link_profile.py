"""`link-profile`: record linkage 3 of paper 000."""

from __future__ import annotations

from querycloak.attacks.algorithm2 import Algorithm2
from querycloak.kernels import relink


class LinkProfile(Algorithm2):
    """Gives a record to the label with the most records in its category so far, times how often it waits."""

    name = "link-profile"
    rule = relink.PROFILE
