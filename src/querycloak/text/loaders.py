"""Takes another taxonomy than the shipped one: an ODP dump, a table, or a file of our own format."""

from __future__ import annotations

from pathlib import Path

from querycloak.errors import DataError
from querycloak.text.builder import Builder, open_plain
from querycloak.text.csvtree import read_csv_tree
from querycloak.text.odp import read_odp
from querycloak.text.storage import is_ours
from querycloak.text.taxonomy import Taxonomy, load

DUMPS = ("structure.rdf.u8", "content.rdf.u8")


def load_taxonomy(path: str | Path) -> Taxonomy:
    """Load a taxonomy from a file, told apart by its content, or from a folder with both ODP dumps.

    ODP: the categories of `structure.rdf.u8`, and the words of the pages in `content.rdf.u8`. Tables:
    `path[,terms]` or `id,parent,name[,terms]`. All may be compressed with gzip or zstandard.
    """
    place = Path(path)
    if place.is_file() and is_ours(place):
        return load(place)
    builder = Builder()
    if place.is_dir():
        read_odp(_dumps(place), builder)
    elif _is_xml(place):
        read_odp([place], builder)
    else:
        read_csv_tree(place, builder)
    return builder.finish()


def _dumps(folder: Path) -> list[Path]:
    found = [
        file for name in DUMPS for end in ("", ".gz", ".zst") if (file := folder / (name + end)).is_file()
    ]
    if not found:
        raise DataError("the taxonomy folder holds no ODP dump", hint=f"it should hold `{DUMPS[0]}`")
    return found


def _is_xml(path: Path) -> bool:
    try:
        with open_plain(path) as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")
    except (OSError, EOFError) as error:
        raise DataError("the taxonomy file is damaged at its beginning") from error
