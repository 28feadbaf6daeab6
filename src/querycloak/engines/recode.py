"""Makes the dictionaries of texts anew with what is still in use: a service that never ends must forget."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from querycloak.dictionary import Dictionary, Texts
from querycloak.kernels.distinct import distinct
from querycloak.log import NOTHING
from querycloak.protector import Protector, State

#: Columns whose texts are forgotten; users are for good, and so are their codes.
_FORGOTTEN = ("query", "url", "category")


def recoded(state: State, stages: Iterable[Protector], old: Texts, new: Texts) -> State:
    """Give a pipeline's snapshot in the codes of `new`, which gets the texts that the snapshot still needs.

    `new` must be empty. The stages say which arrays hold codes (`Protector.coded`); a pipeline that is to
    carry on from the result has to be built on `new`, since methods keep what they know by code.
    """
    _take_over(old.user, new.user)
    changed = dict(state)
    column_of = {
        f"{place}/{name}": c for place, stage in enumerate(stages) for name, c in stage.coded.items()
    }
    for column in _FORGOTTEN:
        arrays = {name: state[name] for name in state if column_of.get(name) == column}
        changed |= _moved(arrays, getattr(old, column), getattr(new, column))
    return changed


def outgrown(old: Texts, new: Texts, spare: int) -> bool:
    """Say whether most texts of a column, and more than some to spare, are in nobody's use any more."""
    return any(len(getattr(old, one)) > 2 * len(getattr(new, one)) + spare for one in _FORGOTTEN)


def _take_over(old: Dictionary, new: Dictionary) -> None:
    """Give all texts of a dictionary the same codes in another one."""
    codes = new.encode(old.texts())
    if not np.array_equal(codes, np.arange(codes.size)):
        raise ValueError("codes can be taken over by an empty dictionary only")


def _moved(arrays: State, old: Dictionary, new: Dictionary) -> State:
    """Put the texts behind these codes into the new dictionary; give the arrays in its codes."""
    used = distinct(np.concatenate([np.empty(0, np.int64), *arrays.values()]))
    used = used[used >= 0]
    fresh = np.append(new.encode(old.decode(used)), NOTHING)
    return {
        name: fresh[np.where(codes >= 0, np.searchsorted(used, codes), used.size)]
        for name, codes in arrays.items()
    }
