"""Attacks, one a file: each looks at what an attacker would see and guesses; scoring is elsewhere."""

from __future__ import annotations

from querycloak.attacks.protocol import Attack, AttackerView, Attribution, Identification, Linkage

__all__ = ["Attack", "AttackerView", "Attribution", "Identification", "Linkage"]
