"""Algorithm 1 on integers: per category a stretch of held records beside a bag of user tokens.

Each category owns a stretch of one pool. Held records and tokens fill it side by side, since each
arrival adds one of both and each release takes one of both. What is taken out is replaced by the last,
so every step costs the same however much is held. A table (category, user) -> tokens tells how many
different users are present. A category that has waited too long hands everything to its parent.

No kernel makes the pool larger: it stops before the arrival that might need more, says where, and is
called again from there. An array that a loop replaces would cost more than all the rest.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.hash_table import remove_slot, slot_of
from querycloak.kernels.siphash import high_below, low_below, siphash
from querycloak.methods.swap.guard import posterior, remember, shares

#: Fields of a category: its key; where its stretch starts, how long it is, how full; different users;
#: draws so far; its parent and level; since when it has waited, in arrivals of its branch; the next in the
#: ring of its branch. A branch's top category also has the branch's clock and the place of the round.
KEY, START, ROOM, HELD, USERS, DRAWS, PARENT, LEVEL, SINCE, NEXT, CLOCK, CURSOR = range(12)
FIELDS = 12
#: Columns of the pool: the record, its user, and a token (which belongs to no record).
RECORD, ORIGIN, TOKEN = range(3)
#: What `ends` counts: the pool's end, releases.
POOL, RELEASES = range(2)
#: Users are numbered below this, so that a category and a user make one key.
MOST_USERS = 1 << 36
#: A token whose user was erased is marked: this less the user.
ERASED_TOKEN = -2
#: After so many rejected tokens the rest is counted through, which draws from the same distribution.
_PATIENCE = 32
#: How many releases the guard tries after each arrival.
TRIES = 8
# Logarithms differ a little by their place in an array; codes, which say the place, may not decide.
ROUNDING = 1e-9


@njit(cache=True, nogil=True)
def _make_room(pool, categories, c, free, ends):  # type: ignore[no-untyped-def]
    """Move a full category to a stretch twice as long; stretches are used again by size."""
    size = 0
    while (np.int64(4) << size) <= categories[c, ROOM]:
        size += 1
    start = free[size]
    if start >= 0:
        free[size] = pool[start, RECORD]
    else:
        start = ends[POOL]
        ends[POOL] += np.int64(4) << size
    old = categories[c, START]
    pool[start : start + categories[c, HELD]] = pool[old : old + categories[c, HELD]]
    if categories[c, ROOM] > 0:
        pool[old, RECORD] = free[size - 1]
        free[size - 1] = old
    categories[c, START], categories[c, ROOM] = start, np.int64(4) << size


@njit(forceinline=True)
def _is_short(more, c, pool, categories, ends):  # type: ignore[no-untyped-def]
    """Whether the pool might end before a category has taken so many more in, doubling as it goes."""
    wanted = categories[c, HELD] + more
    return wanted > categories[c, ROOM] and ends[POOL] + 4 * wanted + 4 > pool.shape[0]


@njit(forceinline=True)
def _add_token(user, count, c, distinct, tokens, pool, categories):  # type: ignore[no-untyped-def]
    """Add a user's token to the bag: every token, or (`distinct`) one entry for all of a user's."""
    key = c * MOST_USERS + user
    row = slot_of(tokens, key)
    fresh = tokens[row, 1] == 0
    tokens[row, 0] = key
    tokens[row, 1] += count
    if not distinct:
        pool[categories[c, START] + categories[c, HELD], TOKEN] = user
    elif fresh:
        pool[categories[c, START] + categories[c, USERS], TOKEN] = user
    if fresh:
        categories[c, USERS] += 1


@njit(forceinline=True)
def _hold(record, user, c, distinct, tokens, pool, categories, free, ends):  # type: ignore[no-untyped-def]
    if categories[c, HELD] == categories[c, ROOM]:
        _make_room(pool, categories, c, free, ends)
    last = categories[c, START] + categories[c, HELD]
    pool[last, RECORD], pool[last, ORIGIN] = record, user
    _add_token(user, np.int64(1), c, distinct, tokens, pool, categories)
    categories[c, HELD] += 1


@njit(forceinline=True)
def _word(k0, k1, categories, c):  # type: ignore[no-untyped-def]
    word = siphash(k0, k1, np.uint64(categories[c, KEY]), np.uint64(categories[c, DRAWS]))
    categories[c, DRAWS] += 1
    return word


@njit(cache=True, nogil=True)
def _another_token(k0, k1, origin, size, distinct, tokens, pool, categories, c):  # type: ignore[no-untyped-def]
    """Choose an entry of the bag that is not the origin's, after the first choice was."""
    start = categories[c, START]
    for _ in range(_PATIENCE):
        place = low_below(_word(k0, k1, categories, c), size)
        if pool[start + place, TOKEN] != origin:
            return place
    own = tokens[slot_of(tokens, c * MOST_USERS + origin), 1]
    if distinct:
        own = min(own, 1)
    wanted = low_below(_word(k0, k1, categories, c), size - own)
    place = np.int64(-1)
    while wanted >= 0:
        place += 1
        if pool[start + place, TOKEN] != origin:
            wanted -= 1
    return place


