"""Gets what tests need beside Python: PostgreSQL, Chromium, Java, and jars for Kafka and Spark.

Usage: python -m tools.test_services      (`make test-services`)

It is quick when all is there. As root on Debian it installs packages with apt; Maven copies a Kafka broker,
and Spark's connector for Kafka, to the user's cache. What it may not do it names, with the command for
somebody who may, and ends with status 1. It starts no server.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support import programs

from querycloak import environment

HERE = Path(__file__).resolve().parent
#: The Debian package of each program.
PACKAGES = {"PostgreSQL": "postgresql", "Java": "default-jre-headless", "Chromium": "chromium"}
CLUSTERS = Path("/etc/postgresql-common/createcluster.d")


class Jars(NamedTuple):
    """What a pom names; one artifact of it tells whether its folder has them, in the right version."""

    name: str
    pom: Path
    artifact: str
    folder: Callable[[], Path]

    def are_current(self) -> bool:
        """Say whether what the pom names is in its folder."""
        pom = self.pom.read_text("utf-8")
        found = re.search(rf"<artifactId>{self.artifact}</artifactId>\s*<version>(.+?)</version>", pom)
        assert found is not None
        return (self.folder() / f"{self.artifact}-{found[1]}.jar").exists()


JARS = (
    Jars("a Kafka broker", HERE / "kafka" / "pom.xml", "kafka_2.13", programs.kafka_folder),
    Jars(
        "Spark's Kafka connector",
        HERE / "spark" / "pom.xml",
        "spark-sql-kafka-0-10_2.13",
        environment.spark_folder,
    ),
)


def main() -> int:
    """Get what is missing, then say what still is."""
    packages = missing_packages()
    if packages:
        install(packages)
    for jars in old_jars():
        if shutil.which("mvn") and environment.java():
            fetch(jars)
    left = [program for program in programs.all_programs() if program.place is None]
    for program in left:
        say(f"still missing: {program.name} ({program.purpose})")
    if not left:
        say("PostgreSQL, Java, a Kafka broker, Spark's connector for it and Chromium are there")
    return 1 if left else 0


def say(text: str) -> None:
    """Tell the user."""
    print(f"test services: {text}", flush=True)


def missing_packages() -> list[str]:
    """List the Debian packages of programs that were not found, and Maven's while there are jars to fetch."""
    wanted = [
        PACKAGES[program.name]
        for program in programs.all_programs()
        if program.place is None and program.name in PACKAGES
    ]
    return wanted + ["maven"] * (bool(old_jars()) and shutil.which("mvn") is None)


def install(packages: list[str]) -> None:
    """Install packages with apt, or say who could."""
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    if shutil.which("apt-get") is None:
        say(f"there is no apt here; install what Debian calls {', '.join(packages)}")
        return
    if os.geteuid() != 0:
        say(f"only root may install packages; run: sudo {' '.join(command)}")
        return
    say(f"installing {', '.join(packages)}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with no_cluster_of_its_own():
        for step in (["apt-get", "update", "--quiet"], command):
            done = subprocess.run(step, env=quiet, capture_output=True, text=True, check=False)
            if done.returncode:
                say(f"`{' '.join(step)}` failed:\n{done.stderr.strip()}")
                return


@contextmanager
def no_cluster_of_its_own() -> Iterator[None]:
    """Keep Debian's package from making and starting a system-wide server: tests start their own."""
    note = CLUSTERS / "querycloak-test-services.conf"
    made = [folder for folder in (CLUSTERS.parent, CLUSTERS) if not folder.exists()]
    CLUSTERS.mkdir(parents=True, exist_ok=True)
    note.write_text("create_main_cluster = false\n", "ascii")
    try:
        yield
    finally:
        note.unlink()
        for folder in reversed(made):
            if not any(folder.iterdir()):
                folder.rmdir()


def old_jars() -> list[Jars]:
    """List what Maven has to fetch."""
    return [jars for jars in JARS if not jars.are_current()]


def fetch(jars: Jars) -> None:
    """Let Maven copy jars; they get their place only when all are there."""
    place = jars.folder()
    say(f"fetching {jars.name} into {place}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fresh = Path(folder) / "jars"
        maven = ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "--strict-checksums"]
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        done = subprocess.run(
            [*maven, "--file", jars.pom, *copy], capture_output=True, text=True, check=False
        )
        if done.returncode:
            say(f"Maven failed:\n{done.stdout.strip()}")
            return
        if place.exists():
            place.rename(Path(folder) / "old")
        fresh.rename(place)


if __name__ == "__main__":
    sys.exit(main())
