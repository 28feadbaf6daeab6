"""`microagg-syntactic`: groups of the naive twin, mean times and ranks, cut domain names, blocks."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querycloak as qc
from querycloak.errors import QueryCloakError
from querycloak.methods.microaggregation import Microaggregation, by_text
from querycloak.methods.microaggregation.by_text import MicroaggSyntactic
from querycloak.methods.microaggregation.tree_distance import UNIT
from querycloak.text.urls import labels_of
from tests.reference import naive_mdav
from tests.reference.naive_microagg import Log, Search
from tests.support.logs import made_up
from tests.unit.methods.made_dp import made, part

NAME = "microagg-syntactic"
DAY = 86_400_000_000
URLS = (None, "http://www.a.example/x", "https://www.b.example", "http://a.example:80/?q", "news.b.test")
one_search = st.tuples(
    st.sampled_from(["pox", "golf", "golf clubs", "cheap golf clubs", "www.golf.example", "a"]),
    st.integers(0, 90),
    st.one_of(st.none(), st.integers(1, 30)),
    st.sampled_from(URLS),
)
logs = st.lists(st.lists(one_search, min_size=1, max_size=4), min_size=4, max_size=9)


def written(people):
    """Turn lists of searches by person into a log."""
    rows = [(f"p{n}", *search) for n, own in enumerate(people) for search in own]
    user, query, day, rank, url = zip(*rows, strict=True)
    times = pl.Series(day, dtype=pl.Int64) * DAY
    return made(
        *zip(user, query, strict=True),
        time=times.cast(pl.Datetime("us", "UTC")),
        rank=pl.Series(rank, dtype=pl.Int64),
        url=pl.Series(url, dtype=pl.String),
    )


def as_naive(people, printed=False):
    """Write the same people down for the twin."""
    return Log(
        [
            [Search(q, d, r, ".".join(reversed(labels_of(u))) if u else None) for q, d, r, u in own]
            for own in people
        ],
        printed,
    )


def spied(log, **options):
    """Protect, and give whom each group had (by place among the people) and all that was handed over."""
    seen, order = [], []
    with pytest.MonkeyPatch.context() as patch:
        old = Microaggregation._release

        def spy(self, users, groups, made):
            order[:] = [int(name[1:]) for name in self.texts.user.decode(users)]
            for members, shown in zip(groups, made, strict=True):
                seen.append(({order[m] for m in members.tolist()}, shown, self.texts))
            return old(self, users, groups, made)

        patch.setattr(Microaggregation, "_release", spy)
        release = qc.protect(log, NAME, seed=3, **options)
    return release, seen, {person: rank for rank, person in enumerate(order)}


@settings(max_examples=60)
@given(people=logs, k=st.integers(2, 3), weights=st.sampled_from(["text", "printed"]))
def test_groups_are_those_of_the_naive_twin(people, k, weights):
    """Acceptance 4: the distances of 5.3.1.2 written down line by line, then MDAV by lists."""
    _, seen, rank = spied(written(people), k=k, weights=weights)
    log = as_naive(people, weights == "printed")
    apart = {
        frozenset((a, b)): Fraction(round(log.d_user(a, b) * UNIT)) if a != b else Fraction(0)
        for a in range(len(people))
        for b in range(a + 1)
    }
    # The two round the same sums in another order: distances within one step are the same distance here.
    values = sorted(set(apart.values()))
    near = any(0 < high - low <= 2 for low, high in pairwise(values))
    wanted = naive_mdav.mdav(range(len(people)), k, rank, lambda a, b: apart[frozenset((a, b))])
    if not near:
        assert sorted(map(sorted, wanted)) == sorted(sorted(members) for members, *_ in seen)
    assert sum(len(members) for members, *_ in seen) == len(people)


@settings(max_examples=60)
@given(people=logs)
def test_a_query_has_the_group_s_mean_time_and_rank_and_common_end(people):
    _, seen, _ = spied(written(people), k=2)
    for members, shown, texts in seen:
        theirs = [search for n in members for search in people[n]]
        queries, urls = texts.query.decode(shown.query).to_list(), texts.url.decode(shown.url).to_list()
        for query, time, rank, url in zip(queries, shown.time, shown.rank, urls, strict=True):
            days, ranks, hosts = (
                [s[i] for s in theirs if s[0] == query and s[i] is not None] for i in (1, 2, 3)
            )
            assert time == int(Fraction(sum(days) * DAY, len(days)) + Fraction(1, 2))
            assert rank == (int(Fraction(sum(ranks), len(ranks)) + Fraction(1, 2)) if ranks else -1)
            ends = [labels_of(host) for host in hosts]
            size = 0
            while ends and len({end[: size + 1] for end in ends}) == 1 and size < min(map(len, ends)):
                size += 1
            assert (url or "") == ".".join(reversed(ends[0][:size] if ends else ()))


def test_people_whose_searches_look_alike_are_grouped():
    golf = [[("cheap golf clubs", 1, 2, URLS[1])] * 3 for _ in range(3)]
    pox = [[("pox", 80, 30, URLS[4])] for _ in range(3)]
    release, seen, _ = spied(written(golf + pox), k=3, labels="keep", source="test")
    assert sorted(map(sorted, (members for members, *_ in seen))) == [[0, 1, 2], [3, 4, 5]]
    frame = release.log.frame
    assert set(frame.filter(pl.col("user") == "p0")["url"]) == {"www.a.example"}
    assert Counter(frame["user"]) == Counter({"p0": 3, "p1": 3, "p2": 3, "p3": 1, "p4": 1, "p5": 1})


def test_clicks_of_one_search_are_rows_of_their_own():
    """The thesis's records are clicks: each has a rank and a domain name."""
    own = [("golf", 1, 1, URLS[1]), ("golf", 1, 3, URLS[3])]
    release, _, _ = spied(written([own] * 4), k=2)
    assert len(release.log) == 8
    assert set(release.log.frame["rank"]) == {2}
    assert set(release.log.frame["url"]) == {"a.example"}


