"""Blocks of lines: nothing is lost between them."""

from __future__ import annotations

from querycloak import formats
from querycloak.formats import source

CSV = b"user,query,time\n"


def test_no_row_is_lost_when_an_overlong_line_follows_an_open_quote(tmp_path, monkeypatch):
    for name, size in {"BLOCK": 64, "_PLAIN_READ": 64, "_HEAD": 64, "LONGEST_LINE": 300}.items():
        monkeypatch.setattr(source, name, size)
    rows = [b"%d,kettle,2024-03-01 07:17:12" % n for n in range(4)]
    rows += [b'4,"open,2024-03-01 07:17:12']
    rows += [b"%d,kettle,2024-03-01 07:17:12" % n for n in range(5, 10)]
    rows += [b"10," + b"x" * 2000, b"11,kettle,2024-03-01 07:17:12"]
    path = tmp_path / "log.csv"
    path.write_bytes(CSV + b"\n".join(rows) + b"\n")
    log = formats.read(path)
    assert log.rows_read == 12
    assert log.frame["row"].to_list() == [*range(4), *range(5, 10), 11]
    assert log.frame["user"].to_list() == [str(n) for n in log.frame["row"]]
    assert log.skipped.first_rows["field too long"] == [10]
    assert log.skipped.total == 2
