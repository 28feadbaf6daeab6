"""Paper 003, sections 5.3, 5.4 and 3.2, written down line by line; see PAPERS.md for the misprints.

Where the thesis is silent: what only one of two searches has (a click, a time) is 1 apart, what neither has
is 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache


@dataclass(frozen=True)
class Search:
    query: str
    time: int | None = None
    rank: int | None = None
    host: str | None = None


def norm(value, values):
    low, high = min(values), max(values)
    return (value - low) / max(high - low, 1)


@cache
def levenshtein(x: str, y: str) -> int:
    row = list(range(len(y) + 1))
    for i, a in enumerate(x, 1):
        above, row = row, [i]
        for j, b in enumerate(y, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def d_lev(x: str, y: str) -> float:
    return levenshtein(x, y) / max(len(x), len(y))


def d_u(x: str | None, y: str | None) -> float:
    """Sum of 2^(m-i) over the labels, counted from the right, that differ; divided by 2^(m+1) - 1."""
    if x is None or y is None:
        return float(x is not y)
    xs, ys = x.lower().split(".")[::-1], y.lower().split(".")[::-1]
    m = max(len(xs), len(ys)) - 1
    differ = [xs[i : i + 1] != ys[i : i + 1] for i in range(m + 1)]
    return sum(2 ** (m - i) * differ[i] for i in range(m + 1)) / (2 ** (m + 1) - 1)


def directed(xs, ys, distance) -> float:
    return max(min(distance(x, y) for y in ys) for x in xs)


def hausdorff(xs, ys, distance) -> float:
    if not xs or not ys:
        return float(bool(xs) != bool(ys))
    return max(directed(xs, ys, distance), directed(ys, xs, distance))


class Log:
    """A log as lists of searches by user, with the distances of 5.3.1.2."""

    def __init__(self, users: list[list[Search]], printed: bool = False):
        self.users, self.printed = users, printed
        everything = [search for user in users for search in user]
        self.times = [s.time for s in everything if s.time is not None]
        self.ranks = [s.rank for s in everything if s.rank is not None]
        self.terms = [len(query.split()) for query in {s.query for s in everything}]
        self.sizes = [len(user) for user in users]

    def number(self, a, b, values) -> float:
        if a is None or b is None:
            return float(a is not b)
        return abs(norm(a, values) - norm(b, values))

    def d_string(self, a: str, b: str) -> float:
        """Equation 5.1."""
        size = self.number(len(a.split()), len(b.split()), self.terms)
        words = hausdorff(set(a.split()), set(b.split()), d_lev)
        return (2 * size + words) / 3 if self.printed else (size + 2 * words) / 3

    def d_search(self, a: Search, b: Search) -> float:
        """Equation 5.3."""
        parts = (
            self.number(a.time, b.time, self.times),
            self.number(a.rank, b.rank, self.ranks),
            d_u(a.host, b.host),
            3 * self.d_string(a.query, b.query),
        )
        return sum(parts) / 6

    def d_user(self, a: int, b: int) -> float:
        """Equation 5.4."""
        size = self.number(self.sizes[a], self.sizes[b], self.sizes)
        return (size + hausdorff(self.users[a], self.users[b], self.d_search)) / 2


def classification(terms: list[list[str]], level: int) -> list[dict[str, int]]:
    """Algorithm 2: how often each category of a level is found in a user's terms (paths like `a:b:c`)."""
    matrix: list[dict[str, int]] = []
    for paths in terms:
        matrix.append({})
        for path in paths:
            if len(parts := path.split(":")) >= level:
                category = ":".join(parts[:level])
                matrix[-1][category] = matrix[-1].get(category, 0) + 1
    return matrix


def incidence(matrices: list[list[dict[str, int]]]) -> list[list[int]]:
    """Algorithm 3."""
    users = range(len(matrices[0]))
    total = [[0 for _ in users] for _ in users]
    for matrix in matrices:
        for column in {category for row in matrix for category in row}:
            for i in users:
                for p in users:
                    total[i][p] += min(matrix[i].get(column, 0), matrix[p].get(column, 0))
    return total


def one_cluster(matrix: dict[tuple[int, int], int], users: list[int], k: int) -> list[int]:
    """Algorithm 5, on cells by pairs of users; it changes the matrix. Earlier users win ties."""
    place = {user: i for i, user in enumerate(users)}
    pairs = [(i, p) for i in users for p in users if place[i] < place[p]]
    u, other = max(pairs, key=lambda pair: (matrix[pair], -place[pair[0]], -place[pair[1]]))
    z, left = [u, other], [user for user in users if user not in (u, other)]
    while len(z) < k:
        for s in left:
            matrix[u, s] += matrix[other, s]
            matrix[s, u] = matrix[u, s]
        other = max(left, key=lambda s: (matrix[u, s], -place[s]))
        left.remove(other)
        z.append(other)
    return z


def clusters(common: list[list[int]], k: int, users: list[int]) -> list[set[int]]:
    """Algorithm 4."""
    found: list[set[int]] = []
    while len(users) >= k:
        matrix = {(i, p): common[i][p] for i in users for p in users}
        z = one_cluster(matrix, users, k)
        users = [user for user in users if user not in z]
        found.append(set(z))
    if users:
        found = [*found[:-1], (found[-1] if found else set()) | set(users)]
    return found


def edges(clicked: dict[int, set[int]], keep: set[int]) -> set[frozenset[int]]:
    """Section 3.2: two queries are connected if their sets of clicked URLs intersect."""
    return {frozenset((a, b)) for a in keep for b in keep if a != b and clicked[a] & clicked[b]}


def disconnect(clicked: dict[int, set[int]], keep: set[int], rank: list[int]) -> set[int]:
    """Remove the query with most edges, the least rank of equals, until there are no edges."""
    while found := edges(clicked, keep):
        degree = {q: sum(q in edge for edge in found) for q in keep}
        keep = keep - {max(keep, key=lambda q: (degree[q], -rank[q]))}
    return keep


def split(weights: list[int], total: int) -> list[float]:
    """The exact shares that whole numbers must come near to."""
    return [total * weight / sum(weights) for weight in weights]


def algorithm6(queries: list[int], group: int, quota: int, draws: list[int], coins: list[int]) -> list[int]:
    """One user's share of the microaggregated log; `group` counts all queries. Ours: what fills the quota.

    Record i has the query string `queries[i]`; a string's coin is that of its record with the least draw.
    """
    first = {q: min((i for i, p in enumerate(queries) if p == q), key=draws.__getitem__) for q in queries}
    sl = sorted(first, key=lambda q: (-queries.count(q), draws[first[q]]))
    ml: list[int] = []
    while len(ml) < quota and sl:
        chance = Fraction(len(queries), group) * queries.count(sl[0])
        copies = int(chance) + (Fraction(coins[first[sl[0]]], 2**64) < chance - int(chance))
        ml += [sl[0]] * min(copies, quota - len(ml))
        del sl[0]
    taken = Counter(ml)
    for i in sorted(range(len(queries)), key=draws.__getitem__):
        if taken[queries[i]] > 0:
            taken[queries[i]] -= 1
        elif len(ml) < quota:
            ml.append(queries[i])
    return ml
