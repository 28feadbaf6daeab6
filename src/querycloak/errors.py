"""Every exception that QueryCloak raises, and what each means to a shell and to an HTTP client.

    QueryCloakError
    ├── UsageError      exit 2, HTTP 422   the request cannot be carried out as asked
    │   ├── ParameterError                 a setting is out of its bounds (also a ValueError)
    │   ├── UnknownName                    no method, format, ... of that name (also a LookupError)
    │   └── Refused                        allowed by the settings, refused by policy or by the ledger
    ├── DataError       exit 3, HTTP 422   the log is not what was declared
    ├── BrokenPromise   exit 4, HTTP 500   a release failed its audit; nothing is written
    └── MissingExtra    exit 2, HTTP 501   an optional part is not installed (also an ImportError)

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


class MissingExtra(QueryCloakError, ImportError):
    """An optional part is not installed."""

    code = "missing-extra"
    http_status = 501

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the extra `{extra}`", hint=f"run `pip install 'querycloak[{extra}]'`"
        )
