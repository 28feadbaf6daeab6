"""Reproduces paper 000 on a synthetic log: `swap` over k and level, `cohort` over k, every attack on both."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from benchmarks.common import array_bytes

from papers.common import study
from papers.common.results import Line
from papers.p000.results import THREE
from querycloak import intervals
from querycloak.attacks.release_order import replay
from querycloak.attacks.run import attack
from querycloak.dictionary import Dictionaries
from querycloak.engines import codec
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import whole
from querycloak.kernels.order import group
from querycloak.kernels.siphash import key_words
from querycloak.log import Batch, IntArray, Log
from querycloak.measures.delay import release_rate_over_time
from querycloak.measures.profiles import Records, Tree, loss_of_records
from querycloak.synthetic import generate

KS = (3, 5, 10, 30, 50, 90, 100, 190, 200)
LEVELS = (1, 2, 3, 4, 6, 8, 11, 13)
#: Our attacks by part of the results. They cost more than the paper's; they are tried at some settings.
ATTACKS_OF = {
    "ours": ("link-window", "link-repeat"),
    "times": ("link-time",),
    "known": ("link-volume", "link-pairs", "link-background"),
}
TELLING_LEVELS = (1, 6, 13)
OURS_KS = (10, 3, 100)
#: The k and level of the release against which attackers with wrong ones are tried.
WRONG_ABOUT = (10, 6)
KEY = b"paper 000, made-up log, one key."
PIECE = 1 << 17


@dataclass(frozen=True)
class Workload:
    """A log with a row for each search, in order of arrival, and the same as integers."""

    frame: pl.DataFrame
    batch: Batch
    tree: Tree

    @classmethod
    def of(cls, users: int, seed: int) -> Workload:
        """Generate a log; several clicks of a search are one record."""
        piece = next(whole(generate(users, seed=seed, categories=True), KEY))
        searches = piece.filter(pl.col("row") == pl.col("_head")).sort("_place")
        names = ("user", "query", "time", "category")
        frame = searches.select(names).with_row_index("row").cast({"row": pl.Int64})
        texts = Dictionaries()
        pipeline = Pipeline(parse_stages(["swap"], {}), KEY, texts)
        batch = codec.encode_and_register(next(whole(Log(frame), KEY)), pipeline, 0)
        return cls(frame, batch, Tree.of(texts.category.texts().to_list()))


@dataclass(frozen=True)
class Outcome:
    """A release, the time it took, and the size of the method's arrays."""

    released: Batch
    seconds: float
    bytes: int
    facts: dict[str, Any]
    certificate: dict[str, Any]


def drive(work: Workload, method: str, settings: dict[str, str]) -> Outcome:
    """Push the log through a method piece by piece, as a stream comes; encoding is not timed."""
    stages = parse_stages([method], settings)
    pipeline = Pipeline(stages, KEY, work.batch.texts)
    parts, size = [], len(work.batch)
    begin = time.process_time()  # the machine is shared: waiting for a core does not count
    for start in range(0, size, PIECE):
        parts.append(pipeline.push(work.batch[start : start + PIECE]))
        pipeline.drain_dropped()
    held = array_bytes(pipeline.stages[0], work.batch.texts)
    parts.append(pipeline.close_at(size))
    seconds = time.process_time() - begin
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in Batch.COLUMNS}
    certificate = {"methods": [{"method": s.method, "settings": s.settings.as_dict()} for s in stages]}
    released = Batch.of(columns, work.batch.texts)
    return Outcome(released, seconds, held, pipeline.stages[0].facts(), certificate)


