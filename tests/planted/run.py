"""Plants each fault of `faults.toml` in a copy of the tree and expects its tests to fail.

`python -m tests.planted.run [--only N ...] [--sample M[:R]] [--all] [--jobs N]` ends with status 1 if a fault
is not noticed, or if tests fail without one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).with_name("faults.toml")
#: What tests need of the tree beside code.
_BESIDE = ("pyproject.toml", "README.md", "docs", "CHANGELOG.md", "Makefile")
_CAUGHT, _SURVIVES = "caught", "survives today"
#: pytest's status if no test ran.
_NONE = 5
#: Seconds after which the tests of one fault are given up.
_LIMIT = 3600


class Misplanted(Exception):
    """A fault that cannot be planted as it is written."""


@dataclass(frozen=True)
class Fault:
    """A change of the code, and the tests that must fail with it."""

    number: int
    about: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    expected: str = _CAUGHT
    reason: str = ""


def read(path: Path = FAULTS) -> list[Fault]:
    """Return the list of faults, by number."""
    found = [
        Fault(**one | {"tests": tuple(one["tests"])})
        for one in tomllib.loads(path.read_text("utf-8"))["fault"]
    ]
    numbers = [fault.number for fault in found]
    if len(set(numbers)) < len(numbers):
        raise Misplanted("two faults have the same number")
    for fault in found:
        known = fault.expected == _CAUGHT or (fault.expected == _SURVIVES and fault.reason)
        if not known or not fault.tests or fault.old == fault.new:
            raise Misplanted(f"fault {fault.number} is incomplete")
    return found


def find(fault: Fault, tree: Path) -> Path:
    """Return the one file that holds the old text: the recorded one, or another of `src` if code moved."""
    recorded = tree / fault.file
    if recorded.is_file() and (times := recorded.read_text("utf-8").count(fault.old)):
        if times == 1:
            return recorded
        raise Misplanted(f"fault {fault.number}: the old text occurs {times} times in {fault.file}")
    holding = {path: path.read_text("utf-8").count(fault.old) for path in (tree / "src").rglob("*.py")}
    times = sum(holding.values())
    if times != 1:
        raise Misplanted(f"fault {fault.number}: the old text occurs {times} times in src, not once")
    return next(path for path, count in holding.items() if count)


def copy(tree: Path) -> Path:
    """Copy what tests need to a new folder; files keep their times, so what Numba compiled stays valid."""
    tree.mkdir()
    for name in ("src", "tests", "benchmarks", "papers"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True)
    for name in _BESIDE:
        if (ROOT / name).is_dir():
            os.symlink(ROOT / name, tree / name)
        elif (ROOT / name).is_file():
            shutil.copy2(ROOT / name, tree / name)
    return tree


def forget_compiled(changed: Path, tree: Path) -> None:
    """Remove what Numba compiled from a file and from those that import it, since it holds their code too."""
    sources = {path: path.read_text("utf-8") for path in (tree / "src").rglob("*.py")}
    stale, names = {changed}, {changed.stem}
    while True:
        words = re.compile(rf"^(?:from|import) .*\b(?:{'|'.join(map(re.escape, names))})\b", re.MULTILINE)
        more = {path for path, text in sources.items() if "njit" in text and words.search(text)} - stale
        if not more:
            break
        stale |= more
        names |= {path.stem for path in more}
    for path in stale:
        for kept in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"):
            kept.unlink()


def pytest(tree: Path, tests: tuple[str, ...], *options: str) -> tuple[int, str]:
    """Run tests in a tree, with its own `src`; return the status and what was printed."""
    # The package is installed as a link to ROOT, so the sources of the copy must come first.
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["QUERYCLOAK_HYPOTHESIS"] = "unshrunk"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
    try:
        done = subprocess.run(
            words, cwd=tree, env=environment, capture_output=True, text=True, timeout=_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, f"not done after {_LIMIT} s"
    told = done.stdout + done.stderr
    if done.returncode == 0 and not re.search(r"\d+ passed", told):
        return _NONE, told  # all were skipped
    return done.returncode, told


def failing(faults: Sequence[Fault], tree: Path) -> set[str]:
    """Run the tests of all faults without any fault, and return those that do not pass."""
    tests = tuple(dict.fromkeys(test for fault in faults for test in fault.tests))
    status, told = pytest(tree, tests, "-rfE")
    if status not in (0, 1):
        raise Misplanted(f"the tests cannot run without a fault (status {status})\n{last_lines(told)}")
    wrong = re.findall(r"^(?:FAILED|ERROR) (.*)$", told, re.MULTILINE)
    return {test for test in tests if any(re.match(rf"{re.escape(test)}(?:::|\[| |$)", one) for one in wrong)}


def last_lines(text: str) -> str:
    """Return the end of what was printed."""
    return "\n".join(text.strip().splitlines()[-12:])


def check_import(tree: Path) -> None:
    """Stop unless the copy is what is imported."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    words = [sys.executable, "-c", "import querycloak; print(querycloak.__file__)"]
    found = subprocess.run(
        words, cwd=tree, env=environment, capture_output=True, text=True, check=True
    ).stdout
    if not Path(found.strip()).is_relative_to(tree):
        raise Misplanted(f"the copy is not what is imported: {found.strip()}")


