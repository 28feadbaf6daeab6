"""Attacks on releases. The names here are for plug-ins."""

from __future__ import annotations

from querycloak.attacks.auxiliary import (
    AuxiliaryData,
    Frequencies,
    Histories,
    KnownSearches,
    KnownVolumes,
    Request,
    TrainingRelease,
)
from querycloak.attacks.base import Attack, AttackerView, Attribution, Identification, PairGuesses

__all__ = [
    "Attack",
    "AttackerView",
    "Attribution",
    "AuxiliaryData",
    "Frequencies",
    "Histories",
    "Identification",
    "KnownSearches",
    "KnownVolumes",
    "PairGuesses",
    "Request",
    "TrainingRelease",
]
