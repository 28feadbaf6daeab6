"""A small comparison made up for tests: two lines with bounds, a hostile name, a table, one that failed."""

from __future__ import annotations

from querycloak.compare.result import FORMAT, Comparison, VariedSetting, combine_runs
from querycloak.knowledge import Knowledge
from querycloak.protector import Labels

HOSTILE = "<img src=x onerror=alert(1)> & | `k=3`"
OVERLAP = "link-overlap on=<terms>"
ATTACKS = [
    {
        "name": "link-time",
        "label": "link-time",
        "game": "attribution",
        "sees": ["release"],
        "summary": "Looks at times.",
    },
    {
        "name": "link-pairs",
        "label": "link-pairs",
        "game": "linkage",
        "sees": ["release"],
        "summary": "Scores pairs.",
    },
    {
        "name": "link-overlap",
        "label": OVERLAP,
        "game": "identification",
        "sees": ["release", "histories"],
        "summary": "Knows histories.",
    },
    {"name": "guess", "label": "guess", "game": "control", "sees": ["release"], "summary": "Guesses."},
]


def finding(label, success, *, bound=None, why=None):
    game = next(one["game"] for one in ATTACKS if one["label"] == label)
    unit = {"attribution": "record", "linkage": "pair", "identification": "user", "control": "record"}[game]
    found = {
        "attack": label.split()[0],
        "game": game,
        "unit": unit,
        "bound": bound,
        "n": 0,
        "not_applicable": why,
    }
    if success is None:
        return found | {"success": None}
    numbers = {"success": success, "low": max(0.0, success - 0.01), "high": min(1.0, success + 0.01)}
    people = {"median_user": success / 2, "worst_decile_user": min(1.0, success * 2), "seconds": 0.1}
    return found | numbers | people | {"n": 1000, "holds": None}


def measures(terms, *, topics=0.01, sessions=0.1, clicks=0.2, records=0.9, unique=0.6):
    return {
        "release_rate": records,
        "top_preserved.queries_100": 0.75,
        "jensen_shannon.topics": topics,
        "profile_loss.topics": 0.3,
        "terms_kept": terms,
        "sessions_kept": sessions,
        "clicks_kept": clicks,
        "unique_texts": unique,
    }


def made(
    name,
    line,
    *,
    release=None,
    knowing=None,
    bound=None,
    labels="mixed",
    value=None,
    audit="kept",
    leaves=("several accounts of one person",),
    repeats=2,
    failed=None,
    settings=None,
    **kept,
):
    """Put a candidate together from runs, as a comparison does; each run differs a little."""
    method = line.split()[0].strip("<>b") or "evil"
    about = {
        "name": name,
        "series": line,
        "methods": [method],
        "settings": {method: settings or {"k": value}},
        "varied": None if value is None else VariedSetting("k", value),
    }
    if failed:
        return combine_runs(about, [{"failed": failed}])
    runs = []
    for run in range(repeats):
        nothing = "there is nothing to link"
        found = {
            "link-time": finding("link-time", release and release + 0.002 * run, bound=bound, why=nothing),
            "link-pairs": finding("link-pairs", 0.8 if release else None, why=nothing),
            "link-overlap on=<terms>": finding(
                "link-overlap on=<terms>", knowing and knowing + 0.002 * run, why=nothing
            ),
            "guess": finding("guess", 0.001),
        }
        for one in found.values():
            one["not_applicable"] = one["not_applicable"] if one["success"] is None else None
            one["labels"] = (Labels.GROUP if labels == "mixed" else Labels.OWN).value
            known = Knowledge.HISTORIES if one["game"] == "identification" else Knowledge.RELEASE
            one["knowledge"] = known.value
        numbers = {"terms_kept": {"not_applicable": "counts only"}} if labels == "table" else measures(**kept)
        runs.append(
            {
                "promises": [
                    {"method": method, "words": f"at least {value} <users>", "audit": audit, "facts": {},
                     "does_not_protect_against": list(leaves)}
                ],
                "labels": labels,
                "findings": found,
                "measures": {name: part if isinstance(part, dict) else part - 0.001 * run
                             for name, part in numbers.items()},
                "seconds": {"protect": 1.25, "attack": 2.5, "measure": 0.5},
                "peak_mb": 321,
            }
        )  # fmt: skip
    return combine_runs(about, runs)


def comparison(*candidates, sampled=True, preset="quick", not_run=()):
    log = {
        "records": 5000,
        "people": 200,
        "of_records": 50_000 if sampled else 5000,
        "of_people": 2000 if sampled else 200,
        "sampled": sampled,
        "categories": "given",
        "classified": 1.0,
        "columns": ["user", "query"],
        "skipped": {"no query": 3},
    }
    data = {
        "format": FORMAT,
        "version": "0.1.0",
        "preset": preset,
        "asked": ["--preset", preset, "--sample", "200", "--repeats", "2"] if preset else [],
        "seed": 7,
        "repeats": 2,
        "log": log,
    }
    plan = {"attacks": ATTACKS, "measures": [{"name": "terms_kept", "help": "words"}]}
    absent = [{"method": name, "why": "it was not asked for"} for name in not_run]
    found = {"candidates": [one.as_dict() for one in candidates], "not_run": absent}
    return Comparison.from_dict(data | plan | found)


def usual():
    """All kinds of candidates at once."""
    return comparison(
        made("swap k=5", "swap", release=0.55, knowing=0.8, bound=0.2, value=5, terms=0.99,
             leaves=("5 accounts of one attacker", "what a query says")),
        made("swap k=10", "swap", release=0.45, knowing=0.6, bound=0.1, value=10, terms=0.98,
             leaves=("10 accounts of one attacker", "what a query says")),
        made("cohort k=5", "cohort", release=0.19, knowing=0.4, bound=0.2, value=5, terms=0.95),
        made("cohort k=10", "cohort", release=0.09, knowing=0.3, bound=0.1, value=10, terms=0.9),
        made(HOSTILE, "<b>evil</b>", knowing=0.02, labels="one person each", value=3, terms=0.5,
             settings={"k": 3, "phrases": "</script><script>alert(1)</script>"}),
        made("dp-histogram epsilon=1", "dp-histogram", labels="table", value=1, terms=0),
        made("km k=2", "km", failed="stopped after <5> seconds", value=2),
        not_run=["rules"],
    )  # fmt: skip
