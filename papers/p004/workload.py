"""The workload of paper 004: synthetic active users, their covered traces, and an attacker of each.

Users are divided into tenths. For each tenth an attacker learns linkage functions from all the others, on
fakes drawn by the attacker, then attacks each user of the tenth under one or several draws of fakes. The
user's own pairs are scored once for all draws. A unit depends on its name and the settings alone, not on
what ran before it.

Reference: paper 004, sections 4 and 5, and the appendix.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

import querycloak as qc
from querycloak.attacks import scoring_covers
from querycloak.attacks.base import ClusteredTrace, TraceClusters
from querycloak.attacks.case import Truth
from querycloak.attacks.link_learned import beginnings, features, in_time, pair_scores, training
from querycloak.attacks.link_learned.words import TermFrequencies
from querycloak.clients.obfuscation.base import choose
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.mixing import mix
from querycloak.keys import Secret, derive

Longs = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

#: Searches of an active user, at least and at most; and how many users are generated to find one.
ACTIVE: Final = (400, 1100)
GENERATED_FOR_ONE: Final = 400
TENTHS: Final = 10
#: Real searches of each of the others that are learned from, as in the paper.
LESSONS: Final = 130
#: From how many others one function learns in the appendix, at most; fewer where a tenth has fewer others.
SIZES: Final = (20, 40, 60, 80, 100)
#: Columns of the truth beside `fake`.
TOLD: Final = ("released_row", "original_row", "original_user", "released_after")
_ERRORS: Final = ("false_negatives", "false_positives")
#: The draw that the attacker made, to learn from.
TRAINING: Final = -1


@dataclass(frozen=True)
class Setup:
    """What a study depends on; `draws` and who is attacked change nothing in a unit."""

    users: int = 100
    functions: int = 5
    singles: int = 15
    seed: int = 4


@dataclass(frozen=True)
class Learned:
    """What an attacker learned from the others: term frequencies and linkage functions."""

    background: TermFrequencies
    functions: list[training.LinkageFunction]
    seconds: float


class Clock:
    """Processor seconds since the last call."""

    def __init__(self) -> None:
        self._last = time.process_time()

    def __call__(self) -> float:
        """Return the seconds of the step that ends now."""
        now = time.process_time()
        gone, self._last = now - self._last, now
        return round(gone, 3)


def active(users: int, seed: int) -> pl.DataFrame:
    """Generate a log and keep so many active users, drawn at random; they are named by number."""
    frame = qc.generate(users=users * GENERATED_FOR_ONE, seed=seed).frame
    many = frame.select("user", "query", "time").unique().group_by("user").len().sort("user")
    busy = many.filter(pl.col("len").is_between(*ACTIVE))["user"]
    if busy.len() < users:
        raise ValueError(f"only {busy.len()} active people in a log of {users * GENERATED_FOR_ONE}")
    drawn = busy.gather(np.random.default_rng(seed).permutation(busy.len())[:users]).sort()
    number = pl.DataFrame({"user": drawn, "_name": [f"{n:04d}" for n in range(users)]})
    kept = frame.join(number, on="user", how="inner", maintain_order="left")
    return kept.with_columns(user="_name", row=pl.int_range(kept.height)).drop("_name")


class Traces:
    """One log, all its covered traces, and the functions learned so far."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.covered = cache(self._covered)
        self.learned = cache(self._learned)
        self.background = cache(self._background)

    @cached_property
    def log(self) -> pl.DataFrame:
        """The searches of active people."""
        return active(self.setup.users, self.setup.seed)

    @cached_property
    def people(self) -> list[str]:
        """Their names, in order."""
        return self.log["user"].unique().sort().to_list()

    def _covered(self, method: str, draw: int) -> pl.DataFrame:
        """Cover all users with as many fakes as searches; return rows with `released_row` and the truth."""
        key = derive(Secret.choose(self.setup.seed).value, "study", method, str(draw))
        kind, settings = choose(method, {"fakes": 1.0})
        chunks = list(mix(kind(SearchHistory.of(self.log), settings, key)))
        rows, truth = (pl.concat([getattr(chunk, part) for chunk in chunks]) for part in ("trace", "truth"))
        return rows.hstack(truth)

    def fingerprint(self, method: str, draw: int) -> str:
        """Return a digest of the trace."""
        rows = self.covered(method, draw).select("user", "query", "time", "url", "fake")
        return hashlib.sha256(rows.write_csv().encode()).hexdigest()[:16]

    def made(self, method: str, draw: int) -> dict[str, Any]:
        """Count searches and fakes of each person, as Table 1 has them."""
        rows = self.covered(method, draw)
        each = rows.select("user", "query", "time", "fake").unique().group_by("user").agg(
            real=(~pl.col("fake")).sum(), fakes=pl.col("fake").sum()
        ).sort("user")  # fmt: skip
        return {
            "fingerprint": self.fingerprint(method, draw),
            "real": each["real"].to_list(),
            "fakes": each["fakes"].to_list(),
        }

    def tenth(self, person: int) -> int:
        """Return the tenth in which a user is attacked."""
        return person % TENTHS

    def others(self, tenth: int) -> list[str]:
        """Return those whom the attacker of a tenth may learn from."""
        return [name for n, name in enumerate(self.people) if self.tenth(n) != tenth]

    def _background(self, tenth: int) -> TermFrequencies:
        """Count the words of the others' own searches."""
        return TermFrequencies.of(self.log.filter(pl.col("user").is_in(self.others(tenth))))

    def lessons(self, method: str, tenth: int, people: int) -> tuple[Any, list[training.TrainingTrace]]:
        """Return how the searches at the beginning of some others' traces relate, and their labels."""
        others = self.others(tenth)
        known = self.covered(method, TRAINING).filter(pl.col("user").is_in(others))
        rows = beginnings(in_time(known.drop(TOLD)), LESSONS, people, tenth)
        read = features.read(rows.drop("fake"), self.background(tenth))
        first = rows[read.searches.first_row]
        user = first["user"].rank("dense").cast(pl.Int64).to_numpy()
        return read.relate, training.lessons(user, first["fake"].to_numpy(), LESSONS)

    def _learned(self, method: str, tenth: int, functions: int) -> Learned:
        clock = Clock()
        relate, lessons = self.lessons(method, tenth, functions * training.PEOPLE)
        found = training.learn(relate, lessons, functions, self._seed(tenth))
        return Learned(self.background(tenth), found, clock())

    def sized(self, method: str, tenth: int) -> Iterator[tuple[int, training.LinkageFunction]]:
        """Yield a function each from more and more of the others; the smaller sets are in the larger."""
        relate, lessons = self.lessons(method, tenth, max(SIZES))
        for size in dict.fromkeys(min(size, len(lessons)) for size in SIZES):
            draws = np.random.default_rng(self._seed(tenth))
            first, second, same = training.pairs(lessons[:size], training.PAIRS, draws)
            yield size, training.fit(relate(first, second), same, self._seed(tenth))

    def _seed(self, tenth: int) -> int:
        return self.setup.seed * 1000 + tenth * 100


