"""Logs in and out of files, the only package that knows file formats.

`read` and `pieces` return a `Log` with canonical columns from any registered format, compressed or not;
`Writer` and `write` write one, in the `Layout` of the input. A new format is a file with a class and a
line in `registry.FORMATS`, or an entry point `querycloak.formats` of another package.
"""

from querycloak.formats.exact import layout_fault
from querycloak.formats.layout import Layout
from querycloak.formats.output import AtomicFile, AtomicFolder, TextEncoder, Writer, sha256, write
from querycloak.formats.parquet import frame_layout
from querycloak.formats.reading import RawTable, ReadOptions, pieces, read
from querycloak.formats.registry import FORMATS, Format, FormatTraits, LineFormat, Match, detect
from querycloak.formats.source import check_type
from querycloak.formats.validation import REASONS

__all__ = [
    "FORMATS",
    "REASONS",
    "AtomicFile",
    "AtomicFolder",
    "Format",
    "FormatTraits",
    "Layout",
    "LineFormat",
    "Match",
    "RawTable",
    "ReadOptions",
    "TextEncoder",
    "Writer",
    "check_type",
    "detect",
    "frame_layout",
    "layout_fault",
    "pieces",
    "read",
    "sha256",
    "write",
]
