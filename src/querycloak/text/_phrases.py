"""Find known phrases in sequences of word numbers, and sum their weights for the topics of a tree.

The trie is one open-addressing table `(state, word) -> state`; state 0 starts phrases as they are
spelt, state 1 phrases of stems. The weights come from `querycloak.text.lexicon`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.hash_table import find, put

SPELT, STEMMED = 0, 1
STOP, TAIL = 1, 2  # bits of a token's flags
MOST_WORDS = 48  # a longer query is read up to here
MOST_EVIDENCE = 512
NOTHING = -1


@njit(cache=True, nogil=True)
def grow(words, starts, root, state, table):  # type: ignore[no-untyped-def]
    """Add phrases to the trie; return each one's last state and the next unused state."""
    first, second, full, value = table
    ends = np.empty(starts.size - 1, np.int64)
    for i in range(starts.size - 1):
        here = root
        for p in range(starts[i], starts[i + 1]):
            slot = find(first, second, full, here, words[p])
            if not full[slot]:
                put(first, second, full, value, slot, here, words[p], state)
                state += 1
            here = value[slot]
        ends[i] = here
    return ends, state


@njit(cache=True, nogil=True)
def spans(words, bounds, table, phrase, longest, out):  # type: ignore[no-untyped-def]
    """Count, and if `out` has room write, the phrases of texts: (first word, end, phrase).

    `phrase` has the phrase that ends in each state, or nothing. With `longest`, phrases are taken from left
    to right, the longest first, none overlapping; else all of them.
    """
    first, second, full, value = table
    count = 0
    for t in range(bounds.size - 1):
        start = bounds[t]
        while start < bounds[t + 1]:
            state, after, before = SPELT, start + 1, count
            for p in range(start, bounds[t + 1]):
                slot = find(first, second, full, state, words[p])
                if not full[slot]:
                    break
                state = value[slot]
                if phrase[state] >= 0:
                    if longest:
                        count, after = before, p + 1
                    if out.size:
                        out[count, 0], out[count, 1], out[count, 2] = start, p + 1, phrase[state]
                    count += 1
            start = after
    return count


@njit(cache=True, nogil=True)
def _walk(ids, flags, start, stop, root, table, starts, begin, found):  # type: ignore[no-untyped-def]
    """Note every phrase that begins at `start`, for each end the longest one.

    A stop word that no phrase expects is stepped over, so `bank america` is found in `bank of america`.
    """
    first, second, full, value = table
    low = stop + 1 - begin.size
    state = root
    for p in range(start, stop):
        slot = find(first, second, full, state, ids[p])
        if not full[slot]:
            if p > start and flags[p] & STOP:
                continue
            return
        state = value[slot]
        end = p + 1 - low
        if starts[state] < starts[state + 1] and (begin[end] < 0 or start < begin[end]):
            begin[end], found[end] = start, state


@njit(cache=True, nogil=True)
def _find_phrases(spelt, stem, flags, low, high, table, starts, begin, found):  # type: ignore[no-untyped-def]
    """For each end position, the longest phrase that ends there; spelling goes before stems."""
    width = high - low + 1
    begin[:width], found[:width] = NOTHING, NOTHING
    for s in range(low, high):
        _walk(spelt, flags, s, high, SPELT, table, starts, begin[:width], found[:width])
        if not flags[s] & STOP:
            _walk(stem, flags, s, high, STEMMED, table, starts, begin[:width], found[:width])


@njit(cache=True, nogil=True)
def _choose(low, high, begin, found, chosen):  # type: ignore[no-untyped-def]
    """Cover a query by longest matches from the right; return their number."""
    count, end = 0, high
    while end > low:
        if found[end - low] >= 0:
            chosen[count, 0], chosen[count, 1], chosen[count, 2] = begin[end - low], end, found[end - low]
            count += 1
            end = begin[end - low]
        else:
            end -= 1
    return count


@njit(cache=True, nogil=True)
def _place(chosen, count, flags):  # type: ignore[no-untyped-def]
    """Return which match is the head: the rightmost before `in ...`, `for ...`; else the rightmost."""
    for i in range(count):
        if not flags[chosen[i, 1] - 1] & TAIL:
            return i
    return 0


@njit(cache=True, nogil=True)
def gather(tokens, low, high, index, rules, work):  # type: ignore[no-untyped-def]
    """Collect the evidence of one query: fill `work` and return the number of pieces."""
    spelt, stem, flags, trust = tokens
    table, starts, nodes, weights, length = index
    in_head, in_tail, elsewhere, longer = rules
    begin, found, chosen, at, score, source = work
    high = min(high, low + MOST_WORDS)
    _find_phrases(spelt, stem, flags, low, high, table, starts, begin, found)
    count = _choose(low, high, begin, found, chosen)
    head = _place(chosen, count, flags)
    filled = 0
    for i in range(count):
        s, e, state = chosen[i, 0], chosen[i, 1], chosen[i, 2]
        factor = elsewhere
        if i == head:
            factor = in_head
        elif flags[e - 1] & TAIL:
            factor = in_tail
        factor *= longer[min(length[state], longer.size - 1)]
        belief = 1.0
        for p in range(s, e):
            belief = min(belief, trust[p])
        for j in range(starts[state], starts[state + 1]):
            if filled < at.size:
                at[filled], score[filled] = nodes[j], weights[j] * factor * belief
                source[filled] = belief < 1.0
                filled += 1
    return filled


