"""Writes docs/explanation/sizing.md from the stored figures of `spark`: costs, a model, and its error.

python -m benchmarks.sizing
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "sizing.md"
#: What the live service took of a processor for each record (docs/explanation/live-service.md), in seconds.
SERVICE = {
    "10 in a request": 136e-6,
    "100 in a request": 20e-6,
    "1,000 in a request": 9.6e-6,
    "Kafka to Kafka": 11.2e-6,
}
#: How much of a core one should plan for: the rest is for peaks, restarts and the operating system.
USE = 0.5
CORES = 2  # of the machine that was measured


def seconds(run: dict[str, Any], engine: str) -> float:
    """Return the clock's seconds of a run without the start of its programs."""
    if engine == "spark":
        return float(run["spark"]["whole"])
    parts = run["local"]["parts"]
    return float(sum(parts.values()) - parts["start"])


def model(runs: list[dict[str, Any]], engine: str) -> tuple[float, float]:
    """Fit seconds = fixed + slope × millions to the two smallest sizes."""
    one, two = sorted(runs, key=lambda run: run["records"])[:2]
    slope = (seconds(two, engine) - seconds(one, engine)) / ((two["records"] - one["records"]) / 1e6)
    return max(seconds(one, engine) - slope * one["records"] / 1e6, 0.0), slope


def modelled(found: dict[str, Any], run: dict[str, Any], engine: str) -> float:
    """Return the seconds of a run by the model of its method."""
    plain = [r for r in found["runs"] if r["method"] == run["method"] and not r["skewed"]]
    fixed, slope = model(plain, engine)
    return fixed + slope * run["records"] / 1e6


