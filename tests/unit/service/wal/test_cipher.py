"""With a key, nothing readable reaches the disk, no nonce is used twice, and a wrong key is told."""

from __future__ import annotations

import os
import sys

import pytest

from querycloak.errors import DataError, JournalFull, MissingExtra, UsageError
from querycloak.service.wal.cipher import Cipher, FileCipher
from querycloak.service.wal.snapshots import Snapshots
from querycloak.service.wal.wal import WriteAheadLog
from tests.unit.service.wal.logs import (
    SECRET,
    contents,
    files,
    flipping,
    no_syncs,
    numbered,
    opened,
    without_last_mark,
    written,
)

pytestmark = pytest.mark.service
KEY = Cipher(b"k" * 32)
OTHER = Cipher(b"o" * 32)
GROUPS = [[SECRET], [b"two", SECRET]]


def test_data_opens_with_its_key_and_number_and_where_it_belongs_only():
    cipher = KEY.for_file(b"s" * 16)
    sealed = cipher.seal(7, SECRET, b"here")
    assert cipher.open(7, sealed, b"here") == SECRET
    assert SECRET not in sealed
    strangers = (OTHER.for_file(b"s" * 16), KEY.for_file(b"t" * 16))
    for other, number, context in (
        (cipher, 8, b"here"),
        (cipher, 7, b"there"),
        *((s, 7, b"here") for s in strangers),
    ):
        with pytest.raises(DataError, match="sealed data does not open"):
            other.open(number, sealed, context)


def test_every_flipped_bit_is_found():
    cipher = KEY.for_file(b"s" * 16)
    sealed = cipher.seal(1, b"short", b"")
    for bit in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DataError):
            cipher.open(1, bytes(changed), b"")


def test_the_key_comes_from_a_private_file(tmp_path):
    path = tmp_path / "key"
    path.write_text("0123456789abcdef0123456789abcdef")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others can read"):
        Cipher.from_file(path)
    path.chmod(0o600)
    sealed = Cipher.from_file(path).for_file(b"s" * 16).seal(1, b"x", b"")
    assert Cipher.from_file(path).for_file(b"s" * 16).open(1, sealed, b"") == b"x"
    with pytest.raises(UsageError, match="a key has 32 bytes; got 5"):
        Cipher(b"short")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtra, match=r"querycloak\[service\]"):
        Cipher(b"k" * 32)


def test_nothing_readable_is_on_the_disk(tmp_path):
    written(tmp_path / "j", GROUPS, KEY)
    Snapshots(tmp_path / "s", KEY).save(3, SECRET * 3)
    for path in tmp_path.rglob("*.*"):
        assert b"zwieback" not in path.read_bytes()
    assert contents(tmp_path / "j", cipher=KEY) == numbered(GROUPS)
    assert Snapshots(tmp_path / "s", KEY).newest() == (3, SECRET * 3)


@pytest.mark.parametrize(
    ("made", "used", "words"),
    [(KEY, OTHER, "with another key"), (KEY, None, "no key is given"), (None, KEY, "this file is plain")],
)
def test_a_wrong_key_is_told(tmp_path, made, used, words):
    path = written(tmp_path / "j", GROUPS, made)[0]
    Snapshots(tmp_path / "s", made).save(3, SECRET)
    before = path.read_bytes()
    with pytest.raises(DataError, match=rf"\.journal, byte 0: .*{words}"):
        WriteAheadLog(tmp_path / "j", used).open()
    with pytest.raises(DataError, match=rf"\.snapshot, byte 0: .*{words}"):
        Snapshots(tmp_path / "s", used).newest()
    assert path.read_bytes() == before


def test_a_flipped_bit_is_never_a_wrong_payload(tmp_path, monkeypatch):
    no_syncs(monkeypatch)
    path = written(tmp_path / "j", GROUPS, KEY)[0]
    size = path.stat().st_size
    for bit in flipping(path, step=3):
        if bit // 8 >= size - 32:
            assert contents(tmp_path / "j", cipher=KEY) == numbered(GROUPS)
        else:
            with pytest.raises(DataError):
                contents(tmp_path / "j", cipher=KEY)


def test_a_forged_frame_with_a_right_checksum_does_not_open(tmp_path):
    with opened(tmp_path / "j", KEY) as journal:
        journal.append([SECRET])
        segment = journal._segments[0]
        forged = bytes(len(SECRET) + 16)
        frame = segment.coder.pack(1, 1, segment.durable - len(forged) - 32, forged) + forged
    path = files(tmp_path / "j")[0]
    data = path.read_bytes()
    path.write_bytes(data.replace(data[48 : 48 + len(frame)], frame))
    with pytest.raises(DataError, match=r"byte 48: sealed data does not open"):
        contents(tmp_path / "j", cipher=KEY)


def test_no_key_ever_seals_two_things_under_one_number(tmp_path, monkeypatch):
    """Torn writes, full disks, forgetting and restarts make numbers come again; their key must not."""
    used: set[tuple[bytes, int]] = set()
    seal = FileCipher.seal

    def noted(self: FileCipher, number: int, data: bytes, context: bytes) -> bytes:
        assert (self.key_check, number) not in used
        used.add((self.key_check, number))
        return seal(self, number, data, context)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileCipher, "seal", noted)
    for _ in range(3):
        with opened(tmp_path / "j", KEY) as journal:
            journal.append([b"kept"])
            for call in ("pwrite", "fdatasync"):
                with monkeypatch.context() as patch:
                    patch.setattr(os, call, full)
                    with pytest.raises(JournalFull):
                        journal.append([b"not kept"])
            journal.append([b"kept", b"torn"])
            if journal.last_number > 4:
                journal.truncate(4)
        path = files(tmp_path / "j")[-1]
        without_last_mark(path)
        os.truncate(path, path.stat().st_size - 1)
    assert [payload for _, payload in contents(tmp_path / "j", 4, KEY)] == [b"kept", b"kept"]
    assert len(used) == 15