class Target:
    """One user under attack, covered in one way."""

    def __init__(self, traces: Traces, method: str, person: int) -> None:
        self.traces, self.method, self.person = traces, method, person
        self.tenth = traces.tenth(person)
        self._own: Scores | None = None

    def read(self, draw: int) -> tuple[pl.DataFrame, features.Events]:
        """Read the user's trace under one draw of fakes; real searches keep their order."""
        covered = self.traces.covered(self.method, draw)
        rows = covered.filter(pl.col("user") == self.traces.people[self.person])
        ordered = rows.sort("time", "query", maintain_order=True)
        return rows, features.read(ordered, self.traces.background(self.tenth))

    def attack(self, draw: int) -> dict[str, Any]:
        """Score the pairs, real ones only once; cut, and return the privacy that is left."""
        learned = self.traces.learned(self.method, self.tenth, self.traces.setup.functions)
        clock = Clock()
        rows, read = self.read(draw)
        spent = {"read": clock()}
        size, real = len(read), ~read.searches.column("fake").to_numpy()
        relate, hers = read.relate, np.flatnonzero(real)
        known = (hers, self._own) if self._own is not None else None
        scores = pair_scores.scores(relate, size, learned.functions, "median", known)
        self._own = pair_scores.among(scores, size, hers)
        spent["score"] = clock()
        seed = self.traces.setup.seed
        two, ten = (pair_scores.cut(scores, size, parts, seed) for parts in (2, pair_scores.MANY))
        row = read.searches.column("released_row").to_numpy()
        found = told(rows, ClusteredTrace(row, two, ten, scores), seed)
        spent["cut"] = clock()
        new = size * (size - 1) // 2 - (hers.size * (hers.size - 1) // 2 if known else 0)
        return {"real": int(hers.size), "fakes": size - int(hers.size), "pairs": new, "cpu": spent, **found}

    def alone(self) -> dict[str, Any]:
        """Return the error of each function alone, and of all by median, mean, and majority."""
        learned = self.traces.learned(self.method, self.tenth, self.traces.setup.singles)
        clock = Clock()
        _, read = self.read(0)
        size, real = len(read), ~read.searches.column("fake").to_numpy()
        related = read.relate(*np.triu_indices(size, 1))
        spent = {"relate": clock()}
        each = np.stack([function(related) for function in learned.functions])
        spent["functions"] = clock()
        cuts = [self._cut(one, size) for one in each]
        spent["cuts"] = clock()
        low, high = np.triu_indices(size, 1)
        agreed = np.mean([(labels[low] == labels[high]).astype(np.float32) for labels in cuts], axis=0)
        ways = {"median": np.median(each, axis=0), "mean": each.mean(axis=0), "majority": agreed}
        return {
            "pairs": low.size,
            "each": [error(labels, real) for labels in cuts],
            **{name: error(self._cut(way, size), real) for name, way in ways.items()},
            "cpu": spent,
        }

    def sizes(self, functions: Sequence[tuple[int, training.LinkageFunction]]) -> dict[str, Any]:
        """Return relative privacy against one function each that learned from fewer or more people."""
        clock = Clock()
        _, read = self.read(0)
        size, real = len(read), ~read.searches.column("fake").to_numpy()
        hers = np.flatnonzero(real)
        related = read.relate(*np.triu_indices(size, 1))
        found = {}
        for many, function in functions:
            scores = function(related)
            without = self._cut(pair_scores.among(scores, size, hers), hers.size, pair_scores.MANY)
            found[str(many)] = scoring_covers.relative(
                without, self._cut(scores, size, pair_scores.MANY)[real]
            )
        return {"relative": found, "cpu": {"all": clock()}}

    def unsorted(self) -> float:
        """Return how far the user's topics are from those of the whole trace, which takes no attack."""
        rows, read = self.read(0)
        size = len(read)
        row, one = read.searches.column("released_row").to_numpy(), np.zeros(size, np.int64)
        scores = np.zeros(size * (size - 1) // 2, np.float32)
        distance: float = told(rows, ClusteredTrace(row, one, one, scores), 0, relative=False)["worst"]
        return distance

    def _cut(self, scores: Any, size: int, parts: int = 2) -> Longs:
        return pair_scores.cut(np.asarray(scores, np.float32), size, parts, self.traces.setup.seed)


def error(cluster: Longs, real: npt.NDArray[np.bool_]) -> float:
    """Return the mean of both errors over pairs."""
    return float(np.mean(scoring_covers.structure(cluster, real)))


def told(rows: pl.DataFrame, found: ClusteredTrace, seed: int, relative: bool = True) -> dict[str, Any]:
    """Return the privacy numbers of one person, as the attack `link-learned` does."""
    release = rows.drop(*TOLD[1:], "fake")
    truth = rows.select(*TOLD, "fake")
    scored = scoring_covers.score(
        TraceClusters((found,), seed, relative), release, Truth.of(release, truth), set(release["user"])
    )
    left = scored.privacy
    assert left is not None
    return {
        "structure": [left["structure"][name]["mean"] for name in _ERRORS],
        "relative": [left["relative"][name]["mean"] for name in _ERRORS] if relative else None,
        "worst": left["semantic"]["worst"]["mean"],
        "mean": left["semantic"]["mean"]["mean"],
        "hours": left["semantic"]["temporal"]["worst"]["mean"],
        "area": scored.details["area_under_curve"],
    }


def share_with_topic(log: pl.DataFrame, background: TermFrequencies) -> float:
    """Return the share of searches for which a category was found."""
    found = features.read(log, background).categories.paths.sizes
    return float(np.mean(found > 0))


def searches_of(log: pl.DataFrame) -> Longs:
    """Count everybody's searches."""
    return np.diff(SearchHistory.of(log).begins)
