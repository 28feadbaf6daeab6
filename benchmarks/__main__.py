"""Runs every benchmark, prints the table, and keeps it with the machine and the commit."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Say where the numbers come from."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def read_write(scale: float) -> Any:
    """Read and write each format."""
    from benchmarks import read_write as bench

    with tempfile.TemporaryDirectory() as folder:
        return bench.measure(int(5_000_000 * scale), folder)


def generate(scale: float) -> Any:
    """Make up a log."""
    from benchmarks import generate as bench

    return bench.measure(int(30_000 * scale))


def classify(scale: float) -> Any:
    """Classify distinct queries."""
    from benchmarks import classify as bench

    return bench.measure(bench.made_up(int(200_000 * scale)))


def z_anonymity(scale: float) -> Any:
    """Compare with `zanon`."""
    from benchmarks import z_anonymity as bench

    return bench.measure(int(12_000 * scale))


def live(scale: float) -> Any:
    """Protect a stream: kernels, files, growth."""
    from benchmarks import live as bench

    return bench.measure(scale)


def km(scale: float) -> Any:
    """Delete terms at the paper's scale."""
    from benchmarks import km as bench

    return bench.measure(scale)


def dp(scale: float) -> Any:
    """Draw concepts, beside two float samplers; text to text."""
    from benchmarks import dp as bench

    return bench.measure(scale)


def microagg_kernels(scale: float) -> Any:
    """Group people by meaning, exactly and by blocks, beside a general MDAV."""
    from benchmarks import microagg_kernels as bench

    return bench.measure(scale)


def crowd(scale: float) -> Any:
    """Simulate crowds of up to ten million members."""
    from benchmarks import crowd as bench

    return bench.measure(scale)


def crowd_peers(scale: float) -> Any:
    """Send queries through 20 real peers."""
    from benchmarks import crowd_peers as bench

    return bench.measure(scale)


def link_learned(scale: float) -> Any:
    """Attack one person with many searches and fakes."""
    from benchmarks import link_learned as bench

    return bench.measure(int(1790 * scale))


def start_up(scale: float) -> Any:
    """Import the package and print the help, five times each; the best counts."""
    import time

    def best(*command: str) -> float:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - begin)
        return round(min(times), 3)

    program = str(Path(sys.executable).with_name("querycloak"))
    bare = best(sys.executable, "-c", "pass")
    imported = best(sys.executable, "-c", "import querycloak")
    return {"python_alone": bare, "import_querycloak": imported, "help": best(program, "--help")}


BENCHMARKS: tuple[Callable[[float], Any], ...] = (
    start_up,
    read_write,
    generate,
    classify,
    z_anonymity,
    live,
    km,
    dp,
    microagg_kernels,
    crowd,
    crowd_peers,
    link_learned,
)


def flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Turn nested results into `a.b: value` lines."""
    if not isinstance(values, dict):
        return {prefix: values}
    return {
        k: v
        for name, part in values.items()
        for k, v in flat(part, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def main() -> None:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which to run; all if none is given")
    parser.add_argument("--scale", type=float, default=1.0, help="a tenth of the size: 0.1")
    chosen = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "scale": chosen.scale}
    print("; ".join(f"{name} {value}" for name, value in results["machine"].items()))
    for bench in BENCHMARKS:
        if chosen.names and bench.__name__ not in chosen.names:
            continue
        results[bench.__name__] = bench(chosen.scale)
        print(f"\n{bench.__name__}")
        for name, value in flat(results[bench.__name__]).items():
            print(
                f"  {name:<48}{value:>14,}"
                if isinstance(value, int | float)
                else f"  {name:<48}{value!s:>14}",
                flush=True,
            )
    if not chosen.names and chosen.scale == 1.0:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "latest.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
