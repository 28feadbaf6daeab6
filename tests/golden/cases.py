"""What is held: a name for each case, the optional part that it needs, and the function that makes it."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from querycloak import api
from querycloak.registry import ATTACKS, MEASURES, METHODS
from tests.golden import adapter
from tests.golden.desk import SEED, Desk, digest, file_digest, table_digest

#: Fields that tell when and with which version something was made, how long it took, or where it lies.
_PASSING = frozenset({"seconds", "version", "tool", "created", "cost", "queries_per_second"})

#: Methods one after the other, by the words of a command line.
COMPOSITIONS = {
    "rules+cohort": ("-m", "rules", "-m", "cohort", "-s", "k=5"),
    "rules+frequent-only": ("-m", "rules", "-m", "frequent-only", "-s", "k=3"),
    "rules+swap-guard": ("-m", "rules", "-m", "swap", "-s", "k=3", "-s", "guard=0.5"),
    "swap-auto-level": ("-m", "swap", "-s", "k=4", "-s", "level=auto", "-s", "leftover=rollup"),
    "z-anonymity+km": ("-m", "z-anonymity", "-m", "km", "-s", "z=2", "-s", "k=2"),
    "z-anonymity+cohort": ("-m", "z-anonymity", "-m", "cohort", "-s", "z=2", "-s", "k=4"),
    "rules+short-sessions": ("-m", "rules", "-m", "short-sessions", "-s", "k=2"),
    "rules+microagg-plain": ("-m", "rules", "-m", "microagg-plain", "-s", "k=3", "-s", "rules.labels=keep"),
    "km-revenue": ("-m", "km", "-s", "k=2", "-s", "target=revenue", "--marketing", "marketing.csv"),
    "swap-keep-column": ("-m", "swap", "-s", "k=3", "--keep", "category"),
}

#: Releases that are attacked and measured.
ATTACKED = {
    "rules": ("-m", "rules"),
    "swap": ("-m", "swap", "-s", "k=5"),
    "swap-fresh": ("-m", "swap", "-s", "k=3", "-s", "labels=fresh", "-s", "time=coarsen"),
    "cohort": ("-m", "cohort", "-s", "k=5"),
    "cohort-drop": ("-m", "cohort", "-s", "k=3", "-s", "time=drop", "-s", "labels=fresh"),
    "km": ("-m", "km", "-s", "k=2"),
    "dp-semantic": ("-m", "dp-semantic", "-s", "epsilon=8", "-s", "per=query"),
    "microagg-topic": ("-m", "microagg-topic", "-s", "k=3"),
    "short-sessions": ("-m", "short-sessions", "-s", "k=2"),
    "frequent-only": ("-m", "frequent-only", "-s", "k=3"),
}
#: Attacks that learn are tried on these alone, since each takes seconds.
_LEARNED = ("link-learned",)
_LEARNING = (
    "-s", "targets=3", "-s", "functions=3", "-s", "lessons=30", "-s", "events=300", "-s", "candidates=200",
)  # fmt: skip

#: What is held of a finding, as a list.
FIGURES = ("unit", "success", "low", "high", "bound", "holds", "n", "median_user", "worst_decile_user")

OBFUSCATION = ("tmn", "usr", "hybrid", "shadow")


@dataclass(frozen=True)
class Case:
    """One entry of the stored files."""

    group: str
    name: str
    make: Callable[[Desk], Any]
    extra: str = ""

    @property
    def id(self) -> str:
        """The name by which a test is called."""
        return f"{self.group}/{self.name}"


def cases() -> Iterator[Case]:
    """Yield every case, in the order of the stored files."""
    for method in METHODS.names():
        for number, settings in enumerate(METHODS.get(method).examples(), 1):
            make = partial(_example, method, number, settings)
            yield Case("methods", f"{method} {number}", make, adapter.extra_of(method, settings))
    for name, words in COMPOSITIONS.items():
        yield Case("compositions", name, partial(_composition, name, words))
    for name in ("cohort", "dp-semantic", "swap"):
        yield Case("sources", name, partial(_source, name))
    for name in _FORMATS:
        yield Case("formats", name, partial(_format, name))
    for name, words in ATTACKED.items():
        yield Case("attacks", name, partial(_attacks, name, words))
        yield Case("measures", name, partial(_measures, name, words))
        yield Case("verify", name, partial(_verify, name, words))
    yield Case("attacks", "learned on cohort", partial(_learned, ATTACKED["cohort"]), "learn")
    yield Case("attacks", "crowd", _crowd_attacks)
    yield from _others()


def _others() -> Iterator[Case]:
    for seed in (1, 2):
        yield Case("commands", f"generate {seed}", partial(_generate, seed))
    yield Case("commands", "classify", _classify)
    for method in OBFUSCATION:
        yield Case("commands", f"obfuscate {method}", partial(_obfuscate, method))
    yield Case("commands", "crowd simulate", _crowd)
    yield Case("commands", "own history", _own)
    yield Case("text", "categories", _categories)
    yield Case("text", "concepts", _concepts)
    yield Case("comparisons", "compare", _compare)
    yield Case("comparisons", "demo", _demo)


def words_of(method: str, settings: Any) -> list[str]:
    """Return the words of a command line for a method with settings."""
    words = ["-m", method]
    for name, value in settings.as_dict().items():
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        words += ["-s", f"{name}={text}"]
    return words


def _example(method: str, number: int, settings: Any, desk: Desk) -> dict[str, Any]:
    held = _released(desk, f"{method}-{number}.csv", *words_of(method, settings))
    return held | {"snapshot": adapter.snapshot_arrays(method, settings, desk.frame())}


def _composition(name: str, words: tuple[str, ...], desk: Desk) -> dict[str, Any]:
    return _in_brief(_released(desk, f"{name}.csv", *words))


def _released(desk: Desk, name: str, *words: str, log: str | None = None) -> dict[str, Any]:
    """Return what is held of one release: bytes, certificate, counts, truth."""
    told = desk.release(name, *words, log=log)
    public = json.loads(desk.path(f"{name}.certificate.json").read_text("utf-8"))
    private = json.loads(desk.path(f"{name}.certificate.private.json").read_text("utf-8"))
    printed = without(told, "certificate", "written", "output", "methods")
    return {
        "release": file_digest(desk.path(name)),
        "truth": table_digest(desk.path(f"{name}.truth")),
        "printed": {name: value for name, value in printed.items() if value},
        "certificate": _certificate(public),
        "private": _json_digest(without(private)),
    }


def _certificate(document: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate by groups: short texts whole, checks by their words, what is left as digests.

    The SHA-256 of the release is left out, since the bytes are held already; so is the hash of the ledger's
    entry, which holds the time.
    """
    rest = {name: document[name] for name in ("schema", "randomness", "findings", "audit")}
    release = without(document["release"], "sha256")
    return {
        "layout": _json_digest(release.pop("layout")),
        "release": _json_digest(release),
        "ledger": _json_digest(without(document["ledger"], "head")),
        "rest": _json_digest(rest | {"fields": sorted(document)}),
        "lineage": _checks(document["lineage"]),
        "methods": {
            part["method"]: without(part, "method") | {"checks": _checks(part["checks"])}
            for part in document["methods"]
        },
    }


