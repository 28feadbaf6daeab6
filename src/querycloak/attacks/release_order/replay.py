"""Algorithm 2 on integers: replays a release and gives each record back to a likely author.

Categories do not touch each other, so they are replayed one after the other: one bag of users and one
list of waiting records serve all of them, and what is known of a user lies in an array by user. A bag
holds at most k + 1 different users; choosing one looks at each, so a record costs O(k) at worst.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.siphash import siphash, uniform_below

#: How a user is chosen: any token alike, the most tokens, the most tokens times records issued so far.
RANDOM, FREQUENT, PROFILE = range(3)
#: No user to choose, no label to exclude.
NOBODY = -1
#: Columns of a bag: who, how many tokens, and what a token weighs.
WHO, MANY, WEIGHT = range(3)


@njit(inline="always")
def _enter(user, weight, bag, size, place):  # type: ignore[no-untyped-def]
    """Add a token to the bag; return the number of distinct users in it."""
    p = place[user]
    if p < 0:
        p = size
        bag[p, WHO], bag[p, MANY], place[user] = user, 0, p
        size += 1
    bag[p, MANY] += 1
    bag[p, WEIGHT] = weight
    return size


@njit(inline="always")
def _leave(p, bag, size, place):  # type: ignore[no-untyped-def]
    """Take a token out of the bag; the last user moves into a place that falls empty."""
    bag[p, MANY] -= 1
    if bag[p, MANY] == 0:
        size -= 1
        place[bag[p, WHO]] = -1
        if p < size:
            for column in range(3):
                bag[p, column] = bag[size, column]
            place[bag[p, WHO]] = p
    return size


@njit(cache=True, nogil=True)
def _any_token(word, tokens, barred, bag, size, place):  # type: ignore[no-untyped-def]
    """Choose a token that is not the barred user's, each with the same chance."""
    own = place[barred] if barred >= 0 else -1
    left = tokens - (bag[own, MANY] if own >= 0 else 0)
    if left == 0:
        return NOBODY
    wanted = uniform_below(word, left)
    for p in range(size):
        if p != own:
            wanted -= bag[p, MANY]
            if wanted < 0:
                return p
    return NOBODY


@njit(cache=True, nogil=True)
def _best_user(barred, bag, size):  # type: ignore[no-untyped-def]
    """Choose the user with the most tokens times weight; of equals, the one first seen in the release."""
    best, most = NOBODY, np.int64(0)
    for p in range(size):
        score = bag[p, MANY] * bag[p, WEIGHT]
        better = score > most or (score == most and bag[p, WHO] < bag[best, WHO])
        if better and bag[p, WHO] != barred:
            best, most = p, score
    return best


@njit(cache=True, nogil=True)
def _busiest(rows, user, issued):  # type: ignore[no-untyped-def]
    """Find the two users who issued most in a category; of equals, the ones first seen."""
    first, second = np.int64(NOBODY), np.int64(NOBODY)
    for row in rows:
        u = user[row]
        if u in (first, second):
            continue
        if first < 0 or issued[u] > issued[first] or (issued[u] == issued[first] and u < first):
            first, second = u, first
        elif second < 0 or issued[u] > issued[second] or (issued[u] == issued[second] and u < second):
            second = u
    return first, second


@njit(cache=True, nogil=True)
def _relink_one(  # type: ignore[no-untyped-def]
    rule, k, barring, k0, k1, c, rows, user, guess, bag, waiting, place, issued
):  # fmt: skip
    """Replay one category; give how many records were linked before its end."""
    size, held, drawn, linked = 0, 0, np.uint64(0), 0
    first, second = np.int64(NOBODY), np.int64(NOBODY)
    for arrival in range(rows.size + 1):
        ended = arrival == rows.size
        if not ended:
            u = user[rows[arrival]]
            issued[u] += 1
            size = _enter(u, issued[u] if rule == PROFILE else 1, bag, size, place)
            waiting[held] = rows[arrival]
            held += 1
        while size > k or (ended and held > 0):
            chosen = uniform_below(siphash(k0, k1, np.uint64(c), drawn), held)
            row = waiting[chosen]
            barred = user[row] if barring else NOBODY
            if rule == RANDOM:
                word = siphash(k0, k1, np.uint64(c), drawn + np.uint64(1))
                p = _any_token(word, held, barred, bag, size, place)
            else:
                p = _best_user(barred, bag, size)
            drawn += np.uint64(2)
            held -= 1
            waiting[chosen] = waiting[held]
            if p == NOBODY:  # all that is left carries the record's own label
                if first < 0:
                    first, second = _busiest(rows, user, issued)
                guess[row] = second if first == barred else first
                p = 0
            else:
                guess[row] = bag[p, WHO]
            size = _leave(p, bag, size, place)
            linked += 0 if ended else 1
    return linked


@njit(cache=True, nogil=True)
def relink(rule, k, barring, k0, k1, order, starts, user, users):  # type: ignore[no-untyped-def]
    """Guess an author for each record; `NOBODY` where the category shows no other user.

    `order` and `starts` come from `group`. `barring` excludes the label that a record carries. Also
    gives how many records were linked while the stream ran; the rest got what was left at its end.
    """
    guess = np.full(user.size, NOBODY, np.int64)
    place, issued = np.full(users, -1, np.int64), np.zeros(users, np.int64)
    longest = 0
    for c in range(starts.size - 1):
        longest = max(longest, starts[c + 1] - starts[c])
    bag, waiting, linked = np.zeros((min(k + 1, users), 3), np.int64), np.empty(longest, np.int64), 0
    for c in range(starts.size - 1):
        rows = order[starts[c] : starts[c + 1]]
        linked += _relink_one(rule, k, barring, k0, k1, c, rows, user, guess, bag, waiting, place, issued)
        for row in rows:
            issued[user[row]] = 0
    return guess, linked
