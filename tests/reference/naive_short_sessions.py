"""`short-sessions` on plain lists of (user, query, time, row): sets, loops and nothing clever."""

from __future__ import annotations

import re

DAY = 86_400


def terms_of(query):
    return re.findall(r"[^\W_]+", query.lower())


def released(searches, *, k, gap, most, rare="drop", batch="day", days=0):
    """Give the sessions that leave, by day: sets of tuples of (row, shown query, untouched), in order.

    Times are in seconds, `gap` too; searches come in the order in which they were made.
    """
    left = {}
    for day in sorted({time // DAY for _, _, time, _ in searches}):
        today = [one for one in searches if one[2] // DAY == day]
        first = day - days + 1 if days else 0
        so_far = searches if batch == "log" else [one for one in searches if first <= one[2] // DAY <= day]
        here = set()
        for user in {one[0] for one in today}:
            for session in _sessions([one for one in today if one[0] == user], gap):
                shown = [(row, *_shown(query, so_far, k, rare)) for _, query, _, row in session]
                shown = [one for one in shown if one[1] is not None]
                here |= {tuple(shown[start : start + most]) for start in range(0, len(shown), most)}
        left[day] = here
    return left


def _sessions(searches, gap):
    sessions, last = [], None
    for one in sorted(searches, key=lambda one: one[2]):
        if last is None or one[2] - last > gap:
            sessions.append([])
        sessions[-1].append(one)
        last = one[2]
    return sessions


def _shown(query, so_far, k, rare):
    if len({user for user, other, *_ in so_far if other == query}) >= k:
        return query, True
    if rare == "drop":
        return None, False
    kept = [
        term
        for term in terms_of(query)
        if len({user for user, other, *_ in so_far if term in terms_of(other)}) >= k
    ]
    return (" ".join(kept) or None), False
