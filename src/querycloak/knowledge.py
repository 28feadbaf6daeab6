"""What an attacker is assumed to know beside the release, and the games that attacks play."""

from __future__ import annotations

from enum import Flag, StrEnum, auto


class Knowledge(Flag):
    """Auxiliary information of an attacker. Attackers nest: `a in b` holds if `b` knows all that `a` knows.

    Every attacker has the release and the public part of its certificate, so `RELEASE` is empty.
    """

    RELEASE = 0
    #: How often each query is asked by the public.
    FREQUENCIES = auto()
    #: How many searches each user has.
    VOLUMES = auto()
    #: The hours in which a target searched.
    HOURS = auto()
    #: The texts of some searches of a target.
    TEXTS = auto()
    #: All other searches of a target.
    REST = auto()
    #: Records of users who are not targets, with their authors.
    OTHERS = auto()
    #: Other releases of the same users.
    RELEASES = auto()
    SEARCHES = HOURS | TEXTS
    HISTORIES = FREQUENCIES | VOLUMES | SEARCHES | REST
    EVERYTHING = HISTORIES | OTHERS | RELEASES


class Game(StrEnum):
    """What an attack tries to find out."""

    #: The author of a record.
    ATTRIBUTION = "attribution"
    #: Whether two records have the same author.
    LINKAGE = "linkage"
    #: The label or records of a user about whom something is known.
    IDENTIFICATION = "identification"
    #: An interest of a user, membership in the log, or the original concept of a record.
    INFERENCE = "inference"
    #: No attack: a baseline that shows whether scoring works.
    CONTROL = "control"
