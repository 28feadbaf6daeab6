"""`link-random`: record linkage 1 of paper 000."""

from __future__ import annotations

from querycloak.attacks.algorithm2 import Algorithm2
from querycloak.kernels import relink


class LinkRandom(Algorithm2):
    """Gives a record to any of the labels that wait in its category, each waiting one alike."""

    name = "link-random"
    rule = relink.RANDOM
