"""The AOL log of 2006: tab-separated, five fixed columns, no quoting."""

from __future__ import annotations

from querycloak.formats import times
from querycloak.formats.columns import AOL
from querycloak.formats.delimited import Delimited
from querycloak.formats.registry import FormatTraits, Match


class Aol(Delimited):
    """A header `AnonID Query QueryTime ItemRank ClickURL`, then one record a line."""

    name = "aol"
    traits = FormatTraits(
        extensions=(".tsv", ".tab", ".txt", ".log"), by_line=True, header=True, fixed_columns=True
    )
    names = AOL
    delimiter = "\t"
    default_time_style = times.PLAIN

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by its header."""
        first = head.partition(b"\n")[0].rstrip(b"\r")
        return Match.CERTAIN if first == "\t".join(self.names.values()).encode() else Match.NO
