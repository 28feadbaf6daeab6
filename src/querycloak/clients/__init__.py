"""Programs that protect one searcher, without the help of a search engine: a crowd, and dummy queries.

`is_query` is the one definition of a query that a client sends.
"""

from __future__ import annotations

import re
from typing import Any, Final

#: The largest number of characters.
MAX_QUERY: Final = 2048
#: Every text without control characters, line separators and lone surrogates.
QUERY_PATTERN: Final = r"\A[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+\Z"
_QUERY: Final = re.compile(QUERY_PATTERN)


def is_query(text: Any) -> bool:
    """Whether something is a text of 1 to 2,048 characters without control characters."""
    return isinstance(text, str) and len(text) <= MAX_QUERY and _QUERY.match(text) is not None