@njit(forceinline=True)
def _fewer(row, count, tokens):  # type: ignore[no-untyped-def]
    """Count so many tokens less; return whether these were all of a row."""
    if tokens[row, 1] == count:
        remove_slot(tokens, row)
        return True
    tokens[row, 1] -= count
    return False


@njit(forceinline=True)
def _one_less(key, tokens):  # type: ignore[no-untyped-def]
    return _fewer(slot_of(tokens, key), np.int64(1), tokens)


@njit(forceinline=True)
def _release_one(k, k0, k1, now, c, distinct, tokens, pool, categories, ends, out):  # type: ignore[no-untyped-def]
    """While more than k different users are present, release a random record to another's token."""
    users = categories[c, USERS]
    if users <= k:
        return
    start, held, n = categories[c, START], categories[c, HELD], ends[RELEASES]
    name, draws = np.uint64(categories[c, KEY]), categories[c, DRAWS]
    while users > k:
        word = siphash(k0, k1, name, np.uint64(draws))
        draws += 1
        place = start + high_below(word, held)
        origin = pool[place, ORIGIN]
        taken = start + low_below(word, users if distinct else held)
        label = pool[taken, TOKEN]
        if label == origin:
            categories[c, DRAWS] = draws
            bag = users if distinct else held
            taken = start + _another_token(k0, k1, origin, bag, distinct, tokens, pool, categories, c)
            draws = categories[c, DRAWS]
            label = pool[taken, TOKEN]
        out[n, 0], out[n, 1], out[n, 2], out[n, 3] = pool[place, RECORD], label, now, categories[c, LEVEL]
        n += 1
        held -= 1
        pool[place, RECORD], pool[place, ORIGIN] = pool[start + held, RECORD], pool[start + held, ORIGIN]
        gone = _one_less(c * MOST_USERS + label, tokens)
        users -= gone
        if not distinct:
            pool[taken, TOKEN] = pool[start + held, TOKEN]
        elif gone:
            pool[taken, TOKEN] = pool[start + users, TOKEN]
    categories[c, USERS], categories[c, HELD], categories[c, DRAWS] = users, held, draws
    ends[RELEASES] = n


@njit(cache=True, nogil=True)
def guarded(  # type: ignore[no-untyped-def]
    k, k0, k1, limit, category, user, record, text_of, tokens, pool, categories, free, ends, out,
    times_left, sa, sb, sf, sv, score, known, first,
):  # fmt: skip
    """Do as `swap` does, but hold a record while an attacker would be surer of its author than `limit`.

    `text_of[record]` is its string. Each category is tried a few times an arrival; what is held stays.
    """
    for i in range(first, user.size):
        c = category[i]
        if _is_short(1, c, pool, categories, ends):
            return i
        _hold(record[i], user[i], c, False, tokens, pool, categories, free, ends)
        for _ in range(TRIES):
            if categories[c, USERS] <= k:
                break
            start, held = categories[c, START], categories[c, HELD]
            word = _word(k0, k1, categories, c)
            place = start + high_below(word, held)
            origin, text = pool[place, ORIGIN], text_of[pool[place, RECORD]]
            taken = low_below(word, held)
            if pool[start + taken, TOKEN] == origin:
                taken = _another_token(k0, k1, origin, held, False, tokens, pool, categories, c)
            label = pool[start + taken, TOKEN]
            users, evidence = shares(pool[start : start + held, TOKEN], label)
            if posterior(text, users, evidence, times_left, sa, sb, sf, sv, score) > limit + ROUNDING:
                continue
            remember(text, users, evidence, times_left, sa, sb, sf, sv, score, known)
            last, n = start + held - 1, ends[RELEASES]
            out[n, 0], out[n, 1], out[n, 2], out[n, 3] = pool[place, RECORD], label, i, categories[c, LEVEL]
            pool[place, RECORD], pool[place, ORIGIN] = pool[last, RECORD], pool[last, ORIGIN]
            pool[start + taken, TOKEN] = pool[last, TOKEN]
            categories[c, USERS] -= _one_less(c * MOST_USERS + label, tokens)
            categories[c, HELD] -= 1
            ends[RELEASES] += 1
    return user.size


