"""What ships under `deploy/` fits the service: flags that exist, settings that hold, routes that answer."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.service
pytest.importorskip("fastapi")
yaml = pytest.importorskip("yaml")

from querycloak.cli.options import pairs  # noqa: E402
from querycloak.cli.serve import command  # noqa: E402
from querycloak.keys import others_can_read  # noqa: E402
from querycloak.service.settings import Setup, setup  # noqa: E402
from querycloak.service.web.routes import router  # noqa: E402

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TAKES = {route.path for route in router.routes if route.status_code == 202}


def parsed(words: list[str], config: Path | None = None) -> Setup:
    """Read a command line as `querycloak serve` does."""
    found = command.make_context("serve", words).params
    flags = {name: found[name] for name in ("host", "port", "state", "source", "sink", "profiles")}
    flags |= pairs(found["options"], "--option")
    return setup(
        flags, list(found["methods"]), pairs(found["chosen"], "--set"), config=config, environment={}
    )


def test_the_unit_starts_the_service_with_its_secrets_in_files() -> None:
    text = (DEPLOY / "querycloak.service").read_text("utf-8")
    words = shlex.split(re.search(r"^ExecStart=(.+)$", text, re.M)[1])
    assert words[0].endswith("/querycloak")
    assert words[1:4] == ["serve", "--config", "/etc/querycloak/serve.toml"]
    found = parsed(words[4:], DEPLOY / "serve.toml").settings
    assert (found.tokens, found.state_key) == ("%d/tokens", "%d/state-key")
    for name in ("tokens", "state-key"):
        assert f"LoadCredential={name}:" in text
    assert "ExecReload=/bin/kill -HUP $MAINPID" in text


def test_the_example_configuration_is_good() -> None:
    found = parsed([], DEPLOY / "serve.toml")
    assert [stage.method for stage in found.stages] == ["rules", "cohort"]


def test_the_image_installs_extras_that_exist_and_needs_tokens() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    extras = re.search(r"\[([\w,]+)\]\" &&", text)[1].split(",")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras) <= set(declared)
    assert json.loads(re.search(r"^ENTRYPOINT (.+)$", text, re.M)[1]) == ["querycloak", "serve"]
    found = parsed(json.loads(re.search(r"^CMD (.+)$", text, re.M)[1]))
    assert not found.loopback
    assert found.settings.tokens
    assert re.search(r"^USER \d+$", text, re.M)
    for path in re.search(r"^COPY (.+) /src/$", text, re.M)[1].split():
        assert (ROOT / path).exists()


def test_pipelines_lead_to_routes() -> None:
    pipelines = yaml.safe_load((DEPLOY / "data-prepper.yaml").read_text("utf-8"))
    urls = [sink["http"]["url"] for one in pipelines.values() for sink in one["sink"]]
    connector = json.loads((DEPLOY / "kafka-connect.json").read_text("utf-8"))
    urls.append(connector["config"]["http.url"])
    assert len(urls) == 3
    assert {url.removeprefix("http://127.0.0.1:8484") for url in urls} <= TAKES


def test_a_credential_of_systemd_may_have_a_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "tokens"
    secret.touch()
    secret.chmod(0o440)
    assert others_can_read(secret)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert not others_can_read(secret)
    secret.chmod(0o444)
    assert others_can_read(secret)


def test_the_client_needs_the_standard_library_alone() -> None:
    from tests.packaging.test_install import HEAVY, python

    loaded = python("import sys, querycloak.client; print(*{n.partition('.')[0] for n in sys.modules})")
    known = set(sys.stdlib_module_names) | {"querycloak", "numpy"}
    assert not set(loaded.split()) & {*HEAVY, "httpx", "requests"}
    assert (
        not {name for name in loaded.split() if not name.startswith("_")}
        - known
        - {"sitecustomize", "distutils"}
    )
