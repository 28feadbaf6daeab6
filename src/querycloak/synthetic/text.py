"""From rows of pieces to strings: look the pieces up, join them, slip on a key now and then."""

from __future__ import annotations

import numpy as np
import polars as pl

from querycloak.synthetic.block import Block
from querycloak.synthetic.offers import EMPTY, SLOTS
from querycloak.synthetic.people import People
from querycloak.synthetic.private import private_texts
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.streams import IntArray
from querycloak.synthetic.subjects import PRIVATE, Subjects
from querycloak.synthetic.wording import Wording
from querycloak.synthetic.world import World

_NEIGHBOURS = dict(
    zip("abcdefghijklmnopqrstuvwxyz", "snvfrghjoklknmpowtdyibecux", strict=True)
)  # the key beside it


def write_queries(
    block: Block, people: People, plan: Plan, subjects: Subjects, wording: Wording
) -> pl.Series:
    """Spell out the query of every search; those that share a text are spelt once."""
    spelt = np.flatnonzero(plan.copy_of == np.arange(plan.user.size))
    texts = _join(wording.slots[spelt], block.world)
    secret = spelt[subjects.kind[spelt] == PRIVATE]
    written = private_texts(block, people, plan, subjects, secret)
    texts = _replace(texts, np.searchsorted(spelt, secret), written)
    slipped = np.flatnonzero(wording.slip[spelt])
    pairs = zip(texts.gather(slipped).to_list(), wording.slip[spelt][slipped].tolist(), strict=True)
    texts = _replace(texts, slipped, [mistype(text, number) for text, number in pairs])
    return texts.gather(np.searchsorted(spelt, plan.copy_of))


def _join(slots: IntArray, world: World) -> pl.Series:
    """Join the pieces of each row with blanks; a piece that repeats the head is left out."""
    slots = slots.copy()
    slots[:, 2:4][slots[:, 2:4] == slots[:, 1:2]] = EMPTY
    columns = [
        world.pieces.gather(pl.Series(slots[:, i]).replace(EMPTY, None)).alias(str(i)) for i in range(SLOTS)
    ]
    frame = pl.DataFrame(columns)
    return frame.select(pl.concat_str(pl.all(), separator=" ", ignore_nulls=True).alias("query"))["query"]


def _replace(texts: pl.Series, where: IntArray, new: list[str]) -> pl.Series:
    return texts.scatter(where, pl.Series(new, dtype=pl.String)) if new else texts


def mistype(text: str, number: int) -> str:
    """Make the typing error that a number stands for: a letter lost, doubled, swapped or missed."""
    if len(text) < 4:
        return text
    action, place = number % 4, 1 + number // 4 % (len(text) - 2)
    before, letter, after = text[:place], text[place], text[place + 1 :]
    if " " in (letter, after[0]):
        return before + after if letter == " " else before + letter + letter + after
    return (
        before
        + (after, letter + letter + after, after[0] + letter + after[1:], _near(letter) + after)[action]
    )


def _near(letter: str) -> str:
    return _NEIGHBOURS.get(letter, letter)
