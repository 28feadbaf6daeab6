"""The user ids that a release carries: the log's own, or new pseudonyms."""

from __future__ import annotations

import base64
import re
from typing import Final

import numpy as np

from querycloak.dictionary import Texts, fingerprint
from querycloak.errors import Refused
from querycloak.keys import derive
from querycloak.log import NOTHING, Batch, IntArray
from querycloak.settings import setting

#: How every method with labels declares the choice.
LABELS: Final = {
    "kind": str,
    "choices": ("keep", "fresh"),
    "help": "`keep` the log's own user ids, or give every user a `fresh` pseudonym for this release",
}

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?")
_IPV6 = re.compile(r"(?=.*::|(?:.*:){7})[0-9A-Fa-f:.]+(?:%\w+)?")


def labels_setting() -> object:
    """Declare `labels` in a method's settings."""
    return setting("keep", kind=str, choices=("keep", "fresh"), help=str(LABELS["help"]))


def tells_a_person(label: str) -> bool:
    """Say whether an id is itself an e-mail or IP address."""
    return any(pattern.fullmatch(label.strip()) for pattern in (_EMAIL, _IPV4, _IPV6))


def pseudonyms(names: list[str], key: bytes) -> list[str]:
    """Give each name a label that only who has the key can tell to be its."""
    numbers = fingerprint(names, key).astype("<u8")
    return [base64.b32encode(n.tobytes()).decode().rstrip("=").lower() for n in numbers]


class Labels:
    """Turns user codes into label codes, and refuses to keep ids that are addresses."""

    def __init__(self, policy: str, key: bytes, texts: Texts) -> None:
        self._policy = policy
        self._key = derive(key, "labels")
        self._texts = texts
        self._label = np.empty(0, np.int64)  # by user code

    def apply(self, batch: Batch) -> Batch:
        """Give the batch with the labels that it may carry."""
        labels = self.of(batch.user)
        return batch if labels is batch.user else batch.replace(user=labels)

    def of(self, users: IntArray) -> IntArray:
        """Give the label of each user."""
        top = int(users.max(initial=-1))
        if top >= self._label.size:
            self._label = np.concatenate(
                [self._label, np.full(top + 1 - self._label.size, NOTHING, np.int64)]
            )
        known = self._label[users] >= 0
        if not known.all():
            self._learn(np.unique(users[~known & (users >= 0)]))
        return users if self._policy == "keep" else np.where(users >= 0, self._label[users], NOTHING)

    def _learn(self, fresh: IntArray) -> None:
        if not fresh.size:
            return
        ids = self._texts.user.decode(fresh)
        if self._policy == "fresh":
            names = [label or "" for label in ids.to_list()]
            self._label[fresh] = self._texts.user.intern(pseudonyms(names, self._key))
            return
        doubtful = ids.filter(ids.str.contains_any(["@", ".", ":"]))  # few, as a rule
        if any(map(tells_a_person, doubtful)):
            raise Refused(
                "the user ids look like e-mail or IP addresses, so they cannot be kept as labels",
                hint="use `-s labels=fresh` for new pseudonyms",
            )
        self._label[fresh] = fresh
