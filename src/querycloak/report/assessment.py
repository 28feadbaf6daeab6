"""A page in the style of a data-protection impact assessment, from a certificate and findings of attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from querycloak import certificate
from querycloak.attacks.finding import Finding
from querycloak.certificate import Certificate
from querycloak.compare.result import label_text
from querycloak.files import check_outputs
from querycloak.formatting import percent, plural, verdict_word
from querycloak.registry import METHODS, labels_of
from querycloak.report import evidence, render, risk
from querycloak.report.certificate_diff import read as read_certificate
from querycloak.report.numbers import printable
from querycloak.report.render import bold

DISCLAIMER = (
    "This page is no claim of legal compliance, and no legal advice. It puts together what a certificate "
    "states and what was measured. Whether that is enough is for a person to decide, who signs below."
)
Findings = Sequence[Finding]
Row = tuple[Any, ...]


def assess_files(
    release: Path, output: Path, *, findings: Sequence[Path] = (), measures: Path | None = None
) -> dict[str, Any]:
    """Write the assessment of a release, or of a certificate, as .html or .md; return its verdicts."""
    render.check_target(output)
    check_outputs([output], [release, certificate.path_of(release), *findings, measures])
    given = [one for path in findings for one in evidence.findings_of(path)]
    kept = evidence.measures_of(measures) if measures is not None else None
    document = read_certificate(release)
    render.write(assessment(document, given, kept), output)
    return {
        "written": str(output),
        "audit": document["audit"],
        "publishable": document["randomness"]["publishable"],
        "risks": [one.as_dict() for one in _rated(document, _every(document, given))],
    }


def assessment(
    document: Certificate, findings: Findings = (), measures: Mapping[str, Any] | None = None
) -> str:
    """Return the assessment as Markdown, from the public part of a certificate and findings of attacks."""
    every = _every(document, findings)
    rated = _rated(document, every)
    place = document["ledger"]
    return render.markdown(
        "assessment.md.j2",
        disclaimer=DISCLAIMER,
        audit=document["audit"],
        randomness=document["randomness"],
        summary=[
            ("Protected by", ", then ".join(printable(part["method"]) for part in document["methods"])),
            ("Audit", bold(verdict_word(document["audit"]))),
            *((f"Residual risk: {one.test.name.lower()}", bold(one.level)) for one in rated),
        ],
        release=_release(document),
        steps=[_step(part) for part in document["methods"]],
        promises=[
            (printable(part["method"]), printable(one["text"]), bold(verdict_word(one["audit"])))
            for part in document["methods"]
            for one in _sentences(part)
        ],
        checks=_checks(document),
        stated=[
            (printable(part["method"]), printable(name), printable(fact))
            for part in document["methods"]
            for name, fact in part.get("facts", {}).items()
        ],
        limits=[
            (printable(part["method"]), [printable(text) for text in part["does_not_protect_against"]])
            for part in document["methods"]
        ],
        tests=[_test(test, every) for test in risk.TESTS],
        not_applicable=[
            f"{printable(one.attack)}: {printable(one.not_applicable)}"
            for one in every
            if one.success is None
        ],
        floor=next(
            (evidence.in_words(one) for one in evidence.of_games(every, "control") if one.attack == "guess"),
            None,
        ),
        risks=[(one.test.name, bold(one.level), percent(one.exposure), one.reason) for one in rated],
        rule=risk.RULE,
        taken=_taken(document),
        earlier=bool(place and place["earlier_releases_of_source"]),
        measures=None if measures is None else [(printable(k), _measured(v)) for k, v in measures.items()],
        trust=_trust(document),
        absent=_absent(every, measures),
    )


def _sentences(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sentences of a guarantee; a certificate of version 1 has the whole only."""
    whole = {"text": part["promise"], "audit": part["audit"]}
    return list(part.get("sentences", [whole]))


def _every(document: Certificate, findings: Findings) -> list[Finding]:
    """Return the findings of the certificate and further ones, with what a label of the release means."""
    labels = labels_of(document)
    return [replace(one, labels=labels) for one in (*evidence.checked(document["findings"]), *findings)]


