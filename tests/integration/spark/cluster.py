"""A standalone Spark cluster on loopback: a master and two workers as processes, with encrypted traffic."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from querycloak import environment
from tests.support.ports import free_ports
from tests.support.servers.process import wait_until

SPARK = Path(pyspark.__file__).parent
LIMIT = 600.0


class Cluster:
    """Use it with `with`; `options` are those of a session on this cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._secret = secrets.token_hex(16)
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self._port = str(port)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def options(self) -> dict[str, str]:
        """Options of a session: one core and little memory for each executor."""
        return {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self._secret,
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "700m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.local.dir": str(self.folder / "local"),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.sql.shuffle.partitions": "4",
        }

    def __enter__(self) -> Self:
        conf = self.folder / "conf"
        conf.mkdir()
        lines = ["spark.authenticate true", f"spark.authenticate.secret {self._secret}"]
        lines += ["spark.network.crypto.enabled true"]
        (conf / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        try:
            own = ["--host", "127.0.0.1", "--webui-port", "0"]
            self._start("master.Master", "master", *own, "--port", self._port)
            wait_until(lambda: "I have been elected leader" in self.log("master"), "the master runs", LIMIT)
            for number in (1, 2):
                name = f"worker-{number}"
                work = ["--work-dir", str(self.folder / name), "--cores", "1", "--memory", "1g"]
                self._start("worker.Worker", name, *own, *work, self.master)
            wait_until(lambda: self.log("master").count("Registering worker") == 2, "two workers", LIMIT)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def log(self, name: str) -> str:
        """Return what a process has written so far."""
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")

    def kill_worker_at_work(self) -> None:
        """Wait until a worker's executor runs Python, then kill the worker with everything below it."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            for process in self._processes[1:]:
                if process.poll() is None and _runs_python(process.pid):
                    time.sleep(0.5)  # it imports the package, or works already
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return
            time.sleep(0.02)
        raise AssertionError("no worker had work")

    def _start(self, name: str, log: str, *arguments: str) -> None:
        given = {
            "SPARK_HOME": str(SPARK),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "PYSPARK_PYTHON": sys.executable,
        }
        java = environment.java()
        assert java is not None
        with (self.folder / f"{log}.log").open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    [
                        *("setpriv", "--pdeathsig", "KILL", "--", str(SPARK / "bin" / "spark-class")),
                        *(f"org.apache.spark.deploy.{name}", *arguments),
                    ],
                    env=os.environ | given,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def _stop(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _runs_python(session: int) -> bool:
    """Whether a process of this session is a Python worker of Spark (in a process group of its own)."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            if int(fields[3]) == session and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                return True
        except OSError:  # it has ended meanwhile
            continue
    return False
