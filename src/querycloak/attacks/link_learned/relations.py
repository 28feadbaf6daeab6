"""How pairs of searches relate: the 27 relations of paper 004, Table 3, under its names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from querycloak.attacks.link_learned import relations_kernel as kernel
from querycloak.attacks.link_learned.features import Events
from querycloak.kernels.threads import cores, each
from querycloak.log import IntArray

#: The relations of Table 3, in its order. D: a difference. S: a similarity.
NAMES: tuple[str, ...] = (
    "D_Time",
    "S_WeekWeekend",
    "S_SameDaytime",
    "D_NumberClicks",
    "S_QueryTerms",
    "S_LandPagTerms1",
    "S_LandPagTerms2",
    "S_LandPagTerms3",
    "D_QueryTermLen",
    "D_QueryCharacterLen",
    "S_AdultTerms1",
    "S_AdultTerms2",
    "S_AdultTerms3",
    "S_LandPagAdultTerms",
    "D_SpellingErrors",
    "S_SpellingError1",
    "S_SpellingError2",
    "S_Level2Cat",
    "S_Level3Cat",
    "D_TreeDistance",
    "S_City",
    "S_Country",
    "S_Location1",
    "S_Location2",
    "S_UrlTerms",
    "D_QueryTermWeight",
    "D_EditDistance",
)
#: Pairs that one thread takes at a time.
_PIECE = 1 << 17


def relate(
    events: Events, first: IntArray, second: IntArray, threads: int | None = None
) -> npt.NDArray[np.float32]:
    """Return a row of relations for each pair of events, nan where one is not known.

    Pairs that come in runs with the same first event are the cheapest. `S_LandPagTerms2` alone depends on
    which of two is the first.
    """
    out = np.empty((first.size, kernel.RELATIONS), np.float32)
    arrays = events.arrays
    sizes = np.array(
        [len(events.terms.names), len(events.landing.names), len(events.urls.names), 0], np.int64
    )
    sizes[3] = events.letters.max(initial=-1) + 1

    def some(at: int) -> None:
        piece = slice(at, at + _PIECE)
        kernel.relate(arrays, sizes, first[piece], second[piece], out[piece])

    each(some, range(0, first.size, _PIECE), min(cores(threads), first.size // _PIECE + 1))
    return out
