"""A torn last write is cut off; every other damage stops the journal, and no wrong byte is given back."""

from __future__ import annotations

import os
import random

import pytest

from querycloak.errors import DataError
from querycloak.service.wal import frames as layout
from tests.unit.service.wal.logs import (
    SECRET,
    contents,
    files,
    flip,
    flipping,
    no_syncs,
    numbered,
    opened,
    twin,
    without_last_mark,
    written,
)

GROUPS = [[b"one"], [b"two", SECRET], [b"four"], [b"five", b"six", b"seven"]]
FRAMES = numbered(GROUPS)


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    no_syncs(monkeypatch)


@pytest.fixture
def folder(tmp_path):
    """Seven frames in four writes, one file."""
    assert len(written(tmp_path / "j", GROUPS)) == 1
    return tmp_path / "j"


@pytest.fixture
def files_of_it(tmp_path):
    """The same in four files."""
    assert len(written(tmp_path / "j", GROUPS, segment_bytes=60)) == 4
    return tmp_path / "j"


def ends(groups=GROUPS) -> list[int]:
    """Give the byte after each frame of a file that holds all groups."""
    found, at = [], layout.HEADER_BYTES
    for group in groups:
        for payload in group:
            at += layout.FRAME_BYTES + len(payload)
            found.append(at)
        at += layout.FRAME_BYTES  # the mark
    return found


def test_every_cut_leaves_all_frames_before_it(folder):
    data = files(folder)[0].read_bytes()
    assert len(data) == ends()[-1] + layout.FRAME_BYTES
    for size in range(layout.HEADER_BYTES, len(data) + 1):
        other = twin(folder)
        files(other)[0].write_bytes(data[:size])
        whole = sum(end <= size for end in ends())
        assert contents(other) == FRAMES[:whole]
        with opened(other) as journal:  # and writing goes on
            assert journal.append([b"next"]) == whole + 1
        assert contents(other) == [*FRAMES[:whole], (whole + 1, b"next")]


def test_a_cut_header_is_damage_since_a_file_has_its_name_only_with_a_whole_header(folder):
    for size in range(layout.HEADER_BYTES):
        other = twin(folder)
        os.truncate(files(other)[0], size)
        with pytest.raises(DataError, match=r"\.journal, byte 0: the header is damaged"):
            contents(other)


def test_every_flipped_bit_is_told_after_a_clean_end_or_a_killed_process(folder):
    path = files(folder)[0]
    size = path.stat().st_size
    for bit in flipping(path):
        if bit // 8 >= size - layout.FRAME_BYTES:  # in the last mark: no frame is touched
            assert contents(folder) == FRAMES
            continue
        with pytest.raises(DataError, match=r"\.journal, byte \d+: ") as told:
            contents(folder)
        assert "zwieback" not in str(told.value)


def test_the_message_names_the_frame_that_is_damaged(folder):
    at = ends()[0] + layout.FRAME_BYTES
    flip(files(folder)[0], 8 * (at + layout.FRAME_BYTES))
    with pytest.raises(
        DataError, match=f"byte {at}: a frame that was whole once is damaged\n\nhint: nothing was"
    ):
        contents(folder)


def test_without_its_mark_a_flipped_bit_in_the_last_write_looks_torn_and_costs_only_that_write(folder):
    path = files(folder)[0]
    without_last_mark(path)
    before = sum(len(group) for group in GROUPS[:-1])
    begin = ends()[before - 1]  # the mark of the write before is not known to be durable either
    for bit in flipping(path):
        if bit // 8 < begin:
            with pytest.raises(DataError):
                contents(folder)
        else:
            found = contents(folder)
            assert before <= len(found) < len(FRAMES) or bit // 8 < begin + layout.FRAME_BYTES
            assert found == FRAMES[: len(found)]


@pytest.mark.parametrize("seed", range(60))
def test_pages_of_the_last_write_that_never_came_are_a_torn_write_in_any_order(tmp_path, seed):
    """The whole machine stops: any 512 bytes of the last write, and the mark before it, may be zeros."""
    draw = random.Random(seed)
    first, last = (
        [[b"a" * draw.randrange(1500)] for _ in range(3)],
        [b"b" * draw.randrange(900) for _ in range(6)],
    )
    path = written(tmp_path / "j", [*first, last])[0]
    without_last_mark(path)
    data, durable = bytearray(path.read_bytes()), ends([*first, last])[2]
    for begin in range(0, len(data), 512):
        if draw.random() < 0.5:
            lost = range(max(begin, durable), min(begin + 512, len(data)))
            data[lost.start : lost.stop] = bytes(len(lost)) if lost else b""
    path.write_bytes(data[: draw.randrange(durable, len(data) + 1)] + bytes(draw.choice([0, 700])))
    found = contents(tmp_path / "j")
    assert len(found) >= 3
    assert found == numbered([*first, last])[: len(found)]


