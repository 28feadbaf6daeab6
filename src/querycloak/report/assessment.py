"""A page in the style of a data-protection impact assessment, made of a certificate and of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from querycloak import certificate
from querycloak.certificate import Certificate
from querycloak.errors import UsageError
from querycloak.registry import METHODS
from querycloak.report import evidence, files, risk
from querycloak.report.certificate_diff import read as read_certificate
from querycloak.report.document import (
    Blank,
    Block,
    Bullets,
    Cell,
    Document,
    Facts,
    Mark,
    Note,
    Section,
    Table,
    Words,
    plural,
    shown,
)
from querycloak.shown import percent

DISCLAIMER = (
    "This page is no claim of legal compliance, and no legal advice. It puts together what a certificate "
    "states and what was measured. Whether that is enough is for a person to decide, who signs below."
)
_VERDICTS: dict[str, Mark] = {
    "kept": Mark("good", "kept"),
    "broken": Mark("bad", "broken"),
    "not checkable": Mark("warn", "not checkable"),
    "not applicable": Mark("info", "not applicable"),
}
Findings = Sequence[Mapping[str, Any]]


def assess_files(
    release: Path, output: Path, *, findings: Sequence[Path] = (), measures: Path | None = None
) -> dict[str, Any]:
    """Write the assessment of a release, or of a certificate, as .html or .md; give its verdicts."""
    files.check_target(output)
    if output in (release, certificate.path_of(release), *findings, measures):
        raise UsageError("the page would replace what it is made from", hint="choose another file for `-o`")
    found = [one for path in findings for one in evidence.findings_of(path)]
    kept = evidence.measures_of(measures) if measures is not None else None
    document = read_certificate(release)
    files.write(assessment(document, found, kept), output)
    every = [*evidence.checked(document["findings"]), *found]
    return {
        "written": str(output),
        "audit": document["audit"],
        "publishable": document["randomness"]["publishable"],
        "risks": [risk.assess(test, every).as_dict() for test in risk.TESTS],
    }


def assessment(
    document: Certificate, findings: Findings = (), measures: Mapping[str, Any] | None = None
) -> Document:
    """Put the assessment together from the public part of a certificate and what attacks found."""
    every = evidence.checked([*document["findings"], *findings])
    sections = (
        _processing(document),
        _purpose(),
        _promises(document),
        _limits(document),
        _attacks(every),
        _risks(every),
        _measures_taken(document),
        _utility(measures),
        _trust(document),
        _absent(every, measures),
        _signature(),
    )
    named = [Section(f"{number}. {s.title}", s.blocks) for number, s in enumerate(sections, start=1)]
    return Document("Impact assessment of a protected search log", _summary(document, every), named)


def _summary(document: Certificate, findings: Findings) -> list[Block]:
    names = ", then ".join(shown(part["method"]) for part in document["methods"])
    rated = [risk.assess(test, findings) for test in risk.TESTS]
    facts: list[tuple[str, Cell]] = [
        ("Protected by", names),
        ("Audit", _VERDICTS[document["audit"]]),
        *((f"Residual risk: {one.test.name.lower()}", one.mark) for one in rated),
    ]
    return [Note("info", DISCLAIMER), Facts(facts), *_warnings(document)]


def _warnings(document: Certificate) -> list[Block]:
    found: list[Block] = []
    if document["audit"] == "broken":
        found.append(Note("bad", "Do not publish: the audit found a broken promise."))
    if not document["randomness"]["publishable"]:
        found.append(
            Note(
                "bad",
                "Do not publish: it was made with a seed, so whoever guesses the seed can make it again.",
            )
        )
    return found


def _processing(document: Certificate) -> Section:
    release, stream = document["release"], document["release"].get("stream")
    kind = (
        "lines of a live stream"
        if stream
        else "a table of counts"
        if release.get("table")
        else "a log of searches"
    )
    columns = release["layout"].get("mapping")
    facts: list[tuple[str, Cell]] = [
        ("What is released", kind),
        ("Release", shown(release["id"])),
        ("Source", shown(release["source"])),
        ("Columns", shown(list(columns)) if isinstance(columns, dict) and columns else "–"),
        ("Columns passed on as they are", shown(release["layout"].get("kept"))),
        ("SHA-256 of the released file", shown(release["sha256"])),
    ]
    blocks: list[Block] = [Words("What is done to the log, and what leaves the house."), Facts(facts)]
    for number, part in enumerate(document["methods"], start=1):
        blocks += _method(number, part)
    blocks.append(
        Blank("Whose searches are these, how many people, over what time, and on what legal ground?")
    )
    return Section("Description of the processing", blocks)


def _method(number: int, part: Mapping[str, Any]) -> list[Block]:
    name, helps, words = str(part["method"]), dict[str, str](), "a method that this QueryCloak does not know"
    if name in METHODS.names():
        kind = METHODS.get(name)
        words = (kind.__doc__ or "").strip().splitlines()[0]
        helps = {one["name"]: one["help"] for one in kind.Settings.declarations()}
    rows = [(shown(key), shown(value), helps.get(key, "–")) for key, value in part["settings"].items()]
    return [
        Words(f"Step {number}, {shown(name)}: {words}"),
        Table(f"Settings of {shown(name)}", ("setting", "value", "what it does"), rows),
    ]


def _purpose() -> Section:
    prompts = (
        "Purpose: what is the release for, and who receives it?",
        "Necessity: why can this purpose not be reached without data about people's searches?",
        "Proportionality: could fewer columns, a shorter time, fewer people or a stronger setting do?",
        "Recipients: what are they bound to, by contract or licence, and can the release be taken back?",
        "People: how were they told, and how can they object or have their records erased?",
    )
    return Section("Purpose, necessity and proportionality", [Blank(prompt) for prompt in prompts])


def _promises(document: Certificate) -> Section:
    rows = [
        (shown(part["method"]), shown(part["promise"]), _VERDICTS[part["audit"]])
        for part in document["methods"]
    ]
    checks = [
        (shown(about), shown(check["check"]), _VERDICTS[check["verdict"]], shown(check["detail"]))
        for about, listed in (
            *((part["method"], part["checks"]) for part in document["methods"]),
            ("release", document["lineage"]),
        )
        for check in listed
    ]
    blocks: list[Block] = [
        Words(
            "What each step promises, in words. The audit tests it on the released file with code of its own."
        ),
        Table("Promises", ("method", "promise", "audit"), rows),
        Table("Every check of the audit", ("about", "check", "verdict", "detail"), checks),
    ]
    stated = [
        (shown(part["method"]), shown(name), shown(fact))
        for part in document["methods"]
        for name, fact in part.get("facts", {}).items()
    ]
    if stated:
        blocks.append(
            Table("What the methods state beside their promises", ("method", "fact", "value"), stated)
        )
    return Section("What is promised, and was it checked", blocks)


def _limits(document: Certificate) -> Section:
    blocks: list[Block] = []
    for part in document["methods"]:
        limits = [shown(text) for text in part["does_not_protect_against"]]
        blocks += [
            Words(f"{shown(part['method'])} does not protect against:"),
            Bullets(limits or ["nothing stated"]),
        ]
    blocks.append(Blank("Which of these matter here, and what is done about them?"))
    return Section("What it does not protect against", blocks)


def _attacks(findings: Findings) -> Section:
    blocks: list[Block] = [
        Words(
            "QueryCloak plays three games against its own release. In other words they are the three tests "
            "that European authorities put to anonymisation: singling out, linkability and inference. "
            "The mapping is ours."
        )
    ]
    for test in risk.TESTS:
        measured = evidence.of_games(findings, test.game)
        blocks.append(Words(f"{test.name} (our game: {test.game}). {test.question}"))
        if measured:
            blocks.append(_finding_table(test, measured))
        else:
            blocks.append(Note("warn", f"Not measured. Nothing is known about {test.name.lower()}."))
    lame = [
        f"{shown(f['attack'])}: {shown(f.get('not_applicable'))}" for f in findings if f["success"] is None
    ]
    if lame:
        blocks += [Words("Attacks that had nothing to work on:"), Bullets(lame)]
    floor = [one for one in evidence.of_games(findings, "control") if one["attack"] == "guess"]
    if floor:
        blocks.append(
            Words(f"For comparison, the same guess for every record is right {evidence.in_words(floor[0])}.")
        )
    return Section("Measured attacks", blocks)


def _finding_table(test: risk.Test, measured: Findings) -> Table:
    holds: dict[bool | None, Cell] = {
        None: "no bound was stated",
        True: Mark("good", "holds"),
        False: Mark("bad", "beaten"),
    }
    rows = [
        (
            shown(one["attack"]),
            percent(one["success"]),
            f"{percent(one['low'])} … {percent(one['high'])}",
            percent(one["bound"]),
            holds[one["holds"]],
            plural(one["n"], shown(one["unit"])),
        )
        for one in measured
    ]
    head = ("attack", "success", "95 % interval", "bound", "does the bound hold", "measured on")
    return Table(f"Attacks: {test.name.lower()}", head, rows, frozenset({1, 2, 3}))


def _risks(findings: Findings) -> Section:
    rated = [risk.assess(test, findings) for test in risk.TESTS]
    rows = [(one.test.name, one.mark, percent(one.exposure), one.reason) for one in rated]
    return Section(
        "Residual risk",
        [
            Table("Residual risk by test", ("test", "risk", "exposure", "why"), rows, frozenset({2})),
            Words("The rule behind these words:"),
            Bullets(risk.RULE),
            Words("An attack that was not tried, or that nobody has thought of yet, is not in this table."),
            Blank("Severity: what would happen to a person who is found, and how likely does somebody try?"),
        ],
    )


def _measures_taken(document: Certificate) -> Section:
    taken = [f"{shown(part['method'])}: {shown(part['promise'])}" for part in document["methods"]]
    taken.append(f"independent audit of the released file: {document['audit']}")
    place = document["ledger"]
    if place:
        earlier = place["earlier_releases_of_source"]
        taken.append(
            f"entry {place['entry']:,} in the ledger of releases, after "
            f"{plural(earlier, 'earlier release')} of the source"
        )
    if "signature" in document:
        taken.append("the certificate carries a signature; `querycloak verify --public-key` checks it")
    blocks: list[Block] = [Bullets(taken)]
    if place and place["earlier_releases_of_source"]:
        blocks.append(
            Note("warn", "Earlier releases of the same source are out: whoever has several can join them.")
        )
    blocks.append(Blank("Further measures: access, contracts, deletion dates, training."))
    return Section("Measures taken", blocks)


def _utility(measures: Mapping[str, Any] | None) -> Section:
    if measures is None:
        return Section(
            "What the release still serves for",
            [Note("warn", "Not given. `querycloak measure RELEASE --original LOG --json` measures it.")],
        )
    rows = [(shown(name), _measured(value)) for name, value in measures.items()]
    return Section(
        "What the release still serves for", [Table("Measures of use", ("measure", "value"), rows)]
    )


def _measured(value: Any) -> str:
    if isinstance(value, dict) and "not_applicable" in value:
        return f"not applicable: {shown(value['not_applicable'])}"
    return shown(value)


def _trust(document: Certificate) -> Section:
    random, tool = document["randomness"], document["tool"]
    again = "yes" if random["reproducible"] else "no: its randomness is gone for good, and nobody can undo it"
    facts: list[tuple[str, Cell]] = [
        ("Can the release be made again", again),
        ("May it be published", Mark("good", "yes") if random["publishable"] else Mark("bad", "no")),
        ("Where the secret came from", shown(random["secret"])),
        ("Made with", f"QueryCloak {shown(tool['version'])}"),
        ("Certificate", "signed" if "signature" in document else "not signed"),
    ]
    text = "`querycloak verify RELEASE` checks the file and its certificate again; this page did not."
    return Section("Reproducible, publishable", [Facts(facts), *_warnings(document), Words(text)])


def _absent(findings: Findings, measures: Mapping[str, Any] | None) -> Section:
    absent = [
        "the private part of the certificate (exact counts, what was suppressed): it does not travel",
        "the log itself, and the truth about where rows came from",
    ]
    if not findings:
        absent.append("findings of attacks: give them with `--findings FILE`")
    if measures is None:
        absent.append("measures of use: give them with `--measures FILE`")
    return Section("What was not available for this page", [Bullets(absent)])


def _signature() -> Section:
    blanks = (
        "Assessed by (name, role, date)",
        "Advice of the data-protection officer",
        "Decision and signature",
    )
    return Section("Decision", [*(Blank(text, lines=2) for text in blanks), Note("info", DISCLAIMER)])