def _json_digest(value: Any) -> str:
    return digest(json.dumps(value, sort_keys=True))


def _checks(found: list[dict[str, str]]) -> dict[str, list[str]]:
    """Return the checks by their verdict, each with its detail, if there is one."""
    by_verdict: dict[str, list[str]] = {}
    for one in found:
        text = one["check"] + (f" ({one['detail']})" if one["detail"] else "")
        by_verdict.setdefault(one["verdict"], []).append(text)
    return by_verdict


def without(value: Any, *names: str) -> Any:
    """Return a value without what changes from run to run, at any depth, and without these fields."""
    if isinstance(value, dict):
        gone = _PASSING.union(names)
        return {name: without(part) for name, part in value.items() if name not in gone}
    return [without(part) for part in value] if isinstance(value, list) else value


def _source(method: str, desk: Desk) -> dict[str, Any]:
    """Release two halves of a source one after the other: what is kept between them stays readable."""
    rows = desk.path(desk.log()).read_text("utf-8").splitlines(keepends=True)
    settings = ["-s", "k=4"] if method != "dp-semantic" else ["-s", "budget=100", "-s", "max_queries=4"]
    state, held = f"state-{method}", {}
    for turn, part in enumerate((rows[1 : len(rows) * 2 // 3], rows[len(rows) // 3 :])):
        log, name = f"{method}-part-{turn}.csv", f"{method}-source-{turn}.csv"
        desk.path(log).write_text("".join([rows[0], *part]), "utf-8")
        words = ["-m", method, *settings, "--source", "shop", "--state", state]
        held[f"release {turn + 1}"] = _in_brief(_released(desk, name, *words, log=log))
    files = sorted(path for path in desk.path(state).rglob("*") if path.is_file())
    held["files"] = {
        str(path.relative_to(desk.path(state))): table_digest(path)["columns"]
        if path.suffix == ".parquet"
        else ""
        for path in files
    }
    return held


def _in_brief(held: dict[str, Any]) -> dict[str, Any]:
    """Return a release with digests of the parts of its certificate: other cases hold the texts whole."""
    parts = held["certificate"]
    methods = {
        name: {group: _json_digest(value) for group, value in part.items()}
        for name, part in parts["methods"].items()
    }
    return held | {"certificate": parts | {"methods": methods, "lineage": _json_digest(parts["lineage"])}}


def _format(name: str, desk: Desk) -> dict[str, Any]:
    """Protect the same records in one format."""
    write = _FORMATS[name]
    path, output = desk.path(f"log-{name}"), desk.path(f"out-{name}")
    write(desk, path)
    words = ("-m", "rules", "-m", "cohort", "-s", "k=4")
    held = _in_brief(_released(desk, output.name, *words, log=path.name))
    if path.suffix in _UNPACK:
        held["content"] = digest(_UNPACK[path.suffix](output.read_bytes()))
    if path.suffix == ".gz":  # the system's zlib may pack otherwise
        del held["release"], held["private"]
    if path.suffix == ".parquet":
        held["content"] = table_digest(output)
    return held


def _write(desk: Desk, path: Path) -> None:
    api.write(desk.frame(), str(path))


def _write_aol(desk: Desk, path: Path) -> None:
    desk.run("generate", "--users", 90, "--days", 12, *SEED, "-o", path.name)


def _write_excite(desk: Desk, path: Path) -> None:
    stamps = desk.frame().with_columns(pl.col("time").dt.strftime("%y%m%d%H%M%S"))
    path.write_text(stamps.select("user", "time", "query").write_csv(separator="\t", include_header=False))


def _write_ubi(desk: Desk, path: Path) -> None:
    path.mkdir()
    desk.path(path.name.replace("log", "out")).mkdir()  # an output that is a folder is UBI too
    api.write(desk.frame(), str(path))


#: How the log of each format is written; the name is also the ending of the files.
_FORMATS: dict[str, Callable[[Desk, Path], None]] = {
    "aol.tsv": _write_aol,
    "csv.csv": _write,
    "tsv.tsv": _write,
    "jsonl.jsonl": _write,
    "parquet.parquet": _write,
    "excite.log": _write_excite,
    "ubi": _write_ubi,
    "packed.csv.gz": _write,
    "packed.jsonl.zst": _write,
}
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".zst": lambda packed: zstandard.ZstdDecompressor().decompressobj().decompress(packed),
}


def _attacked(desk: Desk, name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Make a release; return the words that name it, its original and its truth."""
    file = f"attacked-{name}.csv"
    desk.release(file, *words)
    return file, "--original", desk.log(), "--truth", f"{file}.truth"


def _attacks(name: str, words: tuple[str, ...], desk: Desk) -> dict[str, Any]:
    asked = [word for one in ATTACKS.names() if one not in _LEARNED for word in ("-a", one)]
    found = desk.run("attack", *_attacked(desk, name, words), *asked, *SEED)
    return _findings(found)


def _findings(found: dict[str, Any]) -> dict[str, Any]:
    """Return findings by attack; what does not apply is its reason alone."""
    return {one["attack"]: _finding(one) for one in found["findings"]}


def _finding(one: dict[str, Any]) -> Any:
    """Return the figures of a finding in the order of `FIGURES`, then its details; or why there are none."""
    details = without(one.get("details") or {})
    figures = [one.get(figure) for figure in FIGURES]
    return one["not_applicable"] or ({"figures": figures, **details} if details else figures)


def _learned(words: tuple[str, ...], desk: Desk) -> dict[str, Any]:
    asked = ("-a", "link-learned", *_LEARNING)
    return _findings(desk.run("attack", *_attacked(desk, "cohort", words), *asked, *SEED))


def _measures(name: str, words: tuple[str, ...], desk: Desk) -> dict[str, Any]:
    asked = [word for one in MEASURES.names() for word in ("-u", one)]
    found = desk.run("measure", *_attacked(desk, name, words), *asked, "--marketing", "marketing.csv")
    measures: dict[str, Any] = found["measures"]  # a delay has seconds too: those of the records
    return measures


def _verify(name: str, words: tuple[str, ...], desk: Desk) -> Any:
    """Verify a release with all evidence; checks are digests, since certificates have their words."""
    told = without(desk.run("verify", *_attacked(desk, name, words)), "release", "certificate")
    return {part: _json_digest(value) if isinstance(value, list) else value for part, value in told.items()}


def _crowd_attacks(desk: Desk) -> dict[str, Any]:
    """Attack what a search engine sees of a crowd, which has no certificate."""
    words = ("--log", desk.log(), "--colluding", 0.3, "-o", "crowd.csv", "--truth", "crowd.truth", *SEED)
    desk.run("crowd", "simulate", *words)
    aim = ("crowd.csv", "--original", desk.log(), "--truth", "crowd.truth")
    held = _findings(desk.run("attack", *aim, "-a", "predecessor", *SEED))
    return held | {
        "trace": file_digest(desk.path("crowd.csv")),
        "truth": table_digest(desk.path("crowd.truth")),
    }


def _generate(seed: int, desk: Desk) -> dict[str, Any]:
    names = f"made-{seed}.tsv", f"made-{seed}-marketing.csv"
    words = ("--users", 40, "--days", 9, "--seed", seed, "--marketing", names[1])
    told = desk.run("generate", *words, "-o", names[0])
    return {"printed": without(told), "log": _file(desk, names[0]), "marketing": _file(desk, names[1])}


def _file(desk: Desk, name: str) -> str:
    return file_digest(desk.path(name))


def _classify(desk: Desk) -> dict[str, Any]:
    desk.run("generate", "--users", 60, "--days", 9, "--seed", 3, "-o", "plain.tsv")
    told = desk.run("classify", "plain.tsv", "-o", "classified.csv")
    return {"printed": without(told), "log": _file(desk, "classified.csv")}


def _obfuscate(method: str, desk: Desk) -> dict[str, Any]:
    name = f"trace-{method}.csv"
    told = desk.run("obfuscate", desk.log(), "-m", method, "-o", name, "--truth", f"{name}.truth", *SEED)
    return {
        "printed": without(told),
        "trace": _file(desk, name),
        "truth": table_digest(desk.path(f"{name}.truth")),
    }


def _crowd(desk: Desk) -> Any:
    words = ("--users", 150, "--queries", 2000, "--selfish", 0.1, "--colluding", 0.1, "--churn", 0.05)
    return without(desk.run("crowd", "simulate", *words, "--attack", *SEED))


def _categories(desk: Desk) -> dict[str, Any]:
    """Read some thousand queries and addresses: how many by evidence and topic, digests by first letter."""
    found = adapter.categories_of(*adapter.text_queries())
    return {
        "by evidence": dict(sorted(Counter(how for _, how, _ in found).items())),
        "by topic": dict(sorted(Counter(re.split("[/ ]", answer)[0] for *_, answer in found).items())),
        "answers": _by_first_letter((text, f"{how} {answer}") for text, how, answer in found),
    }


def _concepts(desk: Desk) -> dict[str, Any]:
    """Read the concepts of the same queries."""
    found = adapter.concepts_in(adapter.text_queries()[0])
    return {"without": sum(not answer for _, answer in found), "answers": _by_first_letter(found)}


def _by_first_letter(answers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a digest for each first letter, so that a failure names few texts."""
    lines: dict[str, list[str]] = {}
    for text, answer in answers:
        lines.setdefault(text[:1] if text[:1].isascii() else "other", []).append(f"{text}\t{answer}")
    return {letter: digest("\n".join(lines[letter])) for letter in sorted(lines)}


def _own(desk: Desk) -> Any:
    """Measure one person's history, as a list and as Google's export."""
    user = desk.frame()["user"].mode().sort()[0]
    own = desk.frame().filter(pl.col("user") == user)
    desk.path("own.txt").write_text("\n".join(own["query"]), "utf-8")
    stamps = own["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    items = [
        {"title": f"Searched for {query}", "time": time}
        for query, time in zip(own["query"], stamps, strict=True)
    ]
    desk.path("MyActivity.json").write_text(json.dumps(items), "utf-8")
    return {
        kind: without(desk.run("measure", "--own", name, "--format", kind, "--show"))
        for kind, name in (("list", "own.txt"), ("takeout", "MyActivity.json"))
    }


def _compare(desk: Desk) -> dict[str, Any]:
    words = ("-m", "cohort:k=4", "-m", "rules+frequent-only:k=3", "-a", "link-repeat", "-a", "link-overlap")
    told = desk.run("compare", desk.log(), *words, "--repeats", 2, *SEED, "-o", "compared")
    return _comparison(told["comparison"])


def _demo(desk: Desk) -> dict[str, Any]:
    told = desk.run("demo", "--users", 50, "-o", "demo")
    story = without(told, "lines", "report", "folder", "comparison")
    return story | {"comparison": _comparison(told["comparison"])}


def _comparison(data: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison with its figures whole; what describes attacks and measures as their names."""
    held: dict[str, Any] = without(data, "methods")
    for part in ("attacks", "measures"):
        held[part] = [one["name"] for one in held[part]]
    held["candidates"] = {one["name"]: _candidate(one) for one in held["candidates"]}
    return held


def _candidate(one: dict[str, Any]) -> dict[str, Any]:
    findings = {name: _finding(found) for name, found in one["findings"].items()}
    measures = {name: _figure(part) for name, part in one["measures"].items()}
    promises = {
        part["method"]: [part["audit"], _json_digest(without(part, "method", "audit"))]
        for part in one["promises"]
    }
    settings = _json_digest(one["settings"])
    held = {"findings": findings, "measures": measures, "promises": promises, "settings": settings}
    return without(one, "name", "methods") | held


def _figure(part: Any) -> Any:
    alike = isinstance(part, dict) and part.keys() == {"value", "low", "high"}
    return part["value"] if alike and part["low"] == part["high"] == part["value"] else part
