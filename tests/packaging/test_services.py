"""From a fresh machine: `make test-services` gets what it may, and names what it may not."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from querycloak import environment
from tests import run
from tests.support import programs

ROOT = Path(__file__).parents[2]
CONNECTOR = "spark-sql-kafka-0-10_2.13-4.2.0.jar"


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool, on a machine that has nothing, where whoever runs it is root."""
    spec = importlib.util.spec_from_file_location("services", ROOT / "tools" / "test_services.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CLUSTERS", tmp_path / "etc" / "postgresql-common" / "createcluster.d")
    monkeypatch.setattr(programs, "POSTGRES_HOMES", tmp_path / "postgresql")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("QUERYCLOAK_KAFKA_JARS", str(tmp_path / "cache" / "kafka"))
    monkeypatch.setenv("QUERYCLOAK_SPARK_JARS", str(tmp_path / "cache" / "spark"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "etc").mkdir()
    return module


def program(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def test_everything_is_installed_on_a_machine_that_has_nothing(services, tmp_path, capsys):
    home = tmp_path / "postgresql" / "15" / "bin"
    install = f"""
        echo "$DEBIAN_FRONTEND $*" >> {tmp_path}/asked
        [ $1 = install ] || exit 0
        read -r cluster < {services.CLUSTERS}/querycloak-test-services.conf
        echo "$cluster" >> {tmp_path}/asked
        /bin/mkdir -p {home}
        for name in {home}/{{initdb,postgres,pg_isready}} {tmp_path}/bin/{{java,chromium}}; do
          echo > $name; /bin/chmod 755 $name; done
        printf '#!/bin/bash\\nfor last; do :; done; folder=${{last#*=}}; /bin/mkdir -p $folder;
          echo > $folder/kafka_2.13-4.3.1.jar; echo > $folder/{CONNECTOR}' > {tmp_path}/bin/mvn
        /bin/chmod 755 {tmp_path}/bin/mvn"""
    program(tmp_path / "bin" / "apt-get", install)
    assert services.main() == 0, capsys.readouterr().out
    wanted = "postgresql default-jre-headless chromium maven"
    assert (tmp_path / "asked").read_text().splitlines() == [
        "noninteractive update --quiet",
        f"noninteractive install --yes --quiet --no-install-recommends {wanted}",
        "create_main_cluster = false",
    ]
    assert not (tmp_path / "etc" / "postgresql-common").exists(), "the note for apt was left behind"
    assert (
        "PostgreSQL, Java, a Kafka broker, Spark's connector for it and Chromium are there"
        in capsys.readouterr().out
    )
    (tmp_path / "asked").unlink()
    assert services.main() == 0
    assert not (tmp_path / "asked").exists(), "all was there, and yet it installed something"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["kafka", "spark"]


def test_who_is_not_root_is_told_what_root_would_run(services, tmp_path, monkeypatch, capsys):
    program(tmp_path / "bin" / "apt-get", "exit 9")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert services.main() == 1
    said = capsys.readouterr().out
    packages = "postgresql default-jre-headless chromium maven"
    assert f"run: sudo apt-get install --yes --quiet --no-install-recommends {packages}\n" in said
    assert "still missing: Kafka broker (tests of Kafka in and out)\n" in said
    assert "still missing: Spark's Kafka connector (Kafka in and out of Spark's streaming)\n" in said


def test_without_apt_it_names_the_packages(services, capsys):
    assert services.main() == 1
    packages = "postgresql, default-jre-headless, chromium, maven"
    assert f"there is no apt here; install what Debian calls {packages}\n" in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["apt-get", "mvn"])
def test_a_failure_is_shown_and_leaves_nothing_half_done(services, tmp_path, capsys, broken):
    for name in ("apt-get", "java", broken):
        end = "echo out of paper | /usr/bin/tee /dev/stderr; exit 1" if name == broken else ""
        program(tmp_path / "bin" / name, end)
    assert services.main() == 1
    assert "failed:\nout of paper\n" in capsys.readouterr().out
    assert not services.CLUSTERS.exists()
    assert not (tmp_path / "cache" / "kafka").exists()
    assert not (tmp_path / "cache" / "spark").exists()


def test_an_older_broker_is_replaced(services, tmp_path):
    program(tmp_path / "bin" / "java")
    program(
        tmp_path / "bin" / "mvn",
        "for last; do :; done; /bin/mkdir ${last#*=}; "
        f"echo > ${{last#*=}}/kafka_2.13-4.3.1.jar; echo > ${{last#*=}}/{CONNECTOR}",
    )
    for name, old in (("kafka", "kafka_2.13-3.0.0.jar"), ("spark", "spark-sql-kafka-0-10_2.13-4.0.0.jar")):
        (tmp_path / "cache" / name).mkdir(parents=True)
        (tmp_path / "cache" / name / old).touch()
    services.main()
    for name in ("kafka", "spark"):
        there = {path.name for path in (tmp_path / "cache" / name).iterdir()}
        assert there == {"kafka_2.13-4.3.1.jar", CONNECTOR}


@pytest.mark.parametrize("name", ["kafka", "spark"])
def test_the_poms_name_no_host(name):
    pom = (ROOT / "tools" / name / "pom.xml").read_text()
    assert "<repositor" not in pom
    assert "<pluginRepositor" not in pom
    assert pom.count("://") == 1, "only the name of the pom's own format"


def test_groups_that_cannot_run_are_named_with_what_they_lack(services, monkeypatch):
    monkeypatch.setattr(run, "is_installed", lambda mark: mark != "postgres")
    assert run.left_out() == {
        "kafka": [f"no {name}: {programs.how_to_install(name)}" for name in ("Java", "Kafka broker")],
        "postgres": [
            "not installed: pip install 'querycloak[postgres]'",
            f"no PostgreSQL: {programs.how_to_install('PostgreSQL')}",
        ],
        "spark": [
            f"no {name}: {programs.how_to_install(name)}" for name in ("Java", "Spark's Kafka connector")
        ],
        "browser": [f"no Chromium: {programs.how_to_install('Chromium')}"],
    }


@pytest.mark.parametrize(
    ("text", "version"), [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8)]
)
def test_a_java_that_is_too_old_counts_as_none_and_is_named(services, tmp_path, text, version):
    program(tmp_path / "bin" / "java", f"echo '{text}' >&2")
    assert environment.java_version(tmp_path / "bin" / "java") == version
    assert (environment.java() is None) == (version < 17)
    assert ("Java 8 is too old, 17 is needed: " in programs.how_to_install("Java")) == (version < 17)


def test_leaving_out_is_failing_where_all_is_required(services, monkeypatch, capsys):
    monkeypatch.setenv("QUERYCLOAK_REQUIRE", "all")
    assert run.main([]) == 1
    assert (
        "left out: group `browser` (no Chromium: in a clone, `make test-services`" in capsys.readouterr().out
    )


def test_every_mark_but_nightly_is_a_group():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    marks = {text.partition(":")[0] for text in options["markers"]}
    assert run.GROUPS.keys() == marks - {"nightly"}
