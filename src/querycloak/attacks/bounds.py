"""What a release says an attack cannot exceed, and whose word that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from querycloak.attacks.protocol import LABELLING, Attack, AttackerView, Meanings


@dataclass(frozen=True)
class Bound:
    """A share that success should not exceed, and who says so."""

    value: float
    said_by: str

    def details(self) -> dict[str, Any]:
        """Say where the bound comes from; what only the paper says is marked as a claim."""
        claimed = {"claimed_bound": self.value} if self.said_by == PAPER else {}
        return {"bound_from": self.said_by} | claimed


PAPER = "claimed by the paper"
COHORT = "promised by cohort"
KM = "promised by km"
DP = "promised by dp-semantic"


def bound_of(attack: Attack, view: AttackerView, guesses: Any = None) -> Bound | None:
    """Give the bound for an attack: attributions from the release alone have one, and a few known terms.

    Who knows volumes, histories or some of a person's queries may do better, and nobody promised
    otherwise. `cohort` per category promises nothing either. `km` promises that up to m known terms lead to
    no history or to k of them. Guesses of meanings carry their own ceilings.
    """
    if isinstance(guesses, Meanings):
        known = guesses.ceiling is not None and guesses.ceiling.size
        return Bound(float(np.mean(guesses.ceiling)), DP) if known else None  # type: ignore[arg-type]
    if attack.game == "identification":
        return _of_known_terms(attack, view)
    k = stated(view, "k")
    if attack.game != "attribution" or attack.knows or not isinstance(k, int):
        return None
    if view.method() == "swap":
        return Bound(1.0 / k, PAPER)
    if view.method() == "cohort" and stated(view, "scope") != "category":
        return Bound(1.0 / k, COHORT)
    return None


def _of_known_terms(attack: Attack, view: AttackerView) -> Bound | None:
    """Give 1/k to an attacker who knows at most m terms of a person, and nothing else."""
    stages = [part["settings"] for part in view.certificate.get("methods", []) if part["method"] == "km"]
    chosen: Any = attack.settings
    knows_terms = attack.knows == {"samples"} and getattr(chosen, "known", None) == "terms"
    if not stages or not knows_terms or view.method() in LABELLING:
        return None  # labels that were exchanged afterwards stand for other histories
    k, m = stages[-1].get("k"), stages[-1].get("m")
    if not isinstance(k, int) or not isinstance(m, int) or chosen.queries > m:
        return None
    return Bound(1.0 / k, KM)


def stated(view: AttackerView, name: str) -> Any:
    """Give a setting of the method that made the labels, as the certificate states it."""
    for part in view.certificate.get("methods", []):
        if part["method"] == view.method():
            return part["settings"].get(name)
    return None
