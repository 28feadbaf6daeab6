"""Gets what tests need beside Python: PostgreSQL, Chromium, Java and a Kafka broker. Quick when all is there.

Usage: python tools/test_services.py      (`make test-services`)

As root on Debian it installs packages with apt; Maven copies the broker's jars to the user's cache. What it
may not do it names, with the command for somebody who may, and ends with status 1. It starts no server.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from querycloak.engines import programs

POM = Path(__file__).resolve().parent / "kafka" / "pom.xml"
#: The Debian package of each program.
PACKAGES = {"PostgreSQL": "postgresql", "Java": "default-jre-headless", "Chromium": "chromium"}
CLUSTERS = Path("/etc/postgresql-common/createcluster.d")


def main() -> int:
    """Get what is missing, then say what still is."""
    packages = missing_packages()
    if packages:
        install(packages)
    if not jars_are_current() and shutil.which("mvn") and programs.java():
        fetch_jars()
    left = [program for program in programs.all_programs() if program.place is None]
    for program in left:
        say(f"still missing: {program.name} ({program.purpose})")
    if not left:
        say("PostgreSQL, Java, a Kafka broker and Chromium are there")
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
    return wanted + ["maven"] * (not jars_are_current() and shutil.which("mvn") is None)


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


def jars_are_current() -> bool:
    """Say whether the broker that the pom names is in its folder."""
    pom = POM.read_text("utf-8")
    found = re.search(r"<artifactId>kafka_2.13</artifactId>\s*<version>(.+?)</version>", pom)
    assert found is not None
    return (programs.kafka_folder() / f"kafka_2.13-{found[1]}.jar").exists()


def fetch_jars() -> None:
    """Let Maven copy the broker's jars; they get their place only when all are there."""
    place = programs.kafka_folder()
    say(f"fetching a Kafka broker into {place}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fresh = Path(folder) / "jars"
        maven = ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "--strict-checksums"]
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        done = subprocess.run([*maven, "--file", POM, *copy], capture_output=True, text=True, check=False)
        if done.returncode:
            say(f"Maven failed:\n{done.stdout.strip()}")
            return
        if place.exists():
            place.rename(Path(folder) / "old")
        fresh.rename(place)


if __name__ == "__main__":
    sys.exit(main())
