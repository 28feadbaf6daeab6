"""A real `querycloak serve` as a process of its own: started, killed, started again, and asked by HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

#: How long a service may take to start, on a busy machine.
PATIENCE = 120.0


class LiveService:
    """One service over one folder; the folder outlives the process."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self._arguments = folder, arguments
        self._environment = {**os.environ, **(environment or {})}
        self._headers = dict(headers or {})
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self) -> Self:
        """Start the process and wait until it says where it listens."""
        command = [sys.executable, "-m", "querycloak", "serve", "--port", "0", "--json"]
        command += ["--state", str(self.folder), *self._arguments]
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder.parent / f"{self.folder.name}.log").open("a") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )
        self.address = self._said()["address"]
        self.client = httpx.Client(base_url=self.address, timeout=30, headers=self._headers)
        return self

    def _said(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        text, deadline = "", time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"the service did not start; status {self._process.wait()}\n{self.log()}")
            text += line
            if line.startswith("}"):
                return dict(json.loads(text))
        raise RuntimeError("the service did not start in time")

    @property
    def process(self) -> int:
        """Return the number of the process."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """Return all that the service has written to standard error."""
        return (self.folder.parent / f"{self.folder.name}.log").read_text("utf-8")

    def kill(self) -> None:
        """End the process as a power cut would: no signal handler runs."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask the process to end; give its status."""
        return self._end(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the process ends by itself; return its status."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        status = process.wait(PATIENCE)
        if process.stdout is not None:
            process.stdout.close()
        self.client.close()
        return status

    def post(self, lines: Sequence[bytes], key: str = "") -> httpx.Response:
        """Send records as JSON lines."""
        headers = {"content-type": "application/x-ndjson"} | ({"idempotency-key": key} if key else {})
        return self.client.post("/v1/records", content=b"".join(lines), headers=headers)

    def status(self) -> dict[str, int]:
        """Ask for the counts."""
        return dict(self.client.get("/v1/status").raise_for_status().json())

    def settled(self) -> dict[str, int]:
        """Wait until nothing is queued; give the counts."""
        while (counts := self.status())["queued"]:
            time.sleep(0.02)
        return counts

    def released(self, after: int = 0) -> bytes:
        """Read everything that was released behind an offset."""
        parts: list[bytes] = []
        limit = 50_000
        while True:
            answer = self.client.get("/v1/released", params={"after": after, "limit": limit})
            lines = answer.raise_for_status().content
            if not lines:
                return b"".join(parts)
            parts.append(lines)
            after = json.loads(lines.splitlines()[-1])["offset"]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self.kill()