def plant(fault: Fault, tree: Path) -> tuple[int, str]:
    """Run a fault's tests with the fault in place; put the old text back."""
    path = find(fault, tree)
    before = path.read_text("utf-8")
    times = path.stat()
    path.write_text(before.replace(fault.old, fault.new), "utf-8")
    forget_compiled(path, tree)
    try:
        return pytest(tree, fault.tests, "-x")
    finally:
        forget_compiled(path, tree)
        path.write_text(before, "utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def chosen(faults: list[Fault], only: list[int], sample: str | None, everything: bool) -> list[Fault]:
    """Return the faults to plant: those named, or a sample by number; survivors only if all are asked for."""
    if only:
        if unknown := set(only) - {fault.number for fault in faults}:
            raise Misplanted(f"there is no fault {min(unknown)}")
        return [fault for fault in faults if fault.number in only]
    found = [fault for fault in faults if everything or fault.expected == _CAUGHT]
    if sample is None:
        return found
    modulus, _, rest = sample.partition(":")
    remainder = int(rest or "0", 0) % int(modulus)  # a commit is given as 0x…
    return [fault for fault in found if fault.number % int(modulus) == remainder]


def judge(fault: Fault, status: int) -> str:
    """Return what is wrong with the outcome of a planted fault; nothing, if it is as expected."""
    if status not in (0, 1):
        return f"the tests could not run (status {status})"
    if fault.expected == _CAUGHT:
        return "" if status == 1 else "not noticed"
    return "" if status == 0 else "noticed now: write `caught` and the tests that notice it"


def outcomes(faults: Sequence[Fault], jobs: int) -> Iterator[tuple[Fault, str, str]]:
    """Yield each fault with what is wrong with its outcome, if anything, and what its tests printed."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trees = [copy(Path(folder).resolve() / f"tree{number}") for number in range(jobs)]
        check_import(trees[0])
        for fault in faults:
            find(fault, trees[0])  # all of them, before the first test runs
        shares = [faults[number::jobs] for number in range(jobs)]
        unfit = set[str]().union(*pool.map(failing, shares, trees))
        free: SimpleQueue[Path] = SimpleQueue()
        for tree in trees:
            free.put(tree)

        def outcome(fault: Fault) -> tuple[str, str]:
            if without := unfit.intersection(fault.tests):
                return "its tests fail without it", "\n".join(sorted(without))
            tree = free.get()
            try:
                status, told = plant(fault, tree)
            finally:
                free.put(tree)
            return judge(fault, status), told

        for fault, (problem, told) in zip(faults, pool.map(outcome, faults), strict=True):
            yield fault, problem, told


def main(words: list[str]) -> int:
    """Plant the chosen faults, and print what became of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted.run")
    parser.add_argument("--only", type=int, nargs="+", default=[], metavar="N")
    parser.add_argument("--sample", metavar="MODULUS[:REST]", help="those whose number has this rest (0)")
    parser.add_argument("--all", action="store_true", help="also those that no test notices yet")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="faults at a time")
    asked = parser.parse_args(words)
    faults = chosen(read(), asked.only, asked.sample, asked.all)
    wrong = []
    for fault, problem, told in outcomes(faults, min(asked.jobs, len(faults))) if faults else ():
        print(f"{fault.number:3} {problem or fault.expected}: {fault.about}", flush=True)
        if problem:
            wrong.append(fault.number)
            print(last_lines(told), flush=True)
    print(f"{len(faults) - len(wrong)} of {len(faults)} as expected" + (f"; not: {wrong}" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Misplanted as fault:
        sys.exit(f"error: {fault}")
