"""The whole story on a made-up log: make, classify, protect, verify, attack; then methods side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from querycloak import certificate, formats
from querycloak.attacks.run import attack
from querycloak.engines.classify import classify_file
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.release import ReleaseJob, make_release
from querycloak.engines.verify import VerifyJob, verify
from querycloak.formatting import percent
from querycloak.measures.base import LogPair
from querycloak.measures.counts import ReleaseRate
from querycloak.report.comparison.chart import svg
from querycloak.report.comparison.files import ComparisonReport, compare_files
from querycloak.synthetic.generator import write_log
from querycloak.truth import read_truth

Progress = Callable[[str, int, int | None], None]
SEED: Final = 7
#: The two releases that are told in full: a name, and what it is.
RELEASES: Final = {
    "swap": "as published: swap users within a topic",
    "cohort": "our repair: k companions for good",
}
K: Final = 10
#: What is set side by side on a smaller log.
SIDE_BY_SIDE: Final = (
    "rules",
    "swap:k=3,10,30",
    "cohort:k=3,10,30",
    "cohort:assign=similar:k=3,10",
    "km:m=2:k=2,5",
    "dp-semantic:per=query:epsilon=5",
    "microagg-semantic:k=3,5",
    "microagg-topic:k=3,5",
    "frequent-only:k=5",
)
ATTACKS: Final = ("link-repeat", "link-time", "link-volume", "link-overlap", "link-background", "guess")
PEOPLE: Final = 600


def run(folder: Path, users: int, progress: Progress) -> dict[str, Any]:
    """Run all steps into a folder; return the result as lines and as numbers."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    log, classified = folder / "log.tsv", folder / "classified.parquet"
    records = write_log(users, str(log), seed=SEED, progress=progress)["records"]
    topics = classify_file(str(log), str(classified), progress=progress)
    releases = [_release(folder, classified, name, progress) for name in RELEASES]
    compared = _side_by_side(folder, classified, progress)
    story = {
        "folder": str(folder),
        "records": records,
        "classified": topics,
        "releases": releases,
        "comparison": compared.comparison.as_dict(),
        "report": str(compared.folder / compared.written[0]),
    }
    return story | {"lines": _lines(story, compared, time.perf_counter() - started)}


def _release(folder: Path, log: Path, name: str, progress: Progress) -> dict[str, Any]:
    progress(name, 0, None)
    output, truth = folder / f"{name}.parquet", folder / f"{name}.truth.parquet"
    stages = parse_stages([name], {"k": str(K)})
    make_release(ReleaseJob(str(log), str(output), stages, truth=truth, seed=SEED))
    found = verify(VerifyJob(output, original=str(log), truth=truth))
    before, after = formats.read(str(log)).frame, formats.read(str(output), required=()).frame
    document = certificate.read(certificate.path_of(output))
    (finding,) = attack(after, document, before, read_truth(truth), ["link-repeat"])
    return {
        "name": name,
        "output": str(output),
        "verified": found.holds,
        "released": ReleaseRate()(LogPair(before, after)),
        "promise": document["methods"][-1]["promise"],
        "attack": {"success": finding.success, "bound": finding.bound, "holds": finding.holds},
    }


def _side_by_side(folder: Path, log: Path, progress: Progress) -> ComparisonReport:
    compared = compare_files(
        str(log), folder / "report", methods=SIDE_BY_SIDE, attacks=ATTACKS,
        sample=PEOPLE, seed=SEED, progress=progress,
    )  # fmt: skip
    if compared.missing is None:
        (folder / "report" / "frontier.svg").write_text(svg(compared.comparison, "terms", "any"), "utf-8")
    return compared


def _lines(story: dict[str, Any], compared: ComparisonReport, seconds: float) -> list[str]:
    lines = [
        f"A made-up log of {story['records']:,} records, "
        f"{100 * story['classified']['answered']:.1f} % of them with a category.",
        "",
        f"Who sees only the release guesses the author of a record (1/k is {percent(1 / K)}):",
    ]
    for each in story["releases"]:
        found = each["attack"]
        verdict = "within the bound" if found["holds"] else "ABOVE THE BOUND"
        checked = "promise verified" if each["verified"] else "promise NOT kept"
        told = f"  {each['name']:<7} k={K}  {percent(found['success']):>7}  {verdict:<16} {checked}; "
        lines.append(told + RELEASES[each["name"]])
    lines += ["", "All methods side by side, on fewer people:", "", *compared.lines()[:-1]]
    return [*lines, f"Done in {seconds:.0f} s. Look at {story['report']}"]
