"""The one protocol: a method takes a log piece by piece and hands back only what may be shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries, Dictionary
from querycloak.errors import ParameterError, Refused
from querycloak.guarantee import Guarantee
from querycloak.keys import derive
from querycloak.knowledge import Game, Knowledge
from querycloak.log import Batch, IntArray

State = dict[str, npt.NDArray[Any]]

#: Why records of people who asked to be forgotten are dropped, and others' that waited under their labels.
ERASED: Final = "erased on request"
UNDER_ERASED_LABEL: Final = "waited under the label of somebody erased"


class Labels(StrEnum):
    """What the user column of a released record means."""

    #: The author, by one id or one pseudonym.
    OWN = "own"
    #: The author, by one of several pseudonyms.
    PARTS = "parts"
    #: Always another user than the author.
    OTHERS = "others"
    #: Any member of the author's group.
    GROUP = "group"
    #: Nothing: the column is empty.
    NONE = "none"

    @property
    def exchanged(self) -> bool:
        """Whether labels of several users are mixed, so that a label no longer stands for its author."""
        return self in (Labels.OTHERS, Labels.GROUP, Labels.PARTS)

    @property
    def hides_authors(self) -> bool:
        """Whether a later method cannot tell which records are of one author."""
        return self in (Labels.OTHERS, Labels.GROUP, Labels.NONE)


@dataclass(frozen=True)
class AttackBound:
    """No attack of `game` succeeds more often than `value`, if the attacker has no more than `knowledge`.

    `known_terms` is the number of terms of a target that an identifying attacker may know; 0 for any number.
    `claimed_by` names the origin of a bound that the method itself does not guarantee.
    """

    game: Game
    value: float
    knowledge: Knowledge = Knowledge.RELEASE
    known_terms: int = 0
    claimed_by: str = ""

    def covers(self, game: Game, knowledge: Knowledge, known_terms: float = 0) -> bool:
        """Whether the bound is about an attacker who knows this, and so many terms of a target."""
        few_enough = not self.known_terms or known_terms <= self.known_terms
        return self.game == game and knowledge in self.knowledge and few_enough


class Channel(Protocol):
    """Published randomisation of concepts: what an attacker knows of the way from original to release.

    A concept is a number. A concept is drawn in place of another of its domain with a probability that is
    proportional to exp(ε/2 · similarity).
    """

    @property
    def limits_guesses(self) -> bool:
        """Whether the guarantee limits how often the original of a released concept is guessed."""
        return True

    def read(self, texts: pl.Series) -> tuple[IntArray, IntArray]:
        """Return the concepts of original texts in sequence, and where those of each text begin."""

    def read_released(self, texts: pl.Series) -> tuple[IntArray, IntArray]:
        """Return the same for released texts."""

    def domain_of(self, concepts: IntArray) -> IntArray:
        """Return the domain of each concept."""

    @property
    def concepts(self) -> int:
        """The number of concepts that can be drawn."""

    def draws(self, phrases: IntArray) -> IntArray:
        """Return the number of draws for so many phrases of a user in one domain."""

    def epsilon_per_draw(self, draws: int) -> float:
        """Return the ε of one draw in a history of so many draws."""

    def likeliest(
        self, released: IntArray, epsilon: npt.NDArray[np.float64], concepts: IntArray, log_prior: Any
    ) -> IntArray:
        """Return the place in `concepts` of the likeliest original of each released concept; -1 for none.

        `epsilon` is that of each draw. `concepts` come in falling order of `log_prior`.
        """


@dataclass(frozen=True)
class StoredState:
    """State that is kept across the releases of a source.

    Methods with `shared` state use one file of this name. The values of `fixed_settings` may not change
    between releases. `totals` are facts about all releases of the source: unknown without a ledger.
    """

    name: str
    shared: bool = False
    fixed_settings: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()


class SourceState(Protocol):
    """State that a method keeps across the releases of a source, as `Traits.stored_state` declares."""

    name: str

    def load(self, table: pl.DataFrame | None) -> IntArray:
        """Continue from the table of earlier releases; None if it should exist but was not found.

        Return the codes of its users who belong to the ground truth of this release.
        """

    def save(self) -> pl.DataFrame:
        """Return the table that the next release loads. It holds user ids: protect it like the log."""

    @staticmethod
    def merge(tables: list[pl.DataFrame], loaded: pl.DataFrame | None = None) -> pl.DataFrame:
        """Combine the tables of workers with different users. All of them loaded the same table, if any."""


@dataclass(frozen=True)
class Budget:
    """Privacy budget of a user over all releases of a source."""

    limit: float
    when_spent: Literal["refuse", "drop"] = "refuse"


Columns = frozenset[str]
USER_AND_QUERY: Final[Columns] = frozenset({"user", "query"})
#: Arrays of a snapshot that hold the codes of held records.
HELD_CODES: Final[Mapping[str, str]] = {f"held_{name}": name for name in ("query", "url", "category")}


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Properties of a method with given settings."""

    #: Columns that a batch must contain; the engine leaves the others empty.
    reads: Columns = USER_AND_QUERY
    #: Columns that the log must have.
    requires: Columns = USER_AND_QUERY
    #: Columns whose released values the method sets.
    rewrites: Columns = frozenset()
    #: Columns that are empty in the release.
    empties: Columns = frozenset()
    #: Columns of which single cells may be empty in the release.
    may_empty: Columns = frozenset()
    #: Released times are truncated to this unit, in microseconds; 0: they are not.
    time_unit: int = 0
    #: Later methods may empty these columns, but not change them.
    promised_columns: Columns = frozenset()
    #: Whether released queries contain words that the user did not type.
    replaces_words: bool = False
    #: Whether records can be held, so that the order of release differs from the order of time.
    buffers_records: bool = True
    #: Whether nothing is released before `close`.
    needs_whole_log: bool = False
    #: Whether the input must be in time order.
    needs_time_order: bool = False
    #: Whether the engine must keep the order in which records of one moment are returned.
    sets_release_order: bool = False
    #: What the method treats as one element: a search with all of its clicks, or a row.
    unit: Literal["search", "row"] = "search"
    output: Literal["records", "counts"] = "records"
    #: Whether released rows can have no original row; their row numbers are negative.
    creates_rows: bool = False
    labels: Labels = Labels.OWN
    #: Whether labels are new pseudonyms of this release.
    fresh_labels: bool = False
    #: Whether no other method may replace or empty users.
    needs_authors: bool = False
    #: Whether the output for a user depends on that user's records only.
    user_independent: bool = False
    #: Whether the guarantee is user-level differential privacy, so that all earlier methods must be
    #: user-independent.
    needs_user_independent_input: bool = False
    stored_state: StoredState | None = None
    budget: Budget | None = None
    #: Whether noise comes from the operating system, so that no seed reproduces it.
    system_noise: bool = False
    bounds: tuple[AttackBound, ...] = ()
    #: Settings that can change in a running service.
    live_settings: frozenset[str] = frozenset()
    #: Arrays of a snapshot that hold codes of texts, each with its column: `query`, `url` or `category`.
    #: A snapshot need not have all of them. Codes of users are permanent.
    coded_state: Mapping[str, str] = field(default_factory=lambda: HELD_CODES)
    #: `module:function` that gives the number of a row's window as SQL, for a method that protects each
    #: window of time by itself and has no partition key: a worker then runs it on one window.
    spark_form: str = ""
    #: Setting along which `compare` draws a curve.
    main_setting: str = ""
    #: Whether there is no guarantee of privacy, so that the release is not for publication.
    comparison_only: bool = False
    #: Published randomisation of concepts, for `bayes-concept`.
    channel: Channel | None = None

    @property
    def is_table(self) -> bool:
        """Whether the result is a table of counts instead of records."""
        return self.output == "counts"