@njit(cache=True, nogil=True)
def _take_marked(c, distinct, tokens, pool, categories, out):  # type: ignore[no-untyped-def]
    """Take out the records and tokens that are marked; give how many of both are left, and write records."""
    start, records, left, n = categories[c, START], categories[c, HELD], categories[c, HELD], 0
    entries = categories[c, USERS] if distinct else records
    for place in range(start + records - 1, start - 1, -1):
        if pool[place, ORIGIN] < 0:
            out[n] = pool[place, RECORD]
            n, records = n + 1, records - 1
            last = start + records
            pool[place, RECORD], pool[place, ORIGIN] = pool[last, RECORD], pool[last, ORIGIN]
    for place in range(start + entries - 1, start - 1, -1):
        if pool[place, TOKEN] < 0:
            row = slot_of(tokens, c * MOST_USERS + ERASED_TOKEN - pool[place, TOKEN])
            count = tokens[row, 1] if distinct else np.int64(1)
            categories[c, USERS] -= _fewer(row, count, tokens)
            entries, left = entries - 1, left - count
            pool[place, TOKEN] = pool[start + entries, TOKEN]
    return n, records, left


@njit(cache=True, nogil=True)
def erase(k0, k1, distinct, touched, tokens, pool, categories, out):  # type: ignore[no-untyped-def]
    """Take out what is marked in some categories, then of what there is more of, so many drawn by chance.

    A marked record has an origin below 0, a marked token is `ERASED_TOKEN` less its user. Records go to
    `out`: those that were marked, then those that were drawn. Return how many of each there are, and how
    many tokens were drawn.
    """
    n, surplus, lost = 0, 0, 0
    drawn = np.empty(out.size, np.int64)
    for c in touched:
        found, records, left = _take_marked(c, distinct, tokens, pool, categories, out[n:])
        n += found
        start = categories[c, START]
        while records > left:
            place = start + high_below(_word(k0, k1, categories, c), records)
            records -= 1
            drawn[surplus] = pool[place, RECORD]
            surplus += 1
            last = start + records
            pool[place, RECORD], pool[place, ORIGIN] = pool[last, RECORD], pool[last, ORIGIN]
        while left > records:
            entries = categories[c, USERS] if distinct else left
            place = start + low_below(_word(k0, k1, categories, c), entries)
            left, lost = left - 1, lost + 1
            gone = _one_less(c * MOST_USERS + pool[place, TOKEN], tokens)
            categories[c, USERS] -= gone
            if gone or not distinct:
                pool[place, TOKEN] = pool[start + entries - 1, TOKEN]
        categories[c, HELD] = records
    out[n : n + surplus] = drawn[:surplus]
    return n, surplus, lost


@njit(cache=True, nogil=True)
def promote_to_parent(c, distinct, tokens, pool, categories, free, ends):  # type: ignore[no-untyped-def]
    """Hand all records and tokens of a category to its parent."""
    parent = categories[c, PARENT]
    bag = categories[c, USERS] if distinct else categories[c, HELD]
    for i in range(categories[c, HELD]):
        if categories[parent, HELD] == categories[parent, ROOM]:
            _make_room(pool, categories, parent, free, ends)
        last, place = categories[parent, START] + categories[parent, HELD], categories[c, START] + i
        pool[last, RECORD], pool[last, ORIGIN] = pool[place, RECORD], pool[place, ORIGIN]
        if i < bag:
            user = pool[place, TOKEN]
            row = slot_of(tokens, c * MOST_USERS + user)
            count = tokens[row, 1] if distinct else np.int64(1)
            _fewer(row, count, tokens)
            _add_token(user, count, parent, distinct, tokens, pool, categories)
        categories[parent, HELD] += 1
    categories[c, HELD] = categories[c, USERS] = 0


