"""An audit of (k,m)-anonymity from the release alone: every combination is listed, sorted and counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults
from querycloak.guarantee import Audit, NotCheckable
from querycloak.log import Flags, IntArray

_TERM = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*"
#: Combinations are listed for some leading terms at a time, so that about so many are in memory at once.
_AT_ONCE = 20_000_000


def _terms_of(shown: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return each history's terms once: `history, term`."""
    parts = [
        shown.select("history", term=pl.col(name).str.to_lowercase().str.extract_all(_TERM)).explode("term")
        for name in columns
    ]
    return pl.concat(parts).drop_nulls("term").unique()


def _windows(time: pl.Expr, window: str) -> pl.Expr:
    """Name the window of each moment; what has no time has a window of its own."""
    if window == "none":
        return pl.lit("")
    return time.dt.truncate("1d" if window == "day" else "1w").cast(pl.String).fill_null("")


def rare(
    history: IntArray, term: IntArray, group: IntArray, k: int, m: int, person: IntArray | None = None
) -> Flags:
    """Return which entries stand in a combination of at most m terms that fewer than k of a group have.

    An entry is a term of a history, each once; a history belongs to one group. With `person`, people are
    counted instead of histories.
    """
    order = np.lexsort((term, history))
    h, t, g = history[order], term[order], group[order]
    who = None if person is None else person[order]
    end = np.searchsorted(h, h, side="right")
    bad = np.zeros(h.size, np.bool_)
    for first, name in _leads(t, g, end - np.arange(h.size) - 1, m):
        _count(name, first[:, None], end, t, who, k, m, bad)
    result = np.empty_like(bad)
    result[order] = bad
    return result


def _leads(t: IntArray, g: IntArray, behind: IntArray, m: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield entries by the combination of one term that they are, as many as fit into memory at a time."""
    if not t.size:
        return
    by_lead = np.lexsort((t, g))
    new = np.ones(t.size, np.bool_)
    new[1:] = (np.diff(t[by_lead]) != 0) | (np.diff(g[by_lead]) != 0)
    name, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    load = np.add.reduceat(behind[by_lead].astype(np.float64) ** max(m - 1, 1), starts)
    chunk = (np.cumsum(load) // _AT_ONCE).astype(np.int64)
    cuts = starts[np.flatnonzero(np.diff(chunk, prepend=-1))]
    for start, stop in pairwise([*cuts.tolist(), t.size]):
        yield by_lead[start:stop], name[start:stop] - name[start]


def _count(
    name: IntArray,
    paths: IntArray,
    end: IntArray,
    t: IntArray,
    who: IntArray | None,
    k: int,
    m: int,
    bad: Flags,
) -> None:
    """Count combinations by name, mark the rare ones, and go on with all that are one term longer."""
    if not name.size:
        return
    few = _holders(name, None if who is None else who[paths[:, 0]])[name] < k
    bad[paths[few].ravel()] = True
    if paths.shape[1] == m:
        return
    tail = paths[:, -1]
    more = end[tail] - tail - 1
    which = np.repeat(np.arange(tail.size), more)
    following = tail[which] + 1 + np.arange(which.size) - np.repeat(np.cumsum(more) - more, more)
    names = _dense(name[which], t[following])
    _count(names, np.column_stack([paths[which], following]), end, t, who, k, m, bad)


def _dense(*columns: IntArray) -> IntArray:
    """Number the different combinations of values, from nought."""
    table = pl.DataFrame([pl.Series(str(i), column) for i, column in enumerate(columns)])
    return table.select(pl.struct(pl.all()).rank("dense")).to_series().cast(pl.Int64).to_numpy() - 1


def _holders(name: IntArray, who: IntArray | None) -> IntArray:
    if who is None:
        return np.bincount(name)
    different = pl.DataFrame({"name": name, "who": who}).unique()
    return np.bincount(different["name"].to_numpy())


def _histories(shown: pl.DataFrame, urls: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Group released rows into histories, by label and `window`; return rows, and terms of histories."""
    shown = shown.with_columns(history=pl.struct("user", "window").rank("dense").cast(pl.Int64))
    columns = ["query", *(["url"] if urls and "url" in shown.columns else [])]
    windows = shown.select("history", pl.col("window").rank("dense").cast(pl.Int64)).unique()
    terms = _terms_of(shown, columns).join(windows, on="history", how="left")
    return shown, terms.with_columns(pl.col("term").rank("dense").cast(pl.Int64))


def _faults_of(shown: pl.DataFrame, terms: pl.DataFrame, bad: Flags, holders: str) -> str:
    torn = terms.filter(pl.Series(bad, dtype=pl.Boolean))
    rows = shown.lazy().join(torn.lazy(), on="history", how="semi")
    return faults(rows, f"belong to a history with a combination that fewer than {holders} have")


def _check(k: int, m: int, window: str, urls: bool, evidence: Evidence) -> str:
    text = evidence.text().collect()
    if window != "none" and ("time" not in text.columns or text["time"].null_count() == text.height > 0):
        raise evidence.undecided(
            f"the release has no times, so one {window} cannot be distinguished from another"
        )
    shown, terms = _histories(text.with_columns(window=_windows(pl.col("time"), window)), urls)
    history, term, group = (terms[name].to_numpy() for name in ("history", "term", "window"))
    return _faults_of(shown, terms, rare(history, term, group, k, m), f"{k} histories")


def _check_people(k: int, m: int, window: str, urls: bool, evidence: Evidence) -> str:
    """Count people behind labels, in the windows of the original's times; labels of one person count once."""
    truth = evidence.traced.select("released_row", "place", person="original_user").collect()
    text = evidence.text().collect().join(truth, on="released_row", how="left")
    if window != "none":
        if "time" not in evidence.asked.columns:
            raise NotCheckable("the original has no times")
        text = text.with_columns(time=evidence.asked["time"].gather(text["place"].to_numpy()))
    shown, terms = _histories(text.with_columns(window=_windows(pl.col("time"), window)), urls)
    owners = shown.group_by("history").agg(pl.col("person").first(), many=pl.col("person").n_unique())
    if mixed := owners.filter(pl.col("many") > 1).height:
        return f"{mixed:,} labels stand for more than one user"
    terms = terms.join(owners, on="history", how="left")
    history, term, group, person = (terms[n].to_numpy() for n in ("history", "term", "window", "person"))
    return _faults_of(shown, terms, rare(history, term, group, k, m, person), f"{k} users")


def audits(k: int, m: int, window: str, *, urls: bool) -> tuple[Audit, ...]:
    """Return the audits of `km`: by labels, which the release shows, and by the people behind them."""
    what = f"every combination of at most {m} terms of a history is in at least {k} histories"
    within = "" if window == "none" else f" of the same {window}"
    users = f"these are histories of at least {k} users"
    return (
        Audit(what + within, lambda e: _check(k, m, window, urls, e)),
        Audit(users, lambda e: _check_people(k, m, window, urls, e), True),
    )
