"""Logs in and out of files: the only room that knows file formats.

`read` and `pieces` give a `Log` with canonical columns from AOL, CSV, TSV, JSON lines, Parquet, Excite
and OpenSearch UBI, packed or not; `Writer` and `write` go the other way, in the `Layout` of the input.
"""

from querycloak.formats.layout import FORMATS, Layout, default_layout, layout_for, table_layout
from querycloak.formats.parquet_writer import frame_layout
from querycloak.formats.reader import pieces, read
from querycloak.formats.reasons import REASONS
from querycloak.formats.sinks import sha256
from querycloak.formats.writer import Writer, write

__all__ = [
    "FORMATS",
    "REASONS",
    "Layout",
    "Writer",
    "default_layout",
    "frame_layout",
    "layout_for",
    "pieces",
    "read",
    "sha256",
    "table_layout",
    "write",
]