class Protector(ABC):
    """Takes a log piece by piece; hands back only what may already be shown.

    Time is read from the records; there is no clock. Randomness is drawn from `key` by record id, so
    cutting, splitting by `partition_key`, restarting or replaying a log changes nothing. What is not
    handed back is either still held or was dropped, and `drop` says why.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[declared.Settings]]
    #: The optional part of the package without which the method cannot run (`dp`), if any.
    extra: ClassVar[str] = ""
    #: Conformance checks that do not apply to this method, each with the reason.
    exempt: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("Settings")
        if own is not None and "name" in cls.__dict__:
            own.method = cls.name

    def __init__(self, settings: declared.Settings, key: bytes, texts: Dictionaries) -> None:
        self.settings = settings
        self.key = key
        self.texts = texts
        self.dropped: Counter[str] = Counter()
        self.explanation = {}
        self._dropped_rows: list[IntArray] = []

    @classmethod
    def traits(cls, settings: Any) -> Traits:
        """Return the properties of the method with these settings that other code may use."""
        return Traits()

    @classmethod
    @abstractmethod
    def promise(cls, settings: Any) -> Guarantee:
        """Return the guarantee of the method with these settings, with the audits that test it."""

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [cls.Settings()]

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Return which elements must stay together when work is split; None: they all must.

        The same text has the same key in every process (see `key_of_text`), so that workers agree.
        """
        return None

    def key_of_text(self, known: Dictionary, codes: IntArray) -> IntArray:
        """Return each code's text as a number for `partition_key`; 0 without a text."""
        keys = np.zeros(codes.size, np.int64)
        some = codes >= 0
        prints = known.fingerprints(codes[some], derive(self.key, "partition"))
        keys[some] = (prints >> np.uint64(1)).astype(np.int64)
        return keys

    @abstractmethod
    def push(self, batch: Batch) -> Batch:
        """Take records in; hand back what is safe now, each with the `seq` of its release."""

    def advance(self, watermark: int) -> Batch:
        """Note that event time has moved on although no record came."""
        return Batch.empty(self.texts)

    @abstractmethod
    def close(self) -> Batch:
        """End the input: hand back or drop what is held."""

    @abstractmethod
    def snapshot(self) -> State:
        """Return all state as arrays, to carry on elsewhere. It holds raw records: guard it."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""

    def erase(self, users: IntArray, rows: IntArray) -> None:  # noqa: B027 - some methods hold nothing
        """Forget people: drop what is held of theirs, and keep the promise without them.

        `users` are their codes as this method sees them: behind a method that gives labels, the labels that
        stand for them. `rows` are the input rows of their records that have not left the pipeline: behind
        `swap`, these carry others' labels. So a record goes if it is theirs, or waits under their label.
        Nothing leaves by an erasure. An erased code never returns: who comes back gets another id.
        """

    def counts(self) -> pl.DataFrame:
        """Return the result of a `table` method, after `close`: some of `user, query, category`, and `count`.

        Asking twice gives the same table, never fresh noise.
        """
        raise NotImplementedError(f"`{self.name}` gives records")

    def check_ready(self) -> None:  # noqa: B027 - most methods need nothing beside the package
        """Raise if the method cannot run here, before a long log is read."""

    def check_user_count(self, people: int) -> None:  # noqa: B027 - most methods work for any number
        """Refuse settings that so many people cannot meet, and say what would work."""

    @classmethod
    def weaker_settings(cls, settings: declared.Settings, users: int) -> str:
        """Return settings that can release something where these release nothing of so many users."""
        name = cls.traits(settings).main_setting
        stronger = {f.name: f.metadata["stronger"] for f in fields(settings)}.get(name)
        value = getattr(settings, name, None)
        if not isinstance(value, int | float) or stronger not in ("larger", "smaller"):
            return ""
        weaker = value * 2 if stronger == "smaller" else type(value)(value / 2)
        try:
            replace(settings, **{name: weaker})
        except ParameterError:
            return ""
        return f"use `-s {cls.name}.{name}={weaker}`, which protects less"

    #: Why the method did what it did, for `--explain`; names nothing that fewer than its k people share.
    explanation: dict[str, Any]

    def tally(self) -> State:
        """Return what `facts` counts, as arrays: those of several workers are put together end to end."""
        return {}

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """Return what the certificate states about this very release, beside the promise.

        With a tally it is about what several workers did together.
        """
        return {}

    #: State that is kept across the releases of a source, if any.
    source_state: SourceState | None = None

    def truth_columns(self, users: IntArray) -> Mapping[str, IntArray]:
        """Return further columns of the ground truth about the authors of released records."""
        return {}

    def change_setting(self, name: str, value: Any) -> None:
        """Use another value of a setting from now on; only names in `Traits.live_settings`."""
        raise Refused(f"`{name}` of `{self.name}` cannot be changed while records flow")

    def current_settings(self) -> Any:
        """Return the settings in force, with the values of live settings."""
        return self.settings

    def label_of(self, users: IntArray) -> IntArray:
        """Return the label that stands for each user: evaluation needs it, no release shows it."""
        return users

    def drop(self, rows: IntArray, reason: str) -> None:
        """Record that these rows will never be shown."""
        if rows.size:
            self.dropped[reason] += int(rows.size)
            self._dropped_rows.append(rows)

    def drop_erased(self, held: Batch, users: IntArray, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Drop the held records that `erase` must drop; return which of them stay."""
        own = np.isin(held.row, rows)
        labelled = np.isin(held.user, users) & ~own
        self.drop(held.row[own], ERASED)
        self.drop(held.row[labelled], UNDER_ERASED_LABEL)
        return ~(own | labelled)

    def drain_dropped(self) -> IntArray:
        """Hand over the rows dropped since the last call, so that the engine can forget them."""
        rows, self._dropped_rows = self._dropped_rows, []
        return np.concatenate(rows) if rows else np.empty(0, np.int64)

    def _snapshot_dropped(self) -> State:
        reasons = sorted(self.dropped)
        return {
            "dropped_reasons": np.array(reasons, dtype=np.str_),
            "dropped_counts": np.array([self.dropped[r] for r in reasons], dtype=np.int64),
        }

    def _restore_dropped(self, state: State) -> None:
        reasons, counts = state["dropped_reasons"].tolist(), state["dropped_counts"].tolist()
        self.dropped = Counter(dict(zip(reasons, counts, strict=True)))