@njit(cache=True, nogil=True)
def _join_ring(c, top, categories):  # type: ignore[no-untyped-def]
    """Add a category and its ancestors to the ring of their branch, on the first arrival below them."""
    while c != top and categories[c, NEXT] < 0:
        place = categories[top, CURSOR]
        categories[c, NEXT] = categories[place, NEXT]
        categories[place, NEXT] = c
        c = categories[c, PARENT]


@njit(cache=True, nogil=True)
def _promote_if_stale(k, k0, k1, now, top, distinct, patience, tokens, pool, categories, free, ends, out):  # type: ignore[no-untyped-def]
    """Look at one category of a branch, the next of its ring; hand it on if it has waited too long."""
    c = categories[top, CURSOR]
    categories[top, CURSOR] = categories[c, NEXT]
    waited = categories[top, CLOCK] - categories[c, SINCE]
    if c != top and categories[c, HELD] > 0 and waited > patience:
        parent = categories[c, PARENT]
        if categories[parent, HELD] == 0:
            categories[parent, SINCE] = categories[top, CLOCK]
        promote_to_parent(c, distinct, tokens, pool, categories, free, ends)
        if categories[parent, USERS] > k:
            categories[parent, SINCE] = categories[top, CLOCK]
            _release_one(k, k0, k1, now, parent, distinct, tokens, pool, categories, ends, out)


@njit(cache=True, nogil=True)
def swap(  # type: ignore[no-untyped-def]
    k, k0, k1, distinct, category, user, record, tokens, pool, categories, free, ends, out, first
):  # fmt: skip
    """Take arrivals in from the first on; write (record, token, arrival, level) of each release to `out`.

    Give the number of the arrival before which the pool must grow; of the last and one when all are in.
    """
    for i in range(first, user.size):
        c = category[i]
        if _is_short(1, c, pool, categories, ends):
            return i
        _hold(record[i], user[i], c, distinct, tokens, pool, categories, free, ends)
        _release_one(k, k0, k1, i, c, distinct, tokens, pool, categories, ends, out)
    return user.size


@njit(cache=True, nogil=True)
def swap_with_promotion(  # type: ignore[no-untyped-def]
    k, k0, k1, distinct, patience, category, top, user, record, tokens, pool, categories, free, ends, out,
    first,
):  # fmt: skip
    """Do as `swap` does; a category that lets nothing go for `patience` arrivals of its branch hands on."""
    for i in range(first, user.size):
        c, branch = category[i], top[i]
        looked_at = categories[branch, CURSOR]
        moving, parent = categories[looked_at, HELD] + 1, max(categories[looked_at, PARENT], 0)
        if _is_short(1, c, pool, categories, ends) or _is_short(moving, parent, pool, categories, ends):
            return i
        _hold(record[i], user[i], c, distinct, tokens, pool, categories, free, ends)
        full = categories[c, USERS] > k
        _join_ring(c, branch, categories)
        categories[branch, CLOCK] += 1
        if full or categories[c, HELD] == 1:
            categories[c, SINCE] = categories[branch, CLOCK]
        _release_one(k, k0, k1, i, c, distinct, tokens, pool, categories, ends, out)
        _promote_if_stale(k, k0, k1, i, branch, distinct, patience, tokens, pool, categories, free, ends, out)
    return user.size


@njit(cache=True, nogil=True)
def roll_up(k, k0, k1, distinct, order, tokens, pool, categories, free, ends, out, first):  # type: ignore[no-untyped-def]
    """At the end hand every category to its parent, in this order, and let go what then may go."""
    for i in range(first, order.size):
        c = order[i]
        parent = categories[c, PARENT]
        if categories[c, HELD] == 0 or parent < 0:
            continue
        if _is_short(categories[c, HELD], parent, pool, categories, ends):
            return i
        promote_to_parent(c, distinct, tokens, pool, categories, free, ends)
        _release_one(k, k0, k1, -1, parent, distinct, tokens, pool, categories, ends, out)
    return order.size