def test_weights_of_the_formula_make_other_groups():
    log = made_up(80, seed=5)
    first, second = (spied_groups(log, weights) for weights in ("text", "printed"))
    assert first != second


def spied_groups(log, weights):
    users = {user: f"p{n}" for n, user in enumerate(log.frame["user"].unique(maintain_order=True))}
    named = log.frame.with_columns(pl.col("user").replace_strict(users))
    return sorted(sorted(members) for members, *_ in spied(log.with_frame(named), k=4, weights=weights)[1])


@pytest.mark.parametrize("k", [2, 7])
def test_many_people_are_grouped_block_by_block(monkeypatch, k):
    monkeypatch.setattr(MicroaggSyntactic, "exact", 100)
    monkeypatch.setattr(MicroaggSyntactic, "block", 60)
    log = made_up(150, seed=5)
    release = qc.protect(log, NAME, k=k, seed=1)
    assert part(release)["audit"] == "kept"
    assert release.log.frame["user"].n_unique() == log.frame["user"].n_unique()
    mixed = log.with_frame(log.frame.sample(fraction=1, shuffle=True, seed=9))
    order = ["user", "query", "time", "rank", "url"]
    again = qc.protect(mixed, NAME, k=k, seed=1, piece_rows=500).log.frame
    assert again.select(order).sort(order).equals(release.log.frame.select(order).sort(order))


def test_blocks_keep_most_of_what_all_distances_gain(monkeypatch):
    """At least half of what exact groups gain over chance, in distances. Nothing is random in it."""
    log = made_up(300, seed=5)
    people = log.frame["user"].n_unique()
    exact = groups_of(log)
    monkeypatch.setattr(MicroaggSyntactic, "exact", 100)
    monkeypatch.setattr(MicroaggSyntactic, "block", 150)
    cut = groups_of(log)
    apart = distances_of(log)
    chance = np.random.default_rng(1).permutation(np.arange(people) // 5)
    loose, found, best = (within(apart, labels) for labels in (chance, cut, exact))
    assert best < found < loose
    assert loose - found > 0.5 * (loose - best)


def groups_of(log):
    return handed_over(log, MicroaggSyntactic, "_groups")


def distances_of(log):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MicroaggSyntactic, "exact", 10**6)
        return handed_over(log, by_text, "distances")


def handed_over(log, where, name):
    """Protect, and give what a function gave."""
    seen, old = [], getattr(where, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, lambda *rest: seen.append(old(*rest)) or seen[-1])
        qc.protect(log, NAME, k=5, seed=1)
    return seen[0]


def within(apart, labels):
    same = labels[:, None] == labels
    np.fill_diagonal(same, val=False)
    return float(apart[same].mean())


def test_topics_come_from_the_log_s_own_column():
    log = made_up(60, seed=3, categories=True)
    release = qc.protect(log, NAME, k=3, diversity=3, closeness=0.6, seed=1)
    assert [check["verdict"] for check in part(release)["checks"]] == ["kept"] * 4
    topic = pl.col("category").str.split("/").list.first()
    assert release.log.frame.group_by("user").agg(topic.n_unique())["category"].min() >= 3
    with pytest.raises(QueryCloakError, match="needs the column `category`"):
        qc.protect(log.with_frame(log.frame.drop("category")), NAME, k=3, diversity=2, seed=1)
