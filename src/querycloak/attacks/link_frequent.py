"""`link-frequent`: record linkage 2 of paper 000."""

from __future__ import annotations

from querycloak.attacks.algorithm2 import Algorithm2
from querycloak.kernels import relink


class LinkFrequent(Algorithm2):
    """Gives a record to the label that waits most often in its category; of equals, to the one seen first."""

    name = "link-frequent"
    rule = relink.FREQUENT
