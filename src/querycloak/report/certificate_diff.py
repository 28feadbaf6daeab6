"""Compare two certificates: what is weaker, what is stronger, and what changed but cannot be ranked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from querycloak import certificate, ledger
from querycloak.attacks.finding import Finding
from querycloak.certificate import Certificate
from querycloak.errors import UsageError
from querycloak.registry import METHODS
from querycloak.report import evidence
from querycloak.report.numbers import percent, printable
from querycloak.settings import compare_strength, setting

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-?\d+)?")
#: How facts such as ε are ranked.
_SMALLER = setting(kind=float, stronger="smaller", help="")
#: The rank of each verdict of an audit; the two in the middle are equal.
_AUDIT = {"broken": 0, "not checkable": 1, "not applicable": 1, "kept": 2}


@dataclass(frozen=True)
class Change:
    """One thing that differs: what it is about, what it was and what it is."""

    about: str
    what: str
    before: str
    after: str
    note: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return plain values."""
        return {
            "about": self.about,
            "what": self.what,
            "before": self.before,
            "after": self.after,
            "note": self.note,
        }


@dataclass
class Difference:
    """Three lists of changes, the number of equal values, and how the releases are related."""

    weaker: list[Change] = field(default_factory=list)
    stronger: list[Change] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    same: int = 0
    relation: list[str] = field(default_factory=list)

    @property
    def not_weaker(self) -> bool:
        """Whether nothing that can be ranked is weaker."""
        return not self.weaker

    def note(self, verdict: str, about: str, what: str, before: Any, after: Any, note: str = "") -> None:
        """Add a change to the list of its verdict: `weaker`, `stronger` or `changed`."""
        lists = {"weaker": self.weaker, "stronger": self.stronger, "changed": self.changed}
        lists[verdict].append(
            Change(printable(about), printable(what), printable(before), printable(after), note)
        )

    def compare(self, verdict: str, about: str, what: str, before: Any, after: Any) -> None:
        """Add a change if two values differ."""
        if before == after:
            self.same += 1
        else:
            self.note(verdict, about, what, before, after)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for `--json`."""
        lists = {
            name: [c.as_dict() for c in getattr(self, name)] for name in ("weaker", "stronger", "changed")
        }
        return lists | {"same": self.same, "relation": self.relation, "not_weaker": self.not_weaker}


def read(path: Path) -> Certificate:
    """Read a certificate, or the one beside a release."""
    beside = certificate.path_of(path)
    if not beside.is_file() and not path.is_file():
        raise UsageError(f"there is no certificate `{path.name}`, nor one beside it", hint="check the path")
    return certificate.read(beside if beside.is_file() else path)


def diff_files(
    before: Path, after: Path, *, findings: tuple[Path, Path] | None = None, state: Path | None = None
) -> Difference:
    """Compare two certificate files, with the findings of attacks and the ledger where they are given."""
    old, new = read(before), read(after)
    if findings:
        first, second = findings
        for document, path in ((old, first), (new, second)):
            document["findings"] = [one.as_dict() for one in evidence.findings_of(path)]
    return diff(old, new, state)


def diff(before: Certificate, after: Certificate, state: Path | None = None) -> Difference:
    """Compare two certificates; `state` is the folder of the source's ledger."""
    found = Difference()
    _compare_release(before, after, found)
    _compare_methods(before, after, found)
    _compare_checks("release", before["lineage"], after["lineage"], found)
    _compare_findings(before["findings"], after["findings"], found)
    _relate(before, after, state, found)
    return found


def _compare_release(before: Certificate, after: Certificate, found: Difference) -> None:
    found.compare("changed", "tool", "version", before["tool"]["version"], after["tool"]["version"])
    old, new = before["release"], after["release"]
    found.compare("changed", "release", "SHA-256", old["sha256"], new["sha256"])
    for name in ("table", "stream"):
        found.compare("changed", "release", name, old.get(name), new.get(name))
    found.compare("changed", "release", "format", old["layout"].get("format"), new["layout"].get("format"))
    _compare_kept(old["layout"].get("kept"), new["layout"].get("kept"), found)
    _compare_randomness(before["randomness"], after["randomness"], found)
    signed = ["signed" if "signature" in one else "not signed" for one in (before, after)]
    found.compare("weaker" if signed[1] == "not signed" else "stronger", "certificate", "signature", *signed)
    if signed == ["signed", "signed"]:
        keys = [one["signature"]["public_key"] for one in (before, after)]
        found.compare("changed", "certificate", "key of the signature", *keys)