def table(head: str, rows: list[list[str]], align: str = "") -> str:
    """Write a table of Markdown; all columns but the first are right-aligned unless `align` differs."""
    columns = head.count("|") + 1
    lines = [f"| {head} |", align or "| --- |" + " ---: |" * (columns - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def measured(found: dict[str, Any]) -> str:
    """Set both engines side by side, with what the model says."""
    rows = []
    for run in found["runs"]:
        cells = [
            f"`{run['method']}`{', 30 % in one category' if run['skewed'] else ''}",
            f"{run['records'] / 1e6:.1f} M",
        ]
        for engine in ("local", "spark"):
            cells += [f"{seconds(run, engine):.1f} s", f"{modelled(found, run, engine):.1f} s"]
            cells.append(f"{run[engine]['peak_mb'] / 1024:.1f} GB")
        rows.append([*cells, f"{seconds(run, 'spark') / seconds(run, 'local'):.1f}"])
    head = "method | records | one machine | model | memory | Spark `local[2]` | model | memory | ratio"
    return table(head, rows)


def misses(found: dict[str, Any]) -> str:
    """Return how far the line is off at the larger sizes."""
    told = []
    for engine, name in (("local", "one machine"), ("spark", "Spark")):
        off: dict[int, list[float]] = {}
        for run in found["runs"]:
            size = round(run["records"] / found["base"])
            off.setdefault(size, []).append(modelled(found, run, engine) / seconds(run, engine) - 1)
        worst = {size: max(found, key=abs) for size, found in off.items() if size > 2}
        parts = [f"{100 * miss:+.0f} % at {size} times" for size, miss in sorted(worst.items())]
        told.append(f"on {name} its largest misses are {' and '.join(parts)}")
    return "; ".join(told)


def parts(found: dict[str, Any]) -> str:
    """Split the costs of the second size, in seconds for each million records."""
    rows = []
    for run in found["runs"]:
        if "scan" not in run["spark"]["parts"] or run["records"] <= found["base"]:
            continue
        millions = run["records"] / 1e6
        for engine in ("local", "spark"):
            told = run[engine]["parts"]
            steps = ", ".join(
                f"{name} {max(told[name], 0) / millions:.2f}" for name in told if name != "start"
            )
            name = "one machine" if engine == "local" else "Spark"
            rows.append([f"`{run['method']}`", name, f"{told['start']:.0f} s", steps])
    head = "method | engine | start | seconds for each million records"
    return table(head, rows, "| --- | --- | ---: | --- |")


def cores(found: dict[str, Any]) -> str:
    """Return what stated loads need."""
    plain = [run for run in found["runs"] if run["method"] == "cohort" and not run["skewed"]]
    largest = max(plain, key=lambda run: run["records"])
    local, spark = (seconds(largest, engine) * CORES / largest["records"] for engine in ("local", "spark"))
    live = {f"live service, {way}": cost for way, cost in SERVICE.items()}
    batch = {"`protect`, one machine": local, "`protect`, Spark": spark}
    loads = (
        ("40,000 searches a second", 40_000.0, live),
        ("1 T a year", 1e12 / (365 * 86400), live),
        ("36 M in one hour of the night", 1e4, batch),
        ("1 T a year, night by night, in six hours each", 1e12 / 365 / 21600, batch),
    )
    rows = [
        [name, way, f"{cost * 1e6:.1f} µs", f"{max(rate * cost / USE, 0.1):.1f}"]
        for name, rate, ways in loads
        for way, cost in ways.items()
    ]
    return table("load | way | processor for each record | cores, half used", rows)


def page(found: dict[str, Any]) -> str:
    """Write the page."""
    return f"""# Sizing: what it costs, and how many cores a load needs

The figures are measured by `python -m benchmarks spark` on two cores and 24 GB, the page is written from
them by `python -m benchmarks.sizing`. Your machines differ; run it there.

## Measured

The same made-up log, once, twice, four and eight times as large, from Parquet to Parquet, without the
audit. Each run is a process of its own. Seconds are of the clock, without the start of programs; memory
is the peak of all processes together.

{measured(found)}

The model is a straight line through the two smallest sizes, seconds = fixed + slope × records. The larger
sizes check it: {misses(found)}.
What it does not know: rows of one moment lie further apart in a larger file, so that more of it is read for
each piece, and caches no longer hold what is looked up. So plan with the cost that was measured at your
size, as the table of cores below does with the largest.

## In its parts

At twice the smallest size:

{parts(found)}

`places` and `protect` are Python: rows cross from Java to Python and back for each. The shuffles sort and
write rows to disk, encrypted. `count and slice` reads only times, three times over. On one machine none
of this exists, which is why Spark pays only where one machine does not do: above its memory, or where the
log is on a cluster already.

## How many cores

cores = records a second × processor seconds for each record / {USE}. Half of each core is kept for peaks
and for catching up after a restart. Processor seconds are those of the largest size times the {CORES} cores
that were busy, an upper bound; those of the live service come from [its own
page](live-service.md#what-it-costs).

{cores(found)}

`swap` and `cohort` split by their keys without limit in principle. In practice `cohort` splits into
`shards` (8 unless you say otherwise; it must stay the same for a source), and `swap` at level 1 into
sixteen topics, the largest of which has about a fifth of all searches: more cores than that wait for it.
Use a deeper level, or `cohort` with more shards, on larger clusters.

## Methods that need one machine

| method | what limits it |
| --- | --- |
| `microagg-*` | 4 bytes a pair of people: 400 MB for 10,000; above that in blocks or by candidates |
| `graph-suppress`, `threshold-dp`, `swap` with `guard` | the log in memory: 0.7 GB a million records |
| `dp-histogram` of the whole log, `z-anonymity` with categories | the same |
| `km` without `window` | 367,803 people were [run](../papers/paper-001.md) |

`protect` holds numbers of release and original for its audit, with either engine: at 5 million records its
peak was 3.3 GB, 2.2 GB before the audit (`python -m benchmarks streams`).
"""


if __name__ == "__main__":
    PAGE.write_text(page(json.loads((RESULTS / "spark.json").read_text("utf-8"))["figures"]), "utf-8")
