"""Reproduces paper 000 on a made-up log: `swap` over k and level, `cohort` over k, every attack on both.

    python -m benchmarks.paper_000            measures, plots, and writes the tables of the page
    python -m benchmarks.paper_000 --quick    a small log and few settings, to see that it works

Each result is one line of `results/paper-000.jsonl`; what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.__main__ import RESULTS, machine
from benchmarks.live import array_bytes
from querycloak import intervals
from querycloak.attacks.release_order import replay
from querycloak.attacks.run import attack
from querycloak.dictionary import Dictionaries
from querycloak.engines import codec
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import whole
from querycloak.kernels.siphash import key_words
from querycloak.log import Batch, IntArray, Log
from querycloak.measures.delay import release_rate_over_time
from querycloak.measures.profiles import Records, Tree, loss_of_records
from querycloak.synthetic import generate

KS = (3, 5, 10, 30, 50, 90, 100, 190, 200)
LEVELS = (1, 2, 3, 4, 6, 8, 11, 13)
#: The paper's own attacks, tried everywhere; ours see more and cost more, so they get some settings.
THREE = ("link-random", "link-frequent", "link-profile")
#: What is tried on a release, by part of the results; "base" are the measures.
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
    """A log of one row a search, in order of arrival, and the same as integers."""

    frame: pl.DataFrame
    batch: Batch
    tree: Tree

    @classmethod
    def of(cls, users: int, seed: int) -> Workload:
        """Make up a log; several clicks of a search are one record, as everywhere in QueryCloak."""
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
    """What a method let go, how long it took, and the arrays that it needed."""

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
    """Give the mean delay of the records that left while each tenth of the log was read."""
    tenth = np.minimum((seq - 1) * 10 // size, 9)
    count = np.bincount(tenth, minlength=10)
    return (np.bincount(tenth, waited, minlength=10) / np.maximum(count, 1)).tolist()


def three(work: Workload, outcome: Outcome, k: int, level: int) -> dict[str, Any]:
    """Try the paper's three attacks on integers, as their classes do once they have encoded a release."""
    out, people = outcome.released, int(work.batch.user.max()) + 1
    category = work.batch.texts.category.at_level(out.category, level) + 1
    order, starts = replay.group(category, int(category.max(initial=0)) + 1)
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
    """Attack a release and keep what the figures need of each finding."""
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
class Setting:
    """A method with its k and its level (`cohort`: how it seats people), and what to try on its release.

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
        """Name the line, so that a later run knows it is there."""
        return f"{self.part}: {self.method} k={self.k} {self.assign or f'level={self.level}'}"

    def chosen(self) -> dict[str, str]:
        """Give the method's settings as the command line would."""
        if self.assign:
            return {"k": str(self.k), "assign": self.assign}
        return {"k": str(self.k), "level": str(self.level)}


def settings(ks: tuple[int, ...], levels: tuple[int, ...]) -> Iterator[Setting]:
    """List what to measure, the most telling first, in case someone stops early."""
    telling = [level for level in levels if level in TELLING_LEVELS]
    further = [level for level in levels if level not in TELLING_LEVELS]
    some = [k for k in OURS_KS if k in ks]
    both, every = ("base", "three"), ("base", "three", *ATTACKS_OF)
    for k in some:
        yield from (Setting(part, "swap", k) for part in every)
        yield from (Setting(part, "cohort", k, assign="arrival") for part in every)
    yield from (Setting(part, "cohort", 10, assign="similar") for part in every)
    yield from (Setting(part, "swap", k, level) for level in telling for k in ks for part in both)
    yield from (
        Setting(part, "cohort", k, assign=how) for how in ("arrival", "similar") for k in ks for part in both
    )
    yield Setting("wrong", "swap", *WRONG_ABOUT)
    yield from (Setting(part, "swap", k, level) for level in further for k in some for part in both)
    yield from (Setting(part, "swap", k, level) for level in further for k in ks for part in both)
    yield from (Setting("ours", "swap", k, 13) for k in some if 13 in levels)


def measured(work: Workload, one: Setting, outcome: Outcome) -> dict[str, Any]:
    """Measure or attack one release."""
    line: dict[str, Any] = {"name": one.name} | asdict(one)
    if one.part == "base":
        line |= functional(work, outcome, one.level)
    elif one.part == "wrong":
        line["wrong"] = [
            {"k": k, "level": level} | three(work, outcome, k, level)
            for k in (one.k // 2, one.k, one.k * 2)
            for level in (1, one.level, 13)
        ]
    elif one.part == "three":
        line["attacks"] = three(work, outcome, one.k, one.level)
    else:
        line["attacks"] = attacked(work, outcome, ATTACKS_OF[one.part])
    line["process_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return line


def sweep(path: Path, about: dict[str, int], chosen: list[Setting]) -> None:
    """Measure every setting that the file does not have yet."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    if lines and {name: lines[0][name] for name in about} != about:
        raise SystemExit(f"{path.name} holds results of another log: move it away first")
    done = {line.get("name") for line in lines}
    waiting = [one for one in dict.fromkeys(chosen) if one.name not in done]
    if not waiting:
        return
    work = Workload.of(**about)
    drive(work, "swap", {"k": "2"})  # compiles
    if not lines:
        _append(path, about | {"records": work.frame.height, "machine": machine()} | _categories(work.frame))
    last, commit = None, machine()["commit"]
    for number, one in enumerate(waiting, 1):
        begin = time.perf_counter()
        if last is None or replace(last, part=one.part) != one:
            outcome = drive(work, one.method, one.chosen())
        last = one
        _append(path, measured(work, one, outcome) | {"commit": commit})
        print(f"{number}/{len(waiting)} {one.name}: {time.perf_counter() - begin:.1f} s", flush=True)


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _categories(frame: pl.DataFrame) -> dict[str, Any]:
    """Count the categories of each level, for Table 3."""
    paths = frame["category"].drop_nulls().unique()
    depth = paths.str.count_matches("/", literal=True) + 1
    cut = {
        level: paths.filter(depth >= level).str.split("/").list.head(level).list.join("/").n_unique()
        for level in range(1, 14)
    }
    by_depth = frame["category"].drop_nulls().str.count_matches("/", literal=True) + 1
    return {"added_categories": cut, "mean_depth": by_depth.mean(), "users_met": frame["user"].n_unique()}


def main() -> None:
    """Measure, then draw and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=157_000, help="157,000 give 5 M searches")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="2,000 users, k 3 and 10, levels 1 and 6")
    parser.add_argument(
        "--part",
        action="append",
        choices=("base", "three", "wrong", *ATTACKS_OF),
        help="measure this only, draw nothing",
    )
    parser.add_argument("--only-draw", action="store_true", help="draw what has been measured")
    chosen = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "paper-000.jsonl"
    if chosen.quick:
        path = RESULTS.parents[1] / "build" / "paper-000-quick.jsonl"
        path.parent.mkdir(exist_ok=True)
    users, ks, levels = (2_000, (3, 10), (1, 6)) if chosen.quick else (chosen.users, KS, LEVELS)
    if not chosen.only_draw:
        every = [one for one in settings(ks, levels) if not chosen.part or one.part in chosen.part]
        sweep(path, {"users": users, "seed": chosen.seed}, every)
    if not chosen.part:
        from benchmarks import paper_000_page

        paper_000_page.write(path)


if __name__ == "__main__":
    main()