@njit(cache=True, nogil=True)
def _best_topic(at, score, filled, column, prior, boost, sums):  # type: ignore[no-untyped-def]
    """Return the topic with most evidence and its probability; `sums` has the evidence of phrases."""
    sums[:] = 0.0
    for i in range(filled):
        if column[at[i]] >= 0:
            sums[column[at[i]]] += score[i]
    best, highest = 0, -np.inf
    for c in range(sums.size):
        value = prior[c] + boost * np.sqrt(sums[c])
        if value > highest:
            best, highest = c, value
    everything = 0.0
    for c in range(sums.size):
        everything += np.exp(prior[c] + boost * np.sqrt(sums[c]) - highest)
    return best, 1.0 / everything


@njit(cache=True, nogil=True)
def _best_domain(at, score, filled, topic, winner, domain):  # type: ignore[no-untyped-def]
    """Return the domain with most evidence inside the winning topic, or nothing."""
    best, most = NOTHING, 0.0
    for i in range(filled):
        own = domain[at[i]]
        if own < 0 or topic[at[i]] != winner:
            continue
        total = 0.0
        for j in range(filled):
            if domain[at[j]] == own:
                total += score[j]
        if total > most or (total == most and own < best):
            best, most = own, total
    return best


@njit(cache=True, nogil=True)
def _deepest(at, score, filled, domain, inside, parent, depth):  # type: ignore[no-untyped-def]
    """Return the node inside a domain whose chain of ancestors gathers most evidence."""
    best, most = inside, 0.0
    for i in range(filled):
        if domain[at[i]] != inside:
            continue
        total = 0.0
        for j in range(filled):
            node = at[i]
            while node >= 0 and depth[node] > depth[at[j]]:
                node = parent[node]
            if node == at[j] and domain[at[j]] == inside:
                total += score[j]
        if total > most or (total == most and (depth[at[i]], -at[i]) > (depth[best], -best)):
            best, most = at[i], total
    return best


@njit(cache=True, nogil=True)
def _corrected(at, score, source, filled, topic, winner):  # type: ignore[no-untyped-def]
    """Check whether the strongest evidence of the winning topic came from a corrected word."""
    most, answer = 0.0, False
    for i in range(filled):
        if topic[at[i]] == winner and score[i] > most:
            most, answer = score[i], source[i]
    return answer


@njit(cache=True, nogil=True)
def workspace():  # type: ignore[no-untyped-def]
    """Return the scratch arrays that `gather` fills."""
    return (
        np.empty(MOST_WORDS + 1, np.int64),
        np.empty(MOST_WORDS + 1, np.int64),
        np.empty((MOST_WORDS, 3), np.int64),
        np.empty(MOST_EVIDENCE, np.int64),
        np.empty(MOST_EVIDENCE, np.float64),
        np.empty(MOST_EVIDENCE, np.bool_),
    )


@njit(cache=True, nogil=True)
def decide(tokens, bounds, index, rules, tree, prior):  # type: ignore[no-untyped-def]
    """Return for each query: topic, its probability, node, and whether a corrected word decided.

    The node is -1 where no phrase belongs to the topic. `prior` has further evidence for each query, as
    logarithms of the topics' probabilities.
    """
    column, topics, domain, parent, depth = tree
    head, tail, other, longer, boost = rules
    work, sums = workspace(), np.empty(topics.size)
    at, score, source = work[3], work[4], work[5]
    size = bounds.size - 1
    topic, node = np.full(size, NOTHING, np.int64), np.full(size, NOTHING, np.int64)
    chance, corrected = np.zeros(size), np.zeros(size, np.bool_)
    for q in range(size):
        filled = gather(tokens, bounds[q], bounds[q + 1], index, (head, tail, other, longer), work)
        best, chance[q] = _best_topic(at, score, filled, column, prior[q], boost, sums)
        topic[q] = topics[best]
        if sums[best] > 0.0:
            inside = _best_domain(at, score, filled, column, best, domain)
            node[q] = _deepest(at, score, filled, domain, inside, parent, depth) if inside >= 0 else topic[q]
            corrected[q] = _corrected(at, score, source, filled, column, best)
    return topic, chance, node, corrected


@njit(cache=True, nogil=True)
def evidence(tokens, low, high, index, rules):  # type: ignore[no-untyped-def]
    """Return all evidence of one query: nodes and scores."""
    work = workspace()
    filled = gather(tokens, low, high, index, rules, work)
    return work[3][:filled].copy(), work[4][:filled].copy()
