"""Every exception that QueryCloak raises, and what each means to a shell and to an HTTP client.

    QueryCloakError
    ├── UsageError      exit 2, HTTP 422   the request cannot be carried out as asked
    │   ├── ParameterError                 a setting is out of its bounds (also a ValueError)
    │   ├── UnknownName                    no method, format, ... of that name (also a LookupError)
    │   └── Refused                        allowed by the settings, refused by policy or by the ledger
    ├── DataError       exit 3, HTTP 422   the log is not what was declared
    ├── BrokenPromise   exit 4, HTTP 500   a release failed its audit; nothing is written
    ├── JournalBroken   exit 3, HTTP 503   the disk failed while something was kept (also an OSError)
    ├── ServiceFailed   exit 3, HTTP 503   the live service cannot apply a stored record
    ├── Gone            exit 3, HTTP 410   what was asked for is no longer kept
    ├── Unavailable     exit 3, HTTP 503   not now: the same call can be made again later
    │   ├── DiskFull                       the disk has no room
    │   │   └── JournalFull                ... to keep what came in (also an OSError)
    │   └── StoreUnavailable               a database does not answer
    ├── MissingExtra    exit 2, HTTP 501   an optional part is not installed (also an ImportError)
    └── of the service:
        ├── Malformed           HTTP 400   what came is not a request
        ├── UnknownToken        HTTP 401   no token, or one that nobody holds
        ├── Forbidden           HTTP 403   the token's role, or a page elsewhere, does not allow this
        ├── NotThere            HTTP 404   there is nothing of that kind
        ├── WrongMethod         HTTP 405   the address takes other methods
        ├── TooSlow             HTTP 408   a request took too long to arrive
        ├── Busy                HTTP 429   it cannot take this now; try again
        ├── OtherType           HTTP 415   a body of a type that is not read
        ├── Misdirected         HTTP 421   the request was meant for another host
        └── TooLarge            HTTP 413   a body or line is above the stated limit
            └── HeadTooLarge    HTTP 431   ... or the lines before it are

A message says what is wrong, where, and what was given. It never holds a query, a user or any cell
of a log: name the row number and the column instead.
"""

from __future__ import annotations

from typing import ClassVar


class QueryCloakError(Exception):
    """The parent of all errors that QueryCloak raises on purpose."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 2
    http_status: ClassVar[int] = 422

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n\nhint: {hint}" if hint else message)


class UsageError(QueryCloakError):
    """The request cannot be carried out as asked."""

    code = "usage"


class ParameterError(UsageError, ValueError):
    """A setting has a value that its declaration does not allow."""

    code = "parameter"


class UnknownName(UsageError, LookupError):
    """No method, attack, measure, format or setting has that name."""

    code = "unknown-name"


class Refused(UsageError):
    """The settings are valid, but carrying them out would break a policy."""

    code = "refused"


class DataError(QueryCloakError):
    """The log is not what was declared."""

    code = "data"
    exit_status = 3


class BrokenPromise(QueryCloakError):
    """A release failed its own audit, so nothing was written."""

    code = "broken-promise"
    exit_status = 4
    http_status = 500


class Gone(QueryCloakError):
    """What was asked for is no longer kept."""

    code = "gone"
    exit_status = 3
    http_status = 410


class Unavailable(QueryCloakError):
    """Not now: the same call can be made again later, and then nothing is lost or doubled."""

    code = "unavailable"
    exit_status = 3
    http_status = 503


class DiskFull(Unavailable):
    """The disk has no room for what has to be written."""

    code = "disk-full"


class StoreUnavailable(Unavailable):
    """A database does not answer."""

    code = "store-unavailable"


class JournalFull(DiskFull, OSError):
    """The disk has no room for what came in; nothing of it is kept."""

    code = "journal-full"


class JournalBroken(QueryCloakError, OSError):
    """The disk failed while something was being kept; no more is taken until the journal is opened again."""

    code = "journal-broken"
    exit_status = 3
    http_status = 503


class ServiceFailed(QueryCloakError):
    """The live service cannot apply a stored record, so its process ends."""

    code = "service-failed"
    exit_status = 3
    http_status = 503


class MissingExtra(QueryCloakError, ImportError):
    """An optional part is not installed."""

    code = "missing-extra"
    http_status = 501

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the extra `{extra}`", hint=f"run `pip install 'querycloak[{extra}]'`"
        )


class Busy(QueryCloakError):
    """The service cannot take this now; it may when the client tries again, after so many seconds."""

    code = "busy"
    http_status = 429

    def __init__(self, message: str, *, hint: str = "", retry_after: int = 1) -> None:
        self.retry_after = retry_after
        super().__init__(message, hint=hint)


class TooLarge(QueryCloakError):
    """A request or a line is larger than the stated limit."""

    code = "too-large"
    http_status = 413


class NotFound(QueryCloakError):
    """What was asked for does not exist."""

    code = "not-there"
    http_status = 404


class Malformed(QueryCloakError):
    """What came over the line is not an HTTP request."""

    code = "malformed"
    http_status = 400


class UnknownToken(QueryCloakError):
    """No token, or one that nobody holds."""

    code = "unknown-token"
    http_status = 401


class Forbidden(QueryCloakError):
    """The token's role does not allow this, or a page from elsewhere asks for it."""

    code = "forbidden"
    http_status = 403


class MethodNotAllowed(QueryCloakError):
    """The address is known, but not with this method."""

    code = "wrong-method"
    http_status = 405


class TooSlow(QueryCloakError):
    """A request took longer to arrive than the stated time."""

    code = "too-slow"
    http_status = 408


class UnsupportedMediaType(UsageError):
    """A body has a type that is not read here."""

    code = "other-type"
    http_status = 415


class Misdirected(QueryCloakError):
    """A request names a host that this service is not: a name was made to point here."""

    code = "misdirected"
    http_status = 421


class HeadTooLarge(TooLarge):
    """The address or the headers of a request are larger than the stated limit."""

    code = "head-too-large"
    http_status = 431


class NotApplicable(Exception):
    """Raised by an attack or a measure that does not apply to a release. The text is the reason."""
