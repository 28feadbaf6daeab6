"""Compare two certificates: what is weaker, what is stronger, and what changed but cannot be ranked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from querycloak import certificate, ledger
from querycloak.attacks.finding import Finding
from querycloak.certificate import Certificate
from querycloak.errors import UsageError
from querycloak.formatting import percent
from querycloak.registry import METHODS
from querycloak.report import evidence
from querycloak.report.numbers import printable
from querycloak.settings import compare_strength, setting

T = TypeVar("T")

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-?\d+)?")
#: How facts such as ε are ranked.
_SMALLER = setting(kind=float, stronger="smaller", help="")
#: The rank of each verdict of an audit; those in the middle are equal, and so is no check.
_AUDIT = {"broken": 0, "not checkable": 1, "not applicable": 1, None: 1, "kept": 2}


@dataclass(frozen=True)
class Change:
    """One thing that differs: what it is about, what it was and what it is."""

    about: str
    what: str
    before: str
    after: str
    note: str = ""


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
        was, now = printable(before), printable(after)
        getattr(self, verdict).append(Change(printable(about), printable(what), was, now, note))

    def compare(self, verdict: str, about: str, what: str, before: Any, after: Any) -> None:
        """Add a change if two values differ."""
        if before == after:
            self.same += 1
        else:
            self.note(verdict, about, what, before, after)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for `--json`."""
        return asdict(self) | {"not_weaker": self.not_weaker}


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
    passed = (one["layout"].get("kept") for one in (old, new))  # columns that pass through unprotected
    was, now = (set(map(str, kept)) if isinstance(kept, list) else set() for kept in passed)
    verdict = "weaker" if now - was else "stronger"
    found.compare(verdict, "release", "columns kept as they are", sorted(was), sorted(now))
    old, new = before["randomness"], after["randomness"]
    verdict = "stronger" if new["publishable"] else "weaker"
    found.compare(verdict, "release", "publishable", old["publishable"], new["publishable"])
    for name in ("reproducible", "secret", "noise"):
        found.compare("changed", "release", name, old.get(name), new.get(name))
    signed = ["signed" if "signature" in one else "not signed" for one in (before, after)]
    found.compare("weaker" if signed[1] == "not signed" else "stronger", "certificate", "signature", *signed)
    if signed == ["signed", "signed"]:
        keys = [one["signature"]["public_key"] for one in (before, after)]
        found.compare("changed", "certificate", "key of the signature", *keys)


def _compare_methods(before: Certificate, after: Certificate, found: Difference) -> None:
    old, new = (_numbered(one["methods"], lambda part: str(part["method"])) for one in (before, after))
    for name, part in old.items():
        if name not in new:
            found.note("weaker", name, "promise", part["promise"], None, "this promise is lost")
    for name, part in new.items():
        if name in old:
            _compare_method(name, old[name], part, found)
            continue
        found.note("stronger", name, "promise", None, part["promise"], "this promise is new")
        if part["audit"] == "broken":
            found.note("weaker", name, "audit", None, "broken", "the audit of the new promise is broken")
    both = [[name for name in one if name in old and name in new] for one in (old, new)]
    found.compare("changed", "methods", "order", *both)


def _numbered(things: Sequence[T], name_of: Callable[[T], str]) -> dict[str, T]:
    """Return things by name; a second one of a name has a number."""
    found: dict[str, T] = {}
    for thing in things:
        name = name_of(thing)
        names = (name, *(f"{name} {number}" for number in range(2, len(things) + 1)))
        found[next(free for free in names if free not in found)] = thing
    return found


