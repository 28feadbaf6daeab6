"""The demo: generate, classify, protect, verify and attack a synthetic log; then compare methods."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from querycloak import api
from querycloak.formatting import percent

Progress = Callable[[str, int, int | None], None]
SEED: Final = 7
#: The two releases that are shown in full, with a description.
RELEASES: Final = {
    "swap": "as published: swap users within a topic",
    "cohort": "our repair: k companions for good",
}
K: Final = 10
#: The methods that are compared on a smaller log.
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
USERS: Final = 600


def run(folder: Path, users: int, progress: Progress) -> dict[str, Any]:
    """Run all steps into a folder; return the result as lines and as numbers."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    log, classified = folder / "log.tsv", folder / "classified.parquet"
    records = api.generate_file(users, str(log), seed=SEED, progress=progress)["records"]
    topics = api.classify_file(str(log), str(classified), progress=progress)
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
    release = api.protect(log, name, k=K, output=output, truth=truth, seed=SEED)
    found = api.verify(output, original=log, truth=truth)
    (finding,) = api.attack(output, log, "link-repeat", truth=truth)
    return {
        "name": name,
        "output": str(output),
        "verified": found.holds,
        "released": api.measure(log, output, ["release_rate"])["release_rate"],
        "promise": release.certificate["methods"][-1]["promise"],
        "attack": {"success": finding.success, "bound": finding.bound, "holds": finding.holds},
    }


def _side_by_side(folder: Path, log: Path, progress: Progress) -> Any:
    compared = api.compare_files(
        str(log), folder / "report", methods=SIDE_BY_SIDE, attacks=ATTACKS,
        sample=USERS, seed=SEED, progress=progress,
    )  # fmt: skip
    if compared.missing is None:
        compared.write_picture(folder / "report" / "frontier.svg", keep="terms", attacker="any")
    return compared


def _lines(story: dict[str, Any], compared: Any, seconds: float) -> list[str]:
    lines = [
        f"A made-up log of {story['records']:,} records, "
        f"{100 * story['classified']['answered']:.1f} % of them with a category.",
        "",
        f"Who sees only the release guesses the author of a record (1/k is {percent(1 / K)}):",
    ]
    for each in story["releases"]:
        found = each["attack"]
        verdict = "within the bound" if found["holds"] else "ABOVE THE BOUND"
        checked = "guarantee verified" if each["verified"] else "guarantee FAILED"
        told = f"  {each['name']:<7} k={K}  {percent(found['success']):>7}  {verdict:<16} {checked}; "
        lines.append(told + RELEASES[each["name"]])
    lines += ["", "All methods side by side, on fewer people:", "", *compared.lines()[:-1]]
    return [*lines, f"Done in {seconds:.0f} s. Look at {story['report']}"]
