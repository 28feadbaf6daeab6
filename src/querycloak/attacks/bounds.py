"""What a release says an attack cannot exceed, and whose word that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from querycloak.attacks.protocol import Attack, AttackerView


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


def bound_of(attack: Attack, view: AttackerView) -> Bound | None:
    """Give the bound for an attack: only attributions from the release alone have one.

    Who knows volumes, histories or some of a person's queries may do better, and nobody promised
    otherwise. `cohort` per category promises nothing either.
    """
    k = stated(view, "k")
    if attack.game != "attribution" or attack.knows or not isinstance(k, int):
        return None
    if view.method() == "swap":
        return Bound(1.0 / k, PAPER)
    if view.method() == "cohort" and stated(view, "scope") != "category":
        return Bound(1.0 / k, COHORT)
    return None


def stated(view: AttackerView, name: str) -> Any:
    """Give a setting of the method that made the labels, as the certificate states it."""
    for part in view.certificate.get("methods", []):
        if part["method"] == view.method():
            return part["settings"].get(name)
    return None
