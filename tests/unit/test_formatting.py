"""Tables for notebooks show texts of others as texts."""

from __future__ import annotations

from querycloak.formatting import table


def test_nothing_in_a_table_is_taken_as_html():
    found = table(["<i>"], [["<script>"], ["a & b"]], "<b>")
    assert "&lt;i&gt;" in found
    assert "&lt;script&gt;" in found
    assert "a &amp; b" in found
    assert "<caption>&lt;b&gt;</caption>" in found
