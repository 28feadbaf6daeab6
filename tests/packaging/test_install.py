"""The package as others get it: light to import, light to install, complete without extras."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "polars",
    "numba",
    "pandas",
    "spacy",
    "cryptography",
    "opendp",
    "rich",
    "click",
    "scipy",
    "lightgbm",
    "nltk",
    "wordfreq",
    "fastapi",
    "uvicorn",
    "msgspec",
    "prometheus_client",
    "confluent_kafka",
    "psycopg",
    "plotly",
    "matplotlib",
    "jinja2",
    "markdown_it",
)


def python(code: str, *, executable: str = sys.executable, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    done = subprocess.run(
        [executable, "-c", code], capture_output=True, text=True, env=clean | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_pulls_in_numpy_at_most():
    loaded = python(
        "import sys, querycloak; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    assert not set(loaded.split()) & set(HEAVY)


def test_help_pulls_in_click_and_nothing_heavy():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom querycloak.cli import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    assert not set(python(code).split()) & (set(HEAVY) - {"click"})


def test_the_public_names_are_these_and_all_load():
    import querycloak

    assert dir(querycloak) == sorted(querycloak.__all__)
    for name in querycloak.__all__:
        assert getattr(querycloak, name) is not None
    with pytest.raises(AttributeError):
        _ = querycloak.nothing


def test_pinned_requirements_are_hashed_and_name_no_host():
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        text = path.read_text()
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text), path.name
        pins = re.findall(r"^\S+==\S+", text, re.M)
        assert pins
        assert text.count("--hash=sha256:") >= len(pins)


def test_core_requirements_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", text)[0].lower() for text in project["dependencies"]}
    listed = {line.strip().lower() for line in (ROOT / "requirements/core.in").read_text().splitlines()}
    assert needed <= listed
    everything = (ROOT / "requirements/all.in").read_text().lower()
    for extra in project["optional-dependencies"].values():
        assert all(re.match(r"[\w-]+", text)[0].lower() in everything for text in extra)


def test_the_core_alone_installs_and_protects_a_log(tmp_path):
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.fail("`make setup` puts uv beside python; it is not there")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "core"], check=True)
    core = str(tmp_path / "core" / "bin" / "python")
    install = [uv, "pip", "install", "--quiet", "--python", core]
    subprocess.run([*install, "--require-hashes", "-r", ROOT / "requirements/core.txt"], check=True)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", ROOT], check=True)
    code = (
        "import querycloak as qc\n"
        "log = qc.classify(qc.generate(60, seed=1))\n"
        "assert log.frame['category'].null_count() <= 0.02 * len(log)\n"
        "release = qc.protect(log, 'rules', 'frequent-only', k=2, seed=1)\n"
        "print(release.certificate['audit'], len(release.log) > 0)"
    )
    assert python(code, executable=core, PYTHONPATH="") == "kept True"


MICROAGGREGATION = ("mdav", "topic_groups", "tree_distance")


@pytest.mark.nightly
@pytest.mark.timeout(1200)  # minutes on a busy machine
def test_the_kernels_also_run_without_the_compiler():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-W",
        "ignore::RuntimeWarning",
        "tests/unit/kernels",
        "tests/unit/text/test_ancestry.py",
        *map(str, sorted((ROOT / "tests/unit/methods").glob("*/test_kernel.py"))),
        *(f"tests/unit/methods/microaggregation/test_{name}.py" for name in MICROAGGREGATION),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "QUERYCLOAK_HYPOTHESIS": "default"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