def _rated(document: Certificate, findings: Findings) -> list[risk.Risk]:
    return [risk.assess(test, findings, label_text(document)) for test in risk.TESTS]


def _release(document: Certificate) -> list[Row]:
    release = document["release"]
    kind = "a table of counts" if release.get("table") else "a log of searches"
    columns = release["layout"].get("mapping")
    return [
        ("What is released", "lines of a live stream" if release.get("stream") else kind),
        ("Release", printable(release["id"])),
        ("Source", printable(release["source"])),
        ("Columns", printable(list(columns)) if isinstance(columns, dict) and columns else "–"),
        ("Columns passed on as they are", printable(release["layout"].get("kept"))),
        ("SHA-256 of the released file", printable(release["sha256"])),
    ]


def _step(part: Mapping[str, Any]) -> dict[str, Any]:
    name, helps, about = str(part["method"]), dict[str, str](), "a method that this QueryCloak does not know"
    if name in METHODS.names():
        kind = METHODS.get(name)
        about = (kind.__doc__ or "").strip().splitlines()[0]
        helps = {one["name"]: one["help"] for one in kind.Settings.declarations()}
    rows = [
        (printable(key), printable(value), helps.get(key, "–")) for key, value in part["settings"].items()
    ]
    return {"name": printable(name), "about": about, "settings": rows}


def _checks(document: Certificate) -> list[Row]:
    parts = [(part["method"], part["checks"]) for part in document["methods"]]
    return [
        (
            printable(about),
            printable(check["check"]),
            bold(verdict_word(check["verdict"])),
            printable(check["detail"]),
        )
        for about, listed in (*parts, ("release", document["lineage"]))
        for check in listed
    ]


def _test(test: risk.Test, findings: Findings) -> dict[str, Any]:
    holds = {None: "no bound was stated", True: bold("holds"), False: bold("beaten")}
    rows = [
        (
            printable(one.attack),
            percent(one.success),
            f"{percent(one.low)} … {percent(one.high)}",
            percent(one.bound),
            holds[one.holds],
            plural(one.n, printable(one.unit)),
        )
        for one in evidence.of_games(findings, *test.games)
    ]
    return {"name": test.name, "game": test.game, "question": test.question, "rows": rows}


def _taken(document: Certificate) -> list[str]:
    taken = [f"{printable(part['method'])}: {printable(part['promise'])}" for part in document["methods"]]
    taken.append(f"independent audit of the released file: {verdict_word(document['audit'])}")
    if place := document["ledger"]:
        earlier = plural(place["earlier_releases_of_source"], "earlier release")
        taken.append(f"entry {place['entry']:,} in the ledger of releases, after {earlier} of the source")
    if "signature" in document:
        taken.append("the certificate carries a signature; `querycloak verify --public-key` checks it")
    return taken


def _measured(value: Any) -> str:
    if isinstance(value, dict) and "not_applicable" in value:
        return f"not applicable: {printable(value['not_applicable'])}"
    return printable(value)


def _trust(document: Certificate) -> list[Row]:
    random, tool = document["randomness"], document["tool"]
    again = "yes" if random["reproducible"] else "no: its randomness is gone for good, and nobody can undo it"
    return [
        ("Can the release be made again", again),
        ("May it be published", bold("yes" if random["publishable"] else "no")),
        ("Where the secret came from", printable(random["secret"])),
        ("Made with", f"QueryCloak {printable(tool['version'])}"),
        ("Certificate", "signed" if "signature" in document else "not signed"),
    ]


def _absent(findings: Findings, measures: Mapping[str, Any] | None) -> list[str]:
    absent = [
        "the private part of the certificate (exact counts, what was suppressed): it does not travel",
        "the log itself, and the truth about where rows came from",
    ]
    if not findings:
        absent.append("findings of attacks: give them with `--findings FILE`")
    if measures is None:
        absent.append("measures of use: give them with `--measures FILE`")
    return absent
