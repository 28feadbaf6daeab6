"""Certificates and findings made up for tests."""

from __future__ import annotations

import copy

HASH = "ab" * 32


def checks(**verdicts):
    return [{"check": text.replace("_", " "), "verdict": v, "detail": ""} for text, v in verdicts.items()]


def method(name="cohort", promise="at least 5 users", audit="kept", limits=("text",), facts=None, **settings):
    return {
        "method": name,
        "settings": settings,
        "promise": promise,
        "does_not_protect_against": list(limits),
        "facts": facts or {},
        "audit": audit,
        "checks": checks(everyone_is_in_a_group=audit),
    }


def certificate(*methods, findings=(), ledger=None, source="web", **randomness):
    found = {
        "schema": "querycloak/certificate/1",
        "tool": {"name": "querycloak", "version": "0.1.0"},
        "release": {
            "id": "r",
            "source": source,
            "sha256": HASH,
            "layout": {"format": "tsv", "kept": [], "mapping": {"user": "who"}},
        },
        "methods": list(methods) or [method(k=5)],
        "lineage": checks(no_row_twice="kept"),
        "audit": "kept",
        "randomness": {"secret": "operating system", "reproducible": False, "publishable": True} | randomness,
        "ledger": ledger,
        "findings": list(findings),
    }
    return copy.deepcopy(found)


def finding(
    attack="link-repeat", game="attribution", unit="record", success=0.1, wide=0.02, bound=None, **more
):
    low, high = (None, None) if success is None else (max(0.0, success - wide), min(1.0, success + wide))
    values = {"attack": attack, "game": game, "unit": unit, "success": success, "low": low, "high": high}
    return values | {"bound": bound, "n": 1000, "seconds": 0.1, "not_applicable": None} | more
