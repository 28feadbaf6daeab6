"""Algorithm 2 of paper 000: undo a swap by doing it again, with a rule that says who wrote what."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from querycloak.attacks.base import AssumedSettings, Attack, AttackerView, Attribution
from querycloak.attacks.release_order import categories_at, replay
from querycloak.dictionary import Dictionary
from querycloak.kernels import siphash
from querycloak.kernels.order import group
from querycloak.settings import setting


class CategoryReplay(Attack):
    """Replays a release as if it were a log, and frees records with guessed authors instead of labels.

    Per category, cut at the attacker's level, records and labels wait until more than k different
    labels are there; then a waiting record, chosen at random, gets one of the waiting labels by the
    rule of the attack. Where the release is known never to show the author (`swap`), the record's own label
    is left out. Records that still wait at the end get what is left in their category by the same rule.
    """

    game = "attribution"
    columns = frozenset({"user", "category"})
    #: How the kernel chooses a user.
    rule: ClassVar[int]

    @dataclass(frozen=True, kw_only=True)
    class Settings(AssumedSettings):
        """Settings of the three attacks of paper 000."""

        own: str = setting(
            "auto",
            choices=("auto", "never", "maybe"),
            help="whether a label may be its record's author; auto: as the method of the release states",
        )
        seed: int = setting(0, at_least=0, help="what the attack's draws start from")

    def guess(self, view: AttackerView) -> Attribution:
        """Replay the release and guess an author for each row that has a label."""
        chosen: Any = self.settings
        k, level = view.assumed_k(chosen.k), view.assumed_level(chosen.level, 1)
        barring = chosen.own == "never" or (chosen.own == "auto" and view.never_author)
        labels = Dictionary()
        user = labels.encode(view.release["user"])
        rows = np.flatnonzero(user >= 0)
        category, categories = categories_at(view.release, level)
        order, starts = group(category[rows], categories)
        key = siphash.key_words(hashlib.blake2b(f"attack {chosen.seed}".encode(), digest_size=16).digest())
        people = int(user.max(initial=-1)) + 1
        guessed, linked = replay.relink(self.rule, k, barring, *key, order, starts, user[rows], people)
        every = np.full(user.size, replay.NOBODY, np.int64)
        every[rows] = guessed
        details = {"attacker_k": k, "attacker_level": level, "own_label_excluded": barring}
        return Attribution(labels.decode(every), details | {"linked_before_the_end": int(linked)})


class LinkRandom(CategoryReplay):
    """Attributes a record to a label that waits in its category, drawn uniformly."""

    name = "link-random"
    rule = replay.RANDOM


class LinkFrequent(CategoryReplay):
    """Attributes a record to the label that waits most often in its category; of equals, the first seen."""

    name = "link-frequent"
    rule = replay.FREQUENT


class LinkProfile(CategoryReplay):
    """Attributes a record to the label with the most records in its category, times how often it waits."""

    name = "link-profile"
    rule = replay.PROFILE