def _compare_kept(old: Any, new: Any, found: Difference) -> None:
    """Compare the columns that pass through unprotected (`--keep`)."""
    was, now = (set(map(str, kept)) if isinstance(kept, list) else set() for kept in (old, new))
    verdict = "weaker" if now - was else "stronger"
    found.compare(verdict, "release", "columns kept as they are", sorted(was), sorted(now))


def _compare_randomness(old: Mapping[str, Any], new: Mapping[str, Any], found: Difference) -> None:
    verdict = "stronger" if new["publishable"] else "weaker"
    found.compare(verdict, "release", "publishable", old["publishable"], new["publishable"])
    for name in ("reproducible", "secret", "noise"):
        found.compare("changed", "release", name, old.get(name), new.get(name))


def _compare_methods(before: Certificate, after: Certificate, found: Difference) -> None:
    old, new = _numbered(before["methods"]), _numbered(after["methods"])
    for name, part in old.items():
        if name not in new:
            found.note("weaker", name, "promise", part["promise"], None, "this promise is lost")
    for name, part in new.items():
        if name not in old:
            found.note("stronger", name, "promise", None, part["promise"], "this promise is new")
            _note_unkept(name, part, found)
        else:
            _compare_method(name, old[name], part, found)
    both = [[name for name in one if name in old and name in new] for one in (old, new)]
    found.compare("changed", "methods", "order", *both)


def _numbered(parts: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the methods by name; a second use of a method has a number."""
    return dict(zip(_counted([str(part["method"]) for part in parts]), parts, strict=True))


def _counted(names: Sequence[str]) -> Iterator[str]:
    seen = Counter[str]()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} {seen[name]}"


def _note_unkept(name: str, part: Mapping[str, Any], found: Difference) -> None:
    if part["audit"] == "broken":
        found.note("weaker", name, "audit", None, "broken", "the audit of the new promise is broken")


def _strength(method: str, setting: str, before: Any, after: Any) -> str:
    """Return whether a changed setting protects more, by its declaration; `changed` if that is not here."""
    if method not in METHODS.names():
        return "changed"
    declared = {f.name: f for f in fields(METHODS.get(method).Settings)}
    return compare_strength(declared[setting], before, after) if setting in declared else "changed"


def _strength_of_fact(name: str, before: Any, after: Any) -> str:
    """Return whether a method states a smaller ε or δ than before."""
    return compare_strength(_SMALLER, before, after) if name in ("epsilon", "delta") else "changed"


def _compare_method(name: str, old: Mapping[str, Any], new: Mapping[str, Any], found: Difference) -> None:
    method = str(new["method"])
    for key, was, now in _pairs(old["settings"], new["settings"]):
        found.compare(_strength(method, key, was, now), name, key, was, now)
    for key, was, now in _pairs(_facts(old), _facts(new)):
        found.compare(_strength_of_fact(key, was, now), name, f"stated {key}", was, now)
    if _pattern(old["promise"]) != _pattern(new["promise"]):
        found.note("changed", name, "promise in words", old["promise"], new["promise"])
    limits = [set(one["does_not_protect_against"]) for one in (old, new)]
    texts = [{_pattern(text) for text in side} for side in limits]
    for verb, side, other in (("no longer stated", 0, 1), ("now stated", 1, 0)):
        for text in sorted(t for t in limits[side] if _pattern(t) not in texts[other]):
            what, note = "does not protect against", f"this limit is {verb}"
            found.note("changed", name, what, text if side == 0 else None, text if side else None, note)
    _compare_checks(name, old["checks"], new["checks"], found)


def _facts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a method stated beyond its settings."""
    return {key: fact for key, fact in part.get("facts", {}).items() if part["settings"].get(key) != fact}


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*old, *new]):
        yield key, old.get(key), new.get(key)


def _pattern(text: str) -> str:
    """Return a text without its numbers: `at least 5 people` and `at least 10 people` are one sentence."""
    return _NUMBER.sub("#", text)


def _compare_checks(about: str, old: Sequence[Any], new: Sequence[Any], found: Difference) -> None:
    was, now = ({_pattern(c["check"]): c for c in checks} for checks in (old, new))
    for key, check in now.items():
        before = was.get(key, {}).get("verdict")
        verdict = "stronger" if before is None else _audit_change(before, check["verdict"])
        if before is None and check["verdict"] != "kept":
            verdict = "weaker" if check["verdict"] == "broken" else "changed"
        found.compare(verdict, about, f"check: {check['check']}", before, check["verdict"])
    for key, check in was.items():
        if key not in now:
            verdict = "weaker" if check["verdict"] == "kept" else "changed"
            found.note(
                verdict, about, f"check: {check['check']}", check["verdict"], None, "no longer checked"
            )


