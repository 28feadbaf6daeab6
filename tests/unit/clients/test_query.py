"""One definition of a query: every script and emoji, no control characters."""

from __future__ import annotations

import pytest

from querycloak.clients import MAX_QUERY, is_query


@pytest.mark.parametrize(
    "text",
    [
        "oboe",
        "می\u200cخواهم",  # Persian, with a zero-width non-joiner
        "क्\u200dष",  # Hindi, with a zero-width joiner
        "\U0001f469\u200d\U0001f52c lab",  # emoji, with a zero-width joiner
        "10\u00a0km",  # a no-break space
        "x" * MAX_QUERY,
    ],
)
def test_queries(text):
    assert is_query(text)


@pytest.mark.parametrize(
    "text",
    ["", "x" * (MAX_QUERY + 1), "a\tb", "a\nb", "a\x00", "a\x85", "a\u2028b", "\ud800", 5, None, b"oboe"],
)
def test_what_is_no_query(text):
    assert not is_query(text)