def functional(work: Workload, outcome: Outcome, level: int) -> dict[str, Any]:
    """Measure what figures 8 to 11, 13 and 14 show."""
    out, size = outcome.released, len(work.batch)
    waited = out.seq - (out.row + 1)
    left = np.ones(size, np.bool_)
    left[out.row] = False
    held = work.batch.texts.category.at_level(work.batch.category[left], level)
    people = int(work.batch.user.max()) + 1
    before, after = (Records(b.user, b.category) for b in (work.batch, out))
    return {
        "records": size,
        "released": len(out),
        "release_rate": len(out) / size,
        "release_rate_by_tenths": release_rate_over_time(np.sort(out.seq), size),  # type: ignore[arg-type]
        "delay_mean": float(waited.mean()),
        "delay_median": float(np.median(waited)),
        "delay_by_tenths": delay_by_tenths(waited, out.seq, size),
        "final_held": float(np.unique(held, return_counts=True)[1].mean()) if held.size else 0.0,
        "microseconds_per_record": 1e6 * outcome.seconds / size,
        "method_bytes": outcome.bytes,
        "profile": loss_of_records(work.tree, people, before, after),
        "facts": outcome.facts,
    }


def delay_by_tenths(waited: IntArray, seq: IntArray, size: int) -> list[float]:
    """Return the mean delay of the records released while each tenth of the log was read."""
    tenth = np.minimum((seq - 1) * 10 // size, 9)
    count = np.bincount(tenth, minlength=10)
    return (np.bincount(tenth, waited, minlength=10) / np.maximum(count, 1)).tolist()


def three(work: Workload, outcome: Outcome, k: int, level: int) -> dict[str, Any]:
    """Try the paper's three attacks on integers, as their classes do once they have encoded a release."""
    out, people = outcome.released, int(work.batch.user.max()) + 1
    category = work.batch.texts.category.at_level(out.category, level) + 1
    order, starts = group(category, int(category.max(initial=0)) + 1)
    author = work.batch.user[out.row]
    barring = outcome.certificate["methods"][0]["method"] == "swap"
    found = {}
    for name, rule in zip(THREE, (replay.RANDOM, replay.FREQUENT, replay.PROFILE), strict=True):
        begin = time.process_time()
        guess, _ = replay.relink(rule, k, barring, *key_words(KEY), order, starts, out.user, people)
        seconds = time.process_time() - begin
        share = intervals.share((guess == author).astype(np.float64), [author])
        assert share is not None
        line = {"success": share.value, "low": share.low, "high": share.high, "n": share.n}
        found[name] = line | {"bound": 1 / k, "holds": share.low <= 1 / k, "seconds": seconds}
    return found


def attacked(work: Workload, outcome: Outcome, names: tuple[str, ...]) -> dict[str, Any]:
    """Attack a release; return what the figures need of each finding."""
    out = outcome.released
    source = work.frame[out.row]
    label = work.batch.texts.user.decode(out.user).alias("user")
    numbers = pl.Series("released_row", np.arange(len(out)))
    release = source.select("query", "time", "category").with_columns(label, numbers)
    truth = pl.DataFrame(
        {
            "released_row": numbers,
            "original_row": out.row,
            "original_user": source["user"],
            "released_after": out.seq,
        }
    )
    found = attack(release, outcome.certificate, work.frame, truth, names, {}, seed=0)
    return {one.attack: _kept(one.as_dict()) for one in found}


def _kept(finding: dict[str, Any]) -> dict[str, Any]:
    names = ("game", "success", "low", "high", "bound", "holds", "n", "seconds", "not_applicable")
    details = finding["details"]
    parts = {name: details[name] for name in ("by_repeats", "chance", "area_under_curve") if name in details}
    return {name: finding[name] for name in names} | parts


@dataclass(frozen=True)
class Plan:
    """A method with its k and its level (`cohort`: how it assigns users), and what to try on its release.

    `part` is "base" for the measures, "three" for the paper's attacks, a name of `ATTACKS_OF` for ours,
    "wrong" for an attacker who is wrong about k or level.
    """

    part: str
    method: str
    k: int
    level: int = 1
    assign: str | None = None

    @property
    def name(self) -> str:
        """Name of the line."""
        return f"{self.part}: {self.method} k={self.k} {self.assign or f'level={self.level}'}"

    def chosen(self) -> dict[str, str]:
        """Return the method's settings as on the command line."""
        if self.assign:
            return {"k": str(self.k), "assign": self.assign}
        return {"k": str(self.k), "level": str(self.level)}


def plans(ks: tuple[int, ...], levels: tuple[int, ...]) -> Iterator[Plan]:
    """Yield what to measure, the most informative first."""
    telling = [level for level in levels if level in TELLING_LEVELS]
    further = [level for level in levels if level not in TELLING_LEVELS]
    some = [k for k in OURS_KS if k in ks]
    both, every = ("base", "three"), ("base", "three", *ATTACKS_OF)
    for k in some:
        yield from (Plan(part, "swap", k) for part in every)
        yield from (Plan(part, "cohort", k, assign="arrival") for part in every)
    yield from (Plan(part, "cohort", 10, assign="similar") for part in every)
    yield from (Plan(part, "swap", k, level) for level in telling for k in ks for part in both)
    yield from (
        Plan(part, "cohort", k, assign=how) for how in ("arrival", "similar") for k in ks for part in both
    )
    yield Plan("wrong", "swap", *WRONG_ABOUT)
    yield from (Plan(part, "swap", k, level) for level in further for k in some for part in both)
    yield from (Plan(part, "swap", k, level) for level in further for k in ks for part in both)
    yield from (Plan("ours", "swap", k, 13) for k in some if 13 in levels)


@dataclass
class Study(study.Study):
    """`swap` and `cohort` over their settings, with measures and attacks."""

    name = "p000"
    users: int = 157_000  # 5 million searches
    seed: int = 7

    def __post_init__(self) -> None:
        if self.quick:
            self.users = 2_000
        self._last: tuple[Plan, Outcome] | None = None

    @cached_property
    def work(self) -> Workload:
        """The log; one run on it compiles the kernels."""
        made = Workload.of(self.users, self.seed)
        drive(made, "swap", {"k": "2"})
        return made

    def identity(self) -> Line:
        """Return users and seed."""
        return {"users": self.users, "seed": self.seed}

    def about(self) -> Line:
        """Count records, users, and the categories of each level (Table 3)."""
        frame = self.work.frame
        paths = frame["category"].drop_nulls().unique()
        depth = paths.str.count_matches("/", literal=True) + 1
        added = {
            level: paths.filter(depth >= level).str.split("/").list.head(level).list.join("/").n_unique()
            for level in range(1, 14)
        }
        by_depth = frame["category"].drop_nulls().str.count_matches("/", literal=True) + 1
        return {
            "records": frame.height,
            "added_categories": added,
            "mean_depth": by_depth.mean(),
            "users_met": frame["user"].n_unique(),
        }

    def plans(self) -> Iterator[Plan]:
        """Yield the settings of the paper."""
        return plans(*(((3, 10), (1, 6)) if self.quick else (KS, LEVELS)))

    def measure(self, plan: Plan) -> Line:
        """Measure or attack one release; parts of the same setting share it."""
        work, last = self.work, self._last
        if last is None or replace(last[0], part=plan.part) != plan:
            last = plan, drive(work, plan.method, plan.chosen())
        self._last = plan, (outcome := last[1])
        line = asdict(plan)
        if plan.part == "base":
            line |= functional(work, outcome, plan.level)
        elif plan.part == "wrong":
            line["wrong"] = [
                {"k": k, "level": level} | three(work, outcome, k, level)
                for k in (plan.k // 2, plan.k, plan.k * 2)
                for level in (1, plan.level, 13)
            ]
        elif plan.part == "three":
            line["attacks"] = three(work, outcome, plan.k, plan.level)
        else:
            line["attacks"] = attacked(work, outcome, ATTACKS_OF[plan.part])
        return line | {"process_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
