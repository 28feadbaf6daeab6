"""Labels and times of a release: the log's own user ids or new pseudonyms; kept, coarse or no times."""

from __future__ import annotations

import base64
import re
from functools import partial
from typing import Any, Final

import numpy as np

from querycloak.dictionary import Dictionaries, fingerprint
from querycloak.errors import Refused
from querycloak.kernels.arrays import grown
from querycloak.keys import derive
from querycloak.log import COLUMN_BIT, MISSING, NO_TIME, Batch, IntArray
from querycloak.protector import Protector
from querycloak.settings import setting

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?")
_IPV6 = re.compile(r"(?=.*::|(?:.*:){7})[0-9A-Fa-f:.]+(?:%\w+)?")


#: Declares `labels` in a method's settings.
labels_setting = partial(
    setting,
    "fresh",
    choices=("keep", "fresh"),
    stronger="last",
    help="give every user a `fresh` pseudonym for this release, or `keep` the log's own user ids, which "
    "needs a named source",
)
#: Declares `time` in a method's settings.
time_setting = partial(
    setting,
    "keep",
    choices=("keep", "coarsen", "drop"),
    stronger="last",
    help="`keep` times, `coarsen` them to the hour, or `drop` them: sessions betray people",
)
#: The same for a method that never keeps exact times.
coarse_time_setting = partial(
    setting,
    "coarsen",
    choices=("coarsen", "drop"),
    stronger="last",
    help="`coarsen` times to the hour, or `drop` them",
)
HOUR: Final = 3_600_000_000  # microseconds


def unit_of(policy: str) -> int:
    """Return the unit to which a time policy truncates times; 0 for none."""
    return HOUR if policy == "coarsen" else 0


def is_email_or_ip(label: str) -> bool:
    """Whether an id is itself an e-mail or IP address."""
    return any(pattern.fullmatch(label.strip()) for pattern in (_EMAIL, _IPV4, _IPV6))


def pseudonyms(names: list[str], key: bytes) -> list[str]:
    """Return a pseudonym for each name; only the key shows which name it belongs to."""
    numbers = fingerprint(names, key).astype("<u8")
    return [base64.b32encode(n.tobytes()).decode().rstrip("=").lower() for n in numbers]


class Pseudonyms:
    """Turns user codes into label codes, and refuses to keep ids that are addresses."""

    def __init__(self, policy: str, key: bytes, texts: Dictionaries) -> None:
        self._policy = policy
        self._key = derive(key, "labels")
        self._texts = texts
        self._label = np.empty(0, np.int64)  # by user code

    def apply(self, batch: Batch) -> Batch:
        """Return the batch with the labels that it may carry."""
        labels = self.of(batch.user)
        return batch if labels is batch.user else batch.replace(user=labels)

    def of(self, users: IntArray) -> IntArray:
        """Return the label of each user."""
        self._label = grown(self._label, int(users.max(initial=-1)) + 1, MISSING)
        known = self._label[users] >= 0
        if not known.all():
            self._learn(np.unique(users[~known & (users >= 0)]))
        return users if self._policy == "keep" else np.where(users >= 0, self._label[users], MISSING)

    def _learn(self, fresh: IntArray) -> None:
        if not fresh.size:
            return
        ids = self._texts.user.decode(fresh)
        if self._policy == "fresh":
            names = [label or "" for label in ids.to_list()]
            self._label[fresh] = self._texts.user.intern(pseudonyms(names, self._key))
            return
        doubtful = ids.filter(ids.str.contains_any(["@", ".", ":"]))  # few, as a rule
        if any(map(is_email_or_ip, doubtful)):
            raise Refused(
                "the user ids look like e-mail or IP addresses, so they cannot be kept as labels",
                hint="use `-s labels=fresh` for new pseudonyms",
            )
        self._label[fresh] = fresh


def apply_time_policy(policy: str, batch: Batch) -> Batch:
    """Return the batch with the times that may leave."""
    if policy == "coarsen":
        known = batch.time != NO_TIME
        return batch.replace(time=np.where(known, batch.time - batch.time % HOUR, NO_TIME))
    if policy == "drop":
        nothing = np.full(len(batch), NO_TIME, np.int64)
        return batch.replace(time=nothing, blank=batch.blank | COLUMN_BIT["time"])
    return batch


class LabelMethod(Protector):
    """Method with the setting `labels`: released users are ids of the log or pseudonyms."""

    settings: Any

    def __init__(self, settings: Any, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._labels = Pseudonyms(settings.labels, key, texts)

    def label_of(self, users: IntArray) -> IntArray:
        """Return the label that stands for each user in what leaves."""
        return self._labels.of(users)

    def _timed(self, batch: Batch) -> Batch:
        """Return the batch with the times that the setting `time` allows."""
        return apply_time_policy(self.settings.time, batch)
