"""Turns what Spark throws into our own errors: a worker's word comes wrapped in two languages' stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from querycloak import errors
from querycloak.errors import DataError, QueryCloakError

_OURS = re.compile(r"querycloak\.errors\.(\w+): (.+?)(?:\n\s*\nhint: ([^\n]+))?\n", re.DOTALL)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise a worker's error as if it had happened here; of others say only what kind they are."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _plain(str(error), type(error).__name__) from None


def _plain(text: str, kind: str) -> QueryCloakError:
    """Find the error that a worker raised; Spark's text may hold rows, so nothing else of it is shown."""
    found = _OURS.search(text + "\n")
    known = getattr(errors, found[1], None) if found else None
    if found and isinstance(known, type) and issubclass(known, QueryCloakError):
        return known(found[2].split("\n")[0], hint=found[3] or "")
    return DataError(
        f"Spark gave up ({kind})",
        hint="set QUERYCLOAK_SPARK_LOG=error to see Spark's own messages; they may hold records of the log",
    )
