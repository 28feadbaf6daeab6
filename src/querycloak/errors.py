"""Every exception that QueryCloak raises, and what each means to a shell and to an HTTP client.

    QueryCloakError
    ├── UsageError      exit 2, HTTP 422   the request cannot be carried out as asked
    │   ├── ParameterError                 a setting is out of its bounds (also a ValueError)
    │   ├── UnknownName                    no method, format, ... of that name (also a LookupError)
    │   └── Refused                        allowed by the settings, refused by policy or by the ledger
    ├── DataError       exit 3, HTTP 422   the log is not what was declared
    ├── BrokenPromise   exit 4, HTTP 500   a release failed its audit; nothing is written
    ├── MissingExtra    exit 2, HTTP 501   an optional part is not installed (also an ImportError)
    ├── Unavailable     exit 3, HTTP 503   not now: the same call can be made again later
    └── ...                                of the service and of requests to it

A message says what is wrong, where, and what was given. It never holds a query, a user or any cell
of a log: name the row number and the column instead.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, Final

#: No space, over quota, or larger than a file may be.
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DISK_FULL: Final = "the disk is full; nothing unfinished is kept"
DISK_FULL_HINT: Final = "free space, or name another disk: `-o` for the output, TMPDIR for temporary files"
_NUMBER: Final = re.compile(r"\(os error (\d+)\)")  # in errors of polars, which are no OSError


class QueryCloakError(Exception):
    """The parent of all errors that QueryCloak raises on purpose."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 2
    http_status: ClassVar[int] = 422

    def __init_subclass__(cls, *, code: str = "", exit_status: int = 0, http_status: int = 0) -> None:
        """Set the class attributes; those that are not given are the parent's."""
        cls.code, cls.exit_status = code or cls.code, exit_status or cls.exit_status
        cls.http_status = http_status or cls.http_status

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n\nhint: {hint}" if hint else message)


class UsageError(QueryCloakError, code="usage"):
    """The request cannot be carried out as asked."""


class ParameterError(UsageError, ValueError, code="parameter"):
    """A setting has a value that its declaration does not allow."""


class UnknownName(UsageError, LookupError, code="unknown-name"):
    """No method, attack, measure, format or setting has that name."""


class Refused(UsageError, code="refused"):
    """The settings are valid, but carrying them out would break a policy."""


class DataError(QueryCloakError, code="data", exit_status=3):
    """The log is not what was declared."""


class BrokenPromise(QueryCloakError, code="broken-promise", exit_status=4, http_status=500):
    """A release failed its own audit, so nothing was written."""


class Gone(QueryCloakError, code="gone", exit_status=3, http_status=410):
    """What was asked for is no longer kept."""


class Unavailable(QueryCloakError, code="unavailable", exit_status=3, http_status=503):
    """Not now: the same call can be made again later, and then nothing is lost or doubled."""


class DiskFull(Unavailable, code="disk-full"):
    """The disk has no room for what has to be written."""


def is_full(error: BaseException) -> bool:
    """Whether a write failed for lack of space, which can come back."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _FULL
    found = _NUMBER.search(str(error))
    return found is not None and int(found[1]) in _FULL


@contextmanager
def disk_errors(name: str) -> Iterator[None]:
    """Raise DiskFull with the name of what is written, for an error that means so."""
    try:
        yield
    except Exception as error:
        if isinstance(error, QueryCloakError) or not is_full(error):
            raise
        raise DiskFull(f"{name}: {DISK_FULL}", hint=DISK_FULL_HINT) from None


class StoreUnavailable(Unavailable, code="store-unavailable"):
    """A database does not answer."""


class JournalFull(DiskFull, OSError, code="journal-full"):
    """The disk has no room for what came in; nothing of it is kept."""


class JournalBroken(QueryCloakError, OSError, code="journal-broken", exit_status=3, http_status=503):
    """The disk failed while something was being kept; no more is taken until the journal is opened again."""


class ServiceFailed(QueryCloakError, code="service-failed", exit_status=3, http_status=503):
    """The live service cannot apply a stored record, so its process ends."""


class MissingExtra(QueryCloakError, ImportError, code="missing-extra", http_status=501):
    """An optional part is not installed."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the extra `{extra}`", hint=f"run `pip install 'querycloak[{extra}]'`"
        )


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a module that an extra brings. Raise MissingExtra if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(extra, purpose) from None


class Busy(QueryCloakError, code="busy", http_status=429):
    """The service cannot take this now; it may when the client tries again, after so many seconds."""

    def __init__(self, message: str, *, hint: str = "", retry_after: int = 1) -> None:
        self.retry_after = retry_after
        super().__init__(message, hint=hint)


class TooLarge(QueryCloakError, code="too-large", http_status=413):
    """A request or a line is larger than the stated limit."""


class NotFound(QueryCloakError, code="not-there", http_status=404):
    """What was asked for does not exist."""


class Malformed(QueryCloakError, code="malformed", http_status=400):
    """What came over the line is not an HTTP request."""


class UnknownToken(QueryCloakError, code="unknown-token", http_status=401):
    """No token, or one that nobody holds."""


class Forbidden(QueryCloakError, code="forbidden", http_status=403):
    """The token's role does not allow this, or a page from elsewhere asks for it."""


class MethodNotAllowed(QueryCloakError, code="wrong-method", http_status=405):
    """The address is known, but not with this method."""


class TooSlow(QueryCloakError, code="too-slow", http_status=408):
    """A request took longer to arrive than the stated time."""


class UnsupportedMediaType(UsageError, code="other-type", http_status=415):
    """A body has a type that is not read here."""


class Misdirected(QueryCloakError, code="misdirected", http_status=421):
    """A request names a host that this service is not: a name was made to point here."""


class HeadTooLarge(TooLarge, code="head-too-large", http_status=431):
    """The address or the headers of a request are larger than the stated limit."""


class NotApplicable(Exception):
    """Raised by an attack or a measure that does not apply to a release. The text is the reason."""
