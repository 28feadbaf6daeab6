"""Other taxonomies: ODP dumps and tables, whole, compressed, and broken."""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError
from querycloak.text import load, load_taxonomy, taxonomy_files
from querycloak.text.taxonomy_files import SHIPPED

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<RDF xmlns:r="r" xmlns:d="d" xmlns="o">\n'
STRUCTURE = (
    HEAD
    + """<Topic r:id=""><catid>1</catid></Topic>
<Topic r:id="Top"><catid>2</catid><d:Title>Top</d:Title></Topic>
<Topic r:id="Top/Sports/Water_Sports/Windsurfing"><catid>3</catid></Topic>
<Topic r:id="Top/Arts"><narrow r:resource="Top/Arts/Music"/></Topic>
</RDF>
"""
)
PAGE = (
    '<ExternalPage about="u"><d:Title>{}</d:Title><d:Description>{}</d:Description>'
    "<topic>Top/Sports/Water_Sports</topic></ExternalPage>\n"
)
CONTENT = HEAD + PAGE.format("Wind &amp; sail", "A sail shop") + PAGE.format("Sail club", "") + "</RDF>\n"


def save(folder: Path, text: str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def test_structure_dump(tmp_path: Path) -> None:
    tree = load_taxonomy(save(tmp_path, STRUCTURE))
    assert tree.paths == ["", "Sports", "Sports/Water Sports", "Sports/Water Sports/Windsurfing", "Arts"]
    assert tree.lexicon.categories("windsurfing") == [(3, 1.0)]
    assert tree.lexicon.categories("water sports")[0][0] == 2


def test_words_of_pages_speak_softly_for_their_category(tmp_path: Path) -> None:
    tree = load_taxonomy(save(tmp_path, CONTENT))
    water = tree.node("Sports/Water Sports")
    ((node, twice),) = tree.lexicon.categories("sail")
    assert node == water
    ((_, once),) = tree.lexicon.categories("shop")
    assert 0 < once < twice < 0.3


def test_a_folder_holds_both_dumps_compressed_or_not(tmp_path: Path) -> None:
    (tmp_path / "structure.rdf.u8.gz").write_bytes(gzip.compress(STRUCTURE.encode()))
    save(tmp_path, CONTENT, "content.rdf.u8")
    tree = load_taxonomy(tmp_path)
    assert "Sports/Water Sports/Windsurfing" in tree
    assert tree.lexicon.categories("sail")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        load_taxonomy(tmp_path)


@pytest.mark.parametrize("squeeze", [gzip.compress, zstandard.compress, bytes])
def test_compressed_tables_read_like_plain_ones(tmp_path: Path, squeeze: type) -> None:
    path = tmp_path / "file"
    path.write_bytes(squeeze(b"path,terms\nA/B,x y; Z\n"))
    tree = load_taxonomy(path)
    assert tree.paths == ["", "A", "A/B"]
    assert tree.lexicon.categories("x y") == [(2, 1.0)]
    assert tree.lexicon.categories("z") == [(2, 1.0)]


def test_a_table_of_parents_may_come_in_any_order(tmp_path: Path) -> None:
    tree = load_taxonomy(save(tmp_path, "id\tparent\tname\n7\t3\tDogs\n3\t\tPets/Wild\n9\t7\tPoodles\n"))
    assert tree.paths == ["", "Pets\u2215Wild", "Pets\u2215Wild/Dogs", "Pets\u2215Wild/Dogs/Poodles"]


def test_a_file_of_our_own_format(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(SHIPPED.read_bytes())
    assert load_taxonomy(copy).paths == load().paths


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1"),
        ("secret,other\n1,2\n", "line 1"),
        ("path,path\na,b\n", "line 1"),
        ("path\nA\nsecret//B\n", "line 3"),
        ("path,terms\nA,b\nsecret,b,c\n", "line 3"),
        ('path\nA\n"secret\n', "line 3"),
        ('path,terms\nA,"x\ny"\nsecret//B,\n', "line 4"),
        ("path\nA\nsecret\udcff\n", "line 3"),
        ("id,parent,name\n1,,secret\n1,,secret\n", "line 3"),
        ("id,parent,name\n1,secret,a\n", "line 2"),
        ("id,parent,name\n1,2,secret\n2,1,secret\n", "column `parent`"),
        ("id,parent,name\n1,,secret\n2,1,\n", "line 3, column `name`"),
        ("id,parent,name\nsecret,1\n", "line 2"),
        ("path\n", "no category"),
        (HEAD + "<Topic r:id='Top/secret'>\n</RDF>", "line 4"),
        (HEAD + "<Topic r:name='secret'/></RDF>", "line 3"),
        (HEAD + "<Topic r:id='Top//secret'/></RDF>", "line 3"),
        ('<!DOCTYPE a [<!ENTITY secret "x">]>\n<a>&secret;</a>', "line 1"),
    ],
)
def test_broken_files_are_told_by_line_and_never_quoted(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(DataError) as caught:
        load_taxonomy(save(tmp_path, text))
    assert where in caught.value.message.replace(" of the taxonomy table", "")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("squeeze", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("text", [STRUCTURE * 50, "path\n" + "".join(f"A/{i * i}\n" for i in range(9999))])
def test_a_cut_off_file_is_a_data_error(tmp_path: Path, squeeze: type, text: str) -> None:
    path = tmp_path / "file"
    whole = squeeze(text.encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError):
        load_taxonomy(path)


def test_a_missing_file_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        load_taxonomy(tmp_path / "nowhere")


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=4)


@given(
    st.lists(st.lists(names.filter(lambda n: "/" not in n), min_size=1, max_size=4), min_size=1, max_size=8)
)
def test_any_paths_survive_a_table(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerows([["path", "terms"], *(["/".join(row), ""] for row in rows)])
    tree = load_taxonomy(save(tmp_path_factory.mktemp("t"), table.getvalue()))
    expected = {"/".join(row[:depth]) for row in rows for depth in range(len(row) + 1)}
    assert set(tree.paths) == expected


def big_dump(folder, categories, words):
    """Write a dump in which each category has pages with many different words."""
    with (folder / "content.rdf.u8").open("w", encoding="utf-8") as file:
        file.write("<RDF>")
        for number in range(categories):
            text = " ".join(f"word{(number * 7 + i) % 5000:04d}" for i in range(words))
            file.write(f"<ExternalPage><Title>{text}</Title><topic>Top/Arts/C{number}</topic></ExternalPage>")
        file.write("</RDF>")
    return folder


def test_a_dump_takes_few_bytes_a_word(tmp_path):
    """A term was a tuple of 290 bytes; a whole dump has some thirty million."""
    dump = big_dump(tmp_path, 3000, 40)
    load_taxonomy(dump)  # what is loaded once does not count
    tracemalloc.start()
    tree = load_taxonomy(dump)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (~tree.lexicon.curated).sum() == 3000 * 40
    assert peak < 100 * 3000 * 40


def test_the_words_of_a_dump_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(taxonomy_files, "MOST_WORDS", 100)
    tree = load_taxonomy(big_dump(tmp_path, 50, 20))
    assert (~tree.lexicon.curated).sum() <= 100
    assert len(tree.paths) == 52


def test_words_of_pages_are_not_curated(tmp_path):
    tree = load_taxonomy(save(tmp_path, CONTENT))
    place = tree.lexicon.texts.index("sail")
    assert not tree.lexicon.curated[tree.lexicon.start[place]]


def test_the_tool_that_builds_the_package_s_file_makes_a_lexicon_of_its_terms(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the tool adds folders
    build_taxonomy = importlib.import_module("tools.build_taxonomy")
    listed = [("Tea Pot", 3, 0.5), ("tea pot", 3, 0.9), ("kettle", 1, 0.2)]
    made = build_taxonomy._terms(SimpleNamespace(terms=lambda: iter(listed)))
    assert taxonomy_files.unpack(made["term_text"]) == ["kettle", "tea pot"]
    assert [made[f"term_{name}"].tolist() for name in ("start", "node", "weight")] == [
        [0, 1, 2],
        [1, 3],
        [20, 90],
    ]
