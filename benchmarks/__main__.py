"""Runs benchmarks, prints their figures beside the stored ones, and stores them with machine and commit.

python -m benchmarks                   what `make bench` runs
python -m benchmarks streams km        some of them
python -m benchmarks --scale 0.1       a tenth of the size; figures are not comparable with stored ones
python -m benchmarks --list            all names
python -m benchmarks spark --store     replaces the stored figures in `benchmarks/results/`
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks.common import PROGRAM, RESULTS, best_of, machine


@dataclass(frozen=True)
class Benchmark:
    """A function of the scale, and what it measures; `usual` ones are part of `make bench`."""

    where: str
    measures: str
    usual: bool = False

    def run(self, scale: float) -> Any:
        """Measure."""
        module, _, function = self.where.partition(":")
        return getattr(import_module(f"benchmarks.{module}"), function or "measure")(scale)


BENCHMARKS = {
    "start-up": Benchmark("__main__:start_up", "import of the package and `--help`", usual=True),
    "formats": Benchmark("formats", "reading and writing by format", usual=True),
    "synthetic": Benchmark("synthetic", "generating a log", usual=True),
    "synthetic-statistics": Benchmark("synthetic:statistics", "statistics of the log beside AOL's"),
    "synthetic-queries": Benchmark("synthetic:different_queries", "different queries of a log of AOL's size"),
    "classify": Benchmark("classify", "queries a second of the classifier", usual=True),
    "classify-accuracy": Benchmark("classify:report_accuracy", "accuracy on the labelled set"),
    "classify-reliability": Benchmark("classify:report_reliability", "right answers by confidence"),
    "z-anonymity": Benchmark("streams:z_anonymity", "z-anonymity beside `zanon`", usual=True),
    "streams": Benchmark("streams", "`swap` and `cohort`: kernels, growth, file to file", usual=True),
    "km": Benchmark("km", "`km` at the paper's scale", usual=True),
    "dp": Benchmark("dp", "`dp-semantic` beside two float samplers", usual=True),
    "threshold-dp": Benchmark("dp:threshold", "`threshold-dp` and OpenDP's noise"),
    "microaggregation": Benchmark(
        "microaggregation", "groups, exact and in blocks, beside PyPI's", usual=True
    ),
    "microaggregation-groups": Benchmark("microaggregation:groups", "how similar members of groups are"),
    "crowd": Benchmark("crowd", "simulated crowds of up to ten million members", usual=True),
    "crowd-peers": Benchmark("crowd:peers", "queries through 20 real peers", usual=True),
    "crowd-bound": Benchmark("crowd:bound", "the cost of `most_own`"),
    "attacks": Benchmark("attacks", "`link-learned` on one target with many searches", usual=True),
    "link-learned-released": Benchmark("attacks:released", "success of `link-learned` on releases"),
    "guard": Benchmark("attacks:guard", "cost and gain of `guard` and `level=auto` of `swap`"),
    "cohort-erasure": Benchmark("erasure", "erased users whom the labels of `cohort` show"),
    "obfuscation": Benchmark("obfuscation", "covering users, by method"),
    "wal": Benchmark("wal", "the write-ahead log beside a plain file"),
    "sinks": Benchmark("sinks", "released lines and profiles beside a plain file"),
    "service": Benchmark("service", "the live service beside the same HTTP stack without protection"),
    "service-soak": Benchmark("service:soak_half_an_hour", "memory and delay over half an hour"),
    "kafka": Benchmark("kafka", "topic to topic beside a loop that copies messages"),
    "spark": Benchmark("spark", "one machine and Spark, at 1, 2, 4 and 8 times the size"),
    "spark-streaming": Benchmark("spark:streaming", "a worker of a streaming query"),
}


def start_up(scale: float) -> dict[str, float]:
    """Import the package and print the help, five times each; the best counts."""

    def best(*command: str) -> float:
        return best_of(lambda: subprocess.run(command, check=True, capture_output=True), 5)

    return {
        "python_alone": best(sys.executable, "-c", "pass"),
        "import_querycloak": best(sys.executable, "-c", "import querycloak"),
        "help": best(PROGRAM, "--help"),
    }


def flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested figures by names such as `a.b`."""
    if not isinstance(values, dict):
        return {prefix: values}
    return {
        k: v
        for name, part in values.items()
        for k, v in flat(part, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def stored(name: str) -> dict[str, Any]:
    """Return the stored figures of a benchmark, or none."""
    path = RESULTS / f"{name}.json"
    return flat(json.loads(path.read_text("utf-8"))["figures"]) if path.exists() else {}


def compared(figures: Any, before: dict[str, Any]) -> list[str]:
    """Return a line for each figure, with its ratio to the stored one."""
    lines = []
    for name, value in flat(figures).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        text = f"  {name:<60}{value:>16,}" if number else f"  {name:<60}{value!s:>16}"
        old = before.get(name)
        if number and isinstance(old, int | float) and old:
            text += f"{value / old:>9.2f} of {old:,}"
        lines.append(text)
    return lines


def main() -> None:
    """Run, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], metavar="NAME", help="see --list")
    parser.add_argument("--scale", type=float, default=1.0, help="a tenth of the size: 0.1")
    parser.add_argument("--store", action="store_true", help="replace the stored figures")
    parser.add_argument("--list", action="store_true", help="print all names")
    chosen = parser.parse_args()
    if chosen.list:
        for name, one in BENCHMARKS.items():
            print(f"{name:<26}{'usual ' if one.usual else '':<7}{one.measures}")
        return
    origin = machine()
    print("; ".join(f"{name} {value}" for name, value in origin.items()))
    for name in chosen.names or [name for name, one in BENCHMARKS.items() if one.usual]:
        print(f"\n{name}: {BENCHMARKS[name].measures}")
        figures = BENCHMARKS[name].run(chosen.scale)
        before = stored(name) if chosen.scale == 1.0 else {}
        print("\n".join(compared(figures, before)), flush=True)
        if chosen.store:
            document = {"machine": origin, "scale": chosen.scale, "figures": figures}
            (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