def _audit_change(before: str, after: str) -> str:
    step = _AUDIT[after] - _AUDIT[before]
    return "stronger" if step > 0 else "weaker" if step < 0 else "changed"


def _compare_findings(old: Sequence[Any], new: Sequence[Any], found: Difference) -> None:
    was, now = (_by_attack(evidence.checked(side)) for side in (old, new))
    for key, one in was.items():
        if key in now:
            _compare_finding(key, one, now[key], found)
        else:
            found.note("changed", key, "attack", evidence.in_words(one), None, "not run any more")
    for key in (key for key in now if key not in was):
        verdict = "weaker" if now[key].holds is False else "changed"
        found.note(verdict, key, "attack", None, evidence.in_words(now[key]), "not run before")


def _by_attack(findings: Sequence[Finding]) -> dict[str, Finding]:
    """Return findings by name; a second run of an attack has a number."""
    names = [f"{printable(f.attack)} ({printable(f.game)}, by {printable(f.unit)})" for f in findings]
    return dict(zip(_counted(names), findings, strict=True))


def _compare_finding(key: str, old: Finding, new: Finding, found: Difference) -> None:
    """Rank two measurements only if their intervals do not overlap: the rest may be chance."""
    words = evidence.in_words(old), evidence.in_words(new)
    if old.holds is True and new.holds is False:
        found.note("weaker", key, "bound", percent(old.bound), percent(new.bound), "now beaten")
    if old.holds is False and new.holds is True:
        found.note("stronger", key, "bound", percent(old.bound), percent(new.bound), "no longer beaten")
    if old.share is None or new.share is None:
        found.compare("changed", key, "success", *words)
    elif old.game != "control" and new.share.low > old.share.high:
        found.note("weaker", key, "success", *words, "the intervals do not overlap")
    elif old.game != "control" and new.share.high < old.share.low:
        found.note("stronger", key, "success", *words, "the intervals do not overlap")
    elif words[0] == words[1]:
        found.same += 1
    else:
        found.note("changed", key, "success", *words, "the intervals overlap: it may be chance")


def _relate(before: Certificate, after: Certificate, state: Path | None, found: Difference) -> None:
    """Describe how the two releases are related: one source, one chain, one file."""
    if before["release"]["sha256"] == after["release"]["sha256"]:
        found.relation.append("both certificates are about the same file")
    sources = [one["release"]["source"] for one in (before, after)]
    if None in sources:
        found.relation.append("at least one of them names no source, so nobody can tell whether they compose")
    elif sources[0] != sources[1]:
        found.relation.append("they name different sources")
    else:
        found.relation.append("they are releases of one source: a holder of both can join them")
        _relate_entries(before["ledger"], after["ledger"], found)
    _look_up(before, after, state, found)


def _relate_entries(old: Any, new: Any, found: Difference) -> None:
    if not old or not new:
        found.relation.append("at least one of them has no place in a ledger")
        return
    earlier = [one["earlier_releases_of_source"] for one in (old, new)]
    if new["entry"] == old["entry"]:
        text = "both have the same place in the ledger"
    elif new["entry"] < old["entry"]:
        text = "the second one was released before the first"
    else:
        between = earlier[1] - earlier[0] - 1
        text = "the second one follows the first" + (
            f", with {between:,} between them" if between > 0 else ""
        )
    found.relation.append(text)


def _look_up(before: Certificate, after: Certificate, state: Path | None, found: Difference) -> None:
    """Look for both heads in the ledger; only a ledger that was given can contradict a certificate."""
    folder = state or ledger.default_state()
    if not (folder / "ledger.jsonl").is_file():
        if state is not None:
            found.relation.append("there is no ledger in the named folder")
        return
    heads = {entry["number"]: entry["hash"] for entry in ledger.Ledger(folder).entries()}
    for which, one in (("first", before), ("second", after)):
        place = one["ledger"]
        if place and heads.get(place["entry"]) == place["head"]:
            found.relation.append(
                f"the {which} one is entry {place['entry']:,} of the ledger here, whose chain is whole"
            )
        elif place and state is not None:
            found.note(
                "weaker", "ledger", f"head of the {which} one", place["head"], None, "not in the named ledger"
            )
