"""A PostgreSQL of one's own: the installed programs, a new cluster, a free loopback port, a new password."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from pathlib import Path

from querycloak.errors import UsageError
from tests.support import programs
from tests.support.ports import free_ports
from tests.support.servers.base import LocalServer
from tests.support.servers.process import LIMIT, as_account

_USER = "querycloak"


class LocalPostgres(LocalServer):
    """A PostgreSQL server; `url` is where it answers, with the password in it."""

    name = "PostgreSQL"
    soft = signal.SIGINT  # "fast": it ends clients' sessions instead of waiting for them
    orphaned = signal.SIGQUIT  # "immediate": it does not write a checkpoint, but it removes its shared memory

    def __init__(self, folder: Path | None = None) -> None:
        self._programs = _programs()
        super().__init__(folder)
        self.account = _account()
        (self.port,) = free_ports(1)
        self._password = secrets.token_hex(16)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"postgresql://{_USER}:{self._password}@127.0.0.1:{self.port}/postgres"

    def prepare(self) -> None:
        """Make a cluster, unless the folder holds one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = self.folder / "password"
        if kept.exists():
            self._password = kept.read_text("ascii")
            return
        kept.touch(0o600)
        kept.write_text(self._password, "ascii")
        if self.account:
            for path in (self.folder, kept):
                os.chown(path, *self.account)
        self._initdb(kept)

    def _initdb(self, password: Path) -> None:
        choices = ["--no-locale", "--encoding=UTF8", "--no-sync", f"--username={_USER}"]
        locks = ["--auth-local=reject", "--auth-host=scram-sha-256", f"--pwfile={password}"]
        command = [f"{self._programs}/initdb", *choices, *locks, "-D", f"{self.folder}/data"]
        done = subprocess.run(
            [*as_account(self.account), "--", *command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            password.unlink()
            raise UsageError(
                f"PostgreSQL's initdb failed: {done.stderr.strip()}",
                hint="as root it runs as another account, which must be able to reach the folder",
            )

    def command(self) -> list[str | Path]:
        """Run the server on this port alone: a socket file's path could be too long for the system."""
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        flags = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        return [self._programs / "postgres", "-D", self.folder / "data", *flags]

    def answers(self) -> bool:
        """Ask `pg_isready`, which needs no password."""
        ask = [f"{self._programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ask, check=False).returncode == 0


def _programs() -> Path:
    if found := programs.postgres():
        return found
    raise UsageError(
        "PostgreSQL's programs are not on this machine", hint=programs.how_to_install("PostgreSQL")
    )


def _account() -> tuple[int, int] | None:
    """Choose who runs the server: it refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    raise UsageError("PostgreSQL refuses root, and there is no account `postgres` or `nobody` to run it")
