"""The whole story on a made-up log: make, classify, protect, verify, measure."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from querycloak import certificate, io
from querycloak.attacks.run import attack
from querycloak.engines.classify import classify_file
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.release import protect
from querycloak.engines.request import Request
from querycloak.engines.verify import Question, read_truth, verify
from querycloak.measures.on_logs import JensenShannon, Pair, ReleaseRate, TopPreserved
from querycloak.testing.made_up import write_log

SEED = 7
#: The releases that the demo makes: a name, the methods, their settings.
RELEASES: tuple[tuple[str, list[str], dict[str, str]], ...] = (
    ("swap", ["swap"], {"k": "10"}),
    ("cohort", ["cohort"], {"k": "10"}),
    ("rules", ["rules"], {}),
    ("frequent-only", ["rules", "frequent-only"], {"k": "5"}),
    ("z-anonymity", ["z-anonymity"], {"z": "5", "window": "86400"}),
)


def run(folder: Path, users: int, progress: Callable[[str, int, int | None], None]) -> dict[str, Any]:
    """Tell the story into a folder; give it back as lines and as numbers."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    log, classified = folder / "log.tsv", folder / "classified.parquet"
    records = write_log(users, str(log), seed=SEED, progress=progress)["records"]
    topics = classify_file(str(log), str(classified), progress=progress)
    releases = [_release(folder, classified, *each) for each in RELEASES]
    story = {"folder": str(folder), "records": records, "classified": topics, "releases": releases}
    return story | {"lines": _lines(story, time.perf_counter() - started)}


def _release(
    folder: Path, log: Path, name: str, methods: list[str], settings: dict[str, str]
) -> dict[str, Any]:
    output, truth = folder / f"{name}.parquet", folder / f"{name}.truth.parquet"
    request = Request(str(log), str(output), parse_stages(methods, settings), truth=truth, seed=SEED)
    report = protect(request)
    found = verify(Question(output, original=str(log), truth=truth))
    pair = Pair(io.read(str(log)).frame, io.read(str(output), required=()).frame)
    return {
        "name": " + ".join(methods),
        "output": str(output),
        "verified": found.holds,
        "released": ReleaseRate()(pair),
        "promise": report.certificate["methods"][-1]["promise"],
        "top_queries": TopPreserved()(pair)["queries_100"],
        "topics_divergence": JensenShannon()(pair)["topics"],
        "attack": _attack(log, output, truth) if methods[-1] in ("swap", "cohort") else None,
    }


def _attack(log: Path, output: Path, truth: Path) -> dict[str, Any]:
    """Let the strongest attack that sees only the release guess the author of every record."""
    frames = io.read(str(output), required=()).frame, io.read(str(log)).frame
    document = certificate.read(certificate.path_of(output))
    (finding,) = attack(frames[0], document, frames[1], read_truth(truth), ["link-repeat"])
    return {"success": finding.success, "bound": finding.bound, "holds": finding.holds}


def _linked(release: dict[str, Any]) -> str:
    found = release["attack"]
    if found is None:
        return "labels kept"  # nothing hides who wrote which record: the label is the author's
    return f"{100 * found['success']:.1f}% {'within' if found['holds'] else 'ABOVE'} 1/k"


def _lines(story: dict[str, Any], seconds: float) -> list[str]:
    lines = [
        f"A made-up log of {story['records']:,} records, "
        f"{100 * story['classified']['answered']:.1f} % of them with a category.",
        "",
        f"{'release':<22}{'verified':>9}{'released':>10}{'top 100':>9}{'topics moved':>14}"
        f"{'authors guessed':>24}",
    ]
    for each in story["releases"]:
        lines.append(
            f"{each['name']:<22}{'yes' if each['verified'] else 'NO':>9}{100 * each['released']:>9.1f}%"
            f"{100 * each['top_queries']:>8.0f}%{each['topics_divergence']:>14.4f}{_linked(each):>24}"
        )
    lines += ["", *(f"{each['name']}: {each['promise']}" for each in story["releases"])]
    return [*lines, "", f"Done in {seconds:.0f} s. Releases, certificates and truth are in {story['folder']}"]
