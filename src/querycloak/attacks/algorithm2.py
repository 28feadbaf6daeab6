"""Algorithm 2 of paper 000: undo a swap by doing it again, with a rule that says who wrote what."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.bounds import stated
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.protocol import Attack, AttackerView, Attribution
from querycloak.dictionary import Dictionary, Paths
from querycloak.kernels import relink, siphash
from querycloak.settings import setting

IntArray = npt.NDArray[np.int64]


class Algorithm2(Attack):
    """Replays a release as if it were a log, and frees records with guessed authors instead of labels.

    Per category, cut at the attacker's level, records and labels wait until more than k different
    labels are there; then a waiting record, chosen at random, gets one of the waiting labels by the
    rule of the attack. Where the release is known never to show the author (`swap`), the record's own label
    is left out. Records that still wait at the end get what is left in their category by the same rule.
    """

    game = "attribution"
    needs = frozenset({"user", "category"})
    #: How the kernel chooses a user.
    rule: ClassVar[int]

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of the three attacks of paper 000."""

        k: int = setting(0, kind=int, at_least=0, help="the attacker's k; 0 takes the certificate's")
        level: int = setting(
            0, kind=int, at_least=0, at_most=13, help="the attacker's level; 0 takes the certificate's"
        )
        own: str = setting(
            "auto",
            kind=str,
            choices=("auto", "never", "maybe"),
            help="whether a label may be its record's author; auto: never, unless `cohort` made the release",
        )
        seed: int = setting(0, kind=int, at_least=0, help="what the attack's draws start from")

    def guess(self, view: AttackerView) -> Attribution:
        """Replay the release and guess an author for each row that has a label."""
        k, level, barring = self._parameters(view)
        labels = Dictionary()
        user = labels.encode(view.release["user"])
        rows = np.flatnonzero(user >= 0)
        category, categories = _categories(view.release["category"], level)
        order, starts = relink.group(category[rows], categories)
        guessed, linked = relink.relink(
            self.rule,
            k,
            barring,
            *_key(self.settings),
            order,
            starts,
            user[rows],
            int(user.max(initial=-1)) + 1,
        )
        every = np.full(user.size, relink.NOBODY, np.int64)
        every[rows] = guessed
        details = {"attacker_k": k, "attacker_level": level, "own_label_excluded": barring}
        return Attribution(labels.decode(every), details | {"linked_before_the_end": int(linked)})

    def _parameters(self, view: AttackerView) -> tuple[int, int, bool]:
        chosen: Any = self.settings
        k = chosen.k or stated(view, "k")
        if not isinstance(k, int):
            raise NotApplicable("the certificate states no k, and none was set")
        level = chosen.level or stated(view, "level")
        barring = chosen.own == "never" or (chosen.own == "auto" and view.method() != "cohort")
        return k, level if isinstance(level, int) else 1, barring


def _categories(paths: pl.Series, level: int) -> tuple[IntArray, int]:
    """Number the categories of a level from 0; rows without one share a number of their own."""
    texts = Paths()
    codes = texts.at_level(texts.encode(paths), level) + 1
    return codes, int(codes.max(initial=0)) + 1


def _key(settings: Any) -> tuple[np.uint64, np.uint64]:
    return siphash.key_words(hashlib.blake2b(f"attack {settings.seed}".encode(), digest_size=16).digest())
