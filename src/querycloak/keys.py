"""Where randomness comes from: one secret, and a key of its own for every release and stage."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from querycloak.errors import UsageError
from querycloak.files import sync_folder
from querycloak.temporary_files import removed_at_signals

Origin = Literal["operating system", "seed", "file"]


@dataclass(frozen=True)
class Secret:
    """The secret of a release: with it, every draw can be recomputed."""

    origin: Origin
    value: bytes = field(repr=False)

    @classmethod
    def from_seed(cls, seed: int) -> Secret:
        """Make a secret that anyone can guess: for tests and reproduction, never for publication."""
        return cls("seed", hashlib.blake2b(f"seed {seed}".encode(), digest_size=32).digest())

    @classmethod
    def from_file(cls, path: Path) -> Secret:
        """Read a secret that the operator keeps, and that nobody else may read."""
        try:
            value, exposed = path.read_bytes().strip(), others_can_read(path)
        except OSError as error:
            raise UsageError(f"the secret file cannot be read: {error.strerror}") from None
        if exposed:
            raise UsageError("others can read the secret file", hint="run `chmod 600` on it first")
        if len(value) < 16:
            raise UsageError("the secret file holds fewer than 16 bytes", hint="use 32 random bytes")
        return cls("file", hashlib.blake2b(value, digest_size=32).digest())

    @classmethod
    def load_or_create(cls, path: Path) -> Secret:
        """Read a secret from a file; if there is none yet, draw one and write it there, mode 0600.

        The file gets its name only when its content is on disk, and never replaces another one: a process
        that starts at the same moment reads either nothing or the whole secret.
        """
        if not path.exists():
            fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
            try:
                _write_synced(fresh, (secrets.token_hex(32) + "\n").encode())
                with contextlib.suppress(FileExistsError):
                    os.link(fresh, path)
                sync_folder(path.absolute().parent)  # a rename is not on disk before
            except OSError as error:
                raise UsageError(f"the secret file cannot be written: {error.strerror}") from None
            finally:
                fresh.unlink(missing_ok=True)
        return cls.from_file(path)

    @classmethod
    def choose(cls, seed: int | None = None, file: Path | None = None) -> Secret:
        """Take the secret from where the caller says, or draw one from the operating system."""
        if seed is not None and file is not None:
            raise UsageError("`--seed` and `--secret-file` exclude each other", hint="give one of them")
        if seed is not None:
            return cls.from_seed(seed)
        if file is not None:
            return cls.load_or_create(file)
        return cls("operating system", secrets.token_bytes(32))

    @property
    def publishable(self) -> bool:
        """Whether a release made with this secret may be published; one made with a seed may not."""
        return self.origin != "seed"


def derive(key: bytes, *purpose: str) -> bytes:
    """Make an independent 32-byte key for a purpose; neighbouring parts never run together."""
    state = hashlib.blake2b(key=key, digest_size=32)
    for part in purpose:
        state.update(len(part.encode()).to_bytes(8, "little") + part.encode())
    return state.digest()


def release_id(secret: Secret, source: str, earlier: int) -> str:
    """Return the id of a source's next release; making one that fits needs the secret.

    A secret that is used again gives another name each time, and so another key: else the same people
    would get the same pseudonyms. A seed gives the same name always, since repeating is what it is for.
    """
    return _named(secret, source, earlier, secrets.token_hex(4) if secret.origin == "file" else "")


def matches_release_id(secret: Secret, source: str, earlier: int, name: str) -> bool:
    """Whether a release got its id from this secret."""
    return name == _named(secret, source, earlier, name[:8] if secret.origin == "file" else "")


def _named(secret: Secret, source: str, earlier: int, nonce: str) -> str:
    parts = (source, str(earlier), nonce) if nonce else (source, str(earlier))
    return (nonce + derive(secret.value, "name", *parts).hex())[:16]


def release_key(secret: Secret, source: str, release: str) -> bytes:
    """Make the key of one release of one source."""
    return derive(secret.value, "release", source, release)


def stage_key(release: bytes, place: int, method: str, settings: Mapping[str, Any]) -> bytes:
    """Make the key of one method within a release; other settings mean another key."""
    return derive(release, "stage", str(place), method, json.dumps(settings, sort_keys=True))


def others_can_read(path: Path) -> bool:
    """Whether anybody but its owner can read a file.

    systemd gives credentials to one user by an access list, whose mask shows where the group's rights stand.
    """
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    its_own = credentials is not None and path.is_relative_to(credentials)
    return bool(path.stat().st_mode & (0o007 if its_own else 0o077))


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 0600; it gets its final name only when its content is on disk."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with removed_at_signals(unfinished):
        try:
            _write_synced(unfinished, content)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)  # of a full disk
    sync_folder(path.absolute().parent)  # a rename is not on disk before


def _write_synced(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