def _compare_method(name: str, old: Mapping[str, Any], new: Mapping[str, Any], found: Difference) -> None:
    method = str(new["method"])
    known = fields(METHODS.get(method).Settings) if method in METHODS.names() else ()
    declared = {one.name: one for one in known}
    for key, was, now in _pairs(old["settings"], new["settings"]):
        verdict = compare_strength(declared[key], was, now) if key in declared else "changed"
        found.compare(verdict, name, key, was, now)
    for key, was, now in _pairs(_facts(old), _facts(new)):
        verdict = compare_strength(_SMALLER, was, now) if key in ("epsilon", "delta") else "changed"
        found.compare(verdict, name, f"stated {key}", was, now)
    if _pattern(old["promise"]) != _pattern(new["promise"]):
        found.note("changed", name, "promise in words", old["promise"], new["promise"])
    limits = [set(one["does_not_protect_against"]) for one in (old, new)]
    texts = [{_pattern(text) for text in side} for side in limits]
    what = "does not protect against"
    for text in sorted(text for text in limits[0] if _pattern(text) not in texts[1]):
        found.note("changed", name, what, text, None, "this limit is no longer stated")
    for text in sorted(text for text in limits[1] if _pattern(text) not in texts[0]):
        found.note("changed", name, what, None, text, "this limit is now stated")
    _compare_checks(name, old["checks"], new["checks"], found)


def _facts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a method stated beyond its settings."""
    return {key: fact for key, fact in part.get("facts", {}).items() if part["settings"].get(key) != fact}


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(key, old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]


def _pattern(text: str) -> str:
    """Return a text without its numbers: `at least 5 people` and `at least 10 people` are one sentence."""
    return _NUMBER.sub("#", text)


def _compare_checks(about: str, old: Sequence[Any], new: Sequence[Any], found: Difference) -> None:
    was, now = ({_pattern(c["check"]): c for c in checks} for checks in (old, new))
    for key, check in now.items():
        before, after = was.get(key, {}).get("verdict"), check["verdict"]
        step = _AUDIT[after] - _AUDIT[before]
        verdict = "stronger" if step > 0 else "weaker" if step < 0 else "changed"
        found.compare(verdict, about, f"check: {check['check']}", before, after)
    for check in (check for key, check in was.items() if key not in now):
        verdict, what = "weaker" if check["verdict"] == "kept" else "changed", f"check: {check['check']}"
        found.note(verdict, about, what, check["verdict"], None, "no longer checked")


def _compare_findings(old: Sequence[Any], new: Sequence[Any], found: Difference) -> None:
    was, now = (_numbered(evidence.checked(side), _attack_name) for side in (old, new))
    for key, one in was.items():
        if key in now:
            _compare_finding(key, one, now[key], found)
        else:
            found.note("changed", key, "attack", evidence.in_words(one), None, "not run any more")
    for key in (key for key in now if key not in was):
        verdict = "weaker" if now[key].holds is False else "changed"
        found.note(verdict, key, "attack", None, evidence.in_words(now[key]), "not run before")


def _attack_name(one: Finding) -> str:
    return f"{printable(one.attack)} ({printable(one.game)}, by {printable(one.unit)})"


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
        found.relation.append(_order(before["ledger"], after["ledger"]))
    _look_up(before, after, state, found)


def _order(old: Any, new: Any) -> str:
    if not old or not new:
        return "at least one of them has no place in a ledger"
    if new["entry"] == old["entry"]:
        return "both have the same place in the ledger"
    if new["entry"] < old["entry"]:
        return "the second one was released before the first"
    between = new["earlier_releases_of_source"] - old["earlier_releases_of_source"] - 1
    return "the second one follows the first" + (f", with {between:,} between them" if between > 0 else "")


def _look_up(before: Certificate, after: Certificate, state: Path | None, found: Difference) -> None:
    """Look for both heads in the ledger; only a ledger that was given can contradict a certificate."""
    folder = state or ledger.default_state()
    if not (folder / "ledger.jsonl").is_file():
        found.relation += ["there is no ledger in the named folder"] if state is not None else []
        return
    found_chain = ledger.read_chain(folder / "ledger.jsonl")
    heads = {entry["number"]: entry["hash"] for entry in found_chain.entries}
    state_of_chain = "is whole" if found_chain.authentic else "cannot be checked without its key"
    for which, one in (("first", before), ("second", after)):
        place = one["ledger"]
        if place and heads.get(place["entry"]) == place["head"]:
            chain = f"entry {place['entry']:,} of the ledger here, whose chain {state_of_chain}"
            found.relation.append(f"the {which} one is {chain}")
        elif place and state is not None:
            what, note = f"head of the {which} one", "not in the named ledger"
            found.note("weaker", "ledger", what, place["head"], None, note)
