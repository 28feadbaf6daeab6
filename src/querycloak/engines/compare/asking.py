"""What `querycloak compare` does with what it was asked: a plan, a run, a report, and a gate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from querycloak.engines.compare import presets
from querycloak.engines.compare.asked import parse
from querycloak.engines.compare.gate import Gate
from querycloak.engines.compare.plan import Plan, attacks_of, measures_of
from querycloak.engines.compare.run import Reading, compare
from querycloak.engines.request import Progress, silent
from querycloak.errors import UsageError
from querycloak.log import Log
from querycloak.report.comparison import Comparison
from querycloak.report.comparison.files import write_all


@dataclass(frozen=True)
class Compared:
    """A comparison with the files that tell it and, if there was a gate, what did not pass."""

    comparison: Comparison
    folder: Path
    written: list[str]
    seconds: float
    faults: list[dict[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain values, for `--json`."""
        rest = {"written": self.written, "seconds": round(self.seconds, 1), "faults": self.faults}
        return {"comparison": self.comparison.data, **rest}

    def lines(self) -> list[str]:
        """Tell it in a few lines."""
        from querycloak.report.comparison import told, words

        lines = [*told.in_short(self.comparison), "", *words.in_short(self.comparison), ""]
        lines += [f"gate: {one['candidate']}: {one['why']}" for one in self.faults]
        return [*lines, f"Done in {self.seconds:.0f} s. Look at {self.folder / self.written[0]}"]


def planned(
    methods: Sequence[str] = (),
    preset: str | None = None,
    attacks: Sequence[str] = (),
    measures: Sequence[str] = (),
    sample: int | None = None,
    repeats: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
) -> Plan:
    """Make a plan of what was asked: a preset, methods of one's own, or both."""
    if not methods and preset is None:
        raise UsageError("nothing to compare was named", hint="name methods with -m, or `--preset quick`")
    own = parse(methods)
    plan = presets.preset(preset) if preset else presets.own(own)
    known = {one.key() for one in plan.candidates}
    added = tuple(one for one in own if one.key() not in known)
    return plan.with_(
        candidates=(*plan.candidates, *added),
        attacks=attacks_of(attacks),
        measures=measures_of(measures),
        sample=sample,
        repeats=repeats,
        seconds=seconds,
        seed=seed,
        asked=_words(methods, preset, attacks, measures, sample, repeats, seconds),
    )


def _words(
    methods: Sequence[str],
    preset: str | None,
    attacks: Sequence[str],
    measures: Sequence[str],
    sample: int | None,
    repeats: int | None,
    seconds: float | None,
) -> tuple[str, ...]:
    """Give the words that ask for a plan again, for the report; the seed is told there anyway."""
    words = [] if preset is None else ["--preset", preset]
    for flag, texts in (("-m", methods), ("-a", attacks), ("-u", measures)):
        words += [word for text in texts for word in (flag, text)]
    for flag, number in (("--sample", sample), ("--repeats", repeats), ("--seconds", seconds)):
        words += [] if number is None else [flag, f"{number:g}"]
    return tuple(words)


def compare_files(
    log: str | Log,
    output: Path,
    *,
    gate: Path | None = None,
    progress: Progress = silent,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
    halves: bool = True,
    **asked: Any,
) -> Compared:
    """Compare, and write the report into a folder."""
    started = time.monotonic()
    plan, limits = planned(**asked), Gate.read(gate) if gate else None

    def told(done: int, total: int, rest: float) -> None:
        progress(f"about {_time(rest)} left", done, total)

    reading = Reading(format, mapping or {}, strict)
    found = compare(log, plan, output, reading=reading, halves=halves, progress=progress, told=told)
    written = write_all(found, output)
    faults = limits.faults(found) if limits else []
    return Compared(found, output, written, time.monotonic() - started, faults)


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