@pytest.mark.parametrize("how", ["cut", "hole", "damage"])
def test_a_crash_within_a_very_large_frame_takes_that_frame_alone(tmp_path, how):
    """100 MiB are one write: it is there as a whole or not at all, unless a mark says that it once was."""
    groups = [[b"before"], [b"b" * (100 << 20)]]
    (path,) = written(tmp_path / "j", groups)
    middle = 50 << 20
    if how != "damage":
        without_last_mark(path)
    if how == "cut":
        os.truncate(path, middle)
    else:
        with path.open("r+b") as file:
            file.seek(middle)
            file.write(bytes(4096))
    if how == "damage":
        with pytest.raises(DataError, match="was whole once"):
            contents(tmp_path / "j")
        return
    with opened(tmp_path / "j") as journal:
        assert list(journal.read_after(0)) == [(1, b"before")]
        assert journal.append([b"after"]) == 2
    assert contents(tmp_path / "j") == [(1, b"before"), (2, b"after")]


def test_zeros_in_place_of_an_acknowledged_write_are_damage(folder):
    path = files(folder)[0]
    data = bytearray(path.read_bytes())
    data[ends()[0] + layout.FRAME_BYTES : ends()[2]] = bytes(ends()[2] - ends()[0] - layout.FRAME_BYTES)
    path.write_bytes(data)
    with pytest.raises(DataError, match="was whole once"):
        contents(folder)


def test_a_payload_that_looks_like_frames_of_another_file_is_no_witness(tmp_path):
    forged = written(tmp_path / "other", [[b"x"], [b"y"], [b"z"]])[0].read_bytes()
    path = written(tmp_path / "j", [[b"one"], [forged * 3]])[0]
    os.truncate(path, path.stat().st_size - layout.FRAME_BYTES - 1)
    assert contents(tmp_path / "j") == [(1, b"one")]


def test_every_flipped_bit_in_several_files_is_told(files_of_it):
    last = len(files(files_of_it)) - 1
    for place, path in enumerate(files(files_of_it)):
        size = path.stat().st_size
        for bit in flipping(path, step=5):
            if place == last and bit // 8 >= size - layout.FRAME_BYTES:
                assert contents(files_of_it) == FRAMES
            else:
                with pytest.raises(DataError, match=r"\.journal, byte \d+: "):
                    contents(files_of_it)


def test_a_cut_in_a_file_that_is_not_the_last_is_damage(files_of_it):
    for place, path in enumerate(files(files_of_it)[:-1]):
        size = path.stat().st_size
        marks = {size - layout.FRAME_BYTES, size - 2 * layout.FRAME_BYTES}
        for cut in range(size):
            other = twin(files_of_it)
            os.truncate(files(other)[place], cut)
            if cut in marks:  # marks are gone, all frames are there
                assert contents(other) == FRAMES
            else:
                with pytest.raises(DataError):
                    contents(other)


def test_a_missing_file_is_told_also_when_it_is_the_last(files_of_it):
    for place in range(1, 4):
        other = twin(files_of_it)
        files(other)[place].unlink()
        with pytest.raises(DataError, match=r"the next one begins with|the file that follows is missing"):
            contents(other)
    files(files_of_it)[0].unlink()  # looks as if forgotten, until somebody needs it
    with pytest.raises(DataError, match="frames after 0 are needed, it has 2 to 7"):
        contents(files_of_it)


def test_files_under_each_others_names_are_told(files_of_it):
    first, second, *_ = files(files_of_it)
    first.unlink()
    second.rename(first)
    with pytest.raises(DataError, match="begins with frame 2; its name says otherwise"):
        contents(files_of_it)


def test_a_frame_from_elsewhere_in_the_file_does_not_follow(folder):
    path = files(folder)[0]
    data = path.read_bytes()
    begin, end = layout.HEADER_BYTES, ends()[0]
    path.write_bytes(data + data[begin:end])
    with pytest.raises(DataError, match=f"byte {len(data)}: frame 1 does not follow frame 7"):
        contents(folder)


def test_what_is_damaged_while_the_journal_is_open_is_told_when_it_is_read(folder):
    with opened(folder) as journal:
        flip(files(folder)[0], 8 * (ends()[0] - 1))
        with pytest.raises(DataError, match="was damaged since the file was opened"):
            list(journal.read_after(0))


def test_unfinished_files_of_a_crash_are_removed(folder):
    left = folder / "00000000000000000008.journal.new"
    left.write_bytes(b"half a header")
    assert contents(folder) == FRAMES
    assert not left.exists()


def test_a_crash_while_a_file_is_closed_off_leaves_a_journal_that_opens(files_of_it):
    """The next file is there and empty; the mark that says so is torn at any byte."""
    last = files(files_of_it)[-1]
    with opened(files_of_it) as journal:
        journal.truncate(0)
        journal.append([b"eight"])
    following = files(files_of_it)[-1]
    os.truncate(following, layout.HEADER_BYTES)
    size = last.stat().st_size
    for cut in range(size - layout.FRAME_BYTES, size + 1):
        other = twin(files_of_it)
        os.truncate(other / last.name, cut)
        with opened(other) as journal:
            assert list(journal.read_after(0)) == FRAMES
            assert journal.append([b"eight"]) == 8
        assert contents(other) == [*FRAMES, (8, b"eight")]
