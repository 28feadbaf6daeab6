"""One declaration for file, environment and flags: which wins, what is refused, where secrets may stand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from querycloak.cli import main
from querycloak.errors import ParameterError, UnknownName, UsageError
from querycloak.service.settings import PREFIX, RELOADABLE, ServiceSettings, Setup, setup


def made(tmp_path: Path, text: str = "", flags: dict[str, Any] | None = None, **environment: str) -> Setup:
    config = tmp_path / "serve.toml"
    config.write_text(text, "utf-8")
    config.chmod(0o600)
    named = {PREFIX + name.upper(): value for name, value in environment.items()}
    return setup(flags or {}, [], {}, config=config, environment=named | {"HOME": "x"})


def test_without_any_of_them_the_defaults_hold() -> None:
    found = setup({}, [], {}, environment={})
    assert found.settings == ServiceSettings()
    assert [stage.method for stage in found.stages] == ["cohort"]
    assert found.loopback


def test_flags_win_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = "port = 1\nrate = 1\nbody_bytes = 4096\nclassify = false"
    found = made(tmp_path, file, {"port": 3, "host": None}, port="2", rate="2.5").settings
    assert (found.port, found.rate, found.body_bytes, found.classify) == (3, 2.5, 4096, False)
    assert found.host == "127.0.0.1"


def test_methods_come_from_the_file_unless_given(tmp_path: Path) -> None:
    text = 'methods = ["rules", "cohort"]\n[settings]\nk = 7'
    found = made(tmp_path, text)
    assert [stage.method for stage in found.stages] == ["rules", "cohort"]
    assert found.stages[1].settings.as_dict()["k"] == 7
    assert [stage.method for stage in made(tmp_path, 'methods = "swap"').stages] == ["swap"]
    config = tmp_path / "serve.toml"
    config.write_text(text, "utf-8")
    assert (
        setup({}, ["cohort"], {"k": "9"}, config=config, environment={}).stages[0].settings.as_dict()["k"]
        == 9
    )


@pytest.mark.parametrize("given", [{"text": "prot = 1"}, {"flags": {"prot": "1"}}, {"prot": "1"}])
def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UnknownName, match="`prot`") as caught:
        made(tmp_path, **given)
    assert caught.value.hint == "did you mean `port`?"


def test_all_wrong_values_are_told_in_one_go(tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        made(tmp_path, "port = 70000\nclassify = 'perhaps'", {"rate": "-1"}, backlog="many")
    for name in ("port", "classify", "rate", "backlog"):
        assert f"`{name}` must be" in caught.value.message


@pytest.mark.parametrize(
    "text", ["port = ", "methods = 3", "methods = [1]", "settings = 3", "[elsewhere]\nport = 1", "port = [1]"]
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        made(tmp_path, text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        setup({}, [], {}, config=tmp_path / "none.toml", environment={})


SECRETS = [
    "postgresql://me:planted@host/db",
    "postgresql://host/db?user=me&password=planted",
    "kafka://me:planted@host:9092/topic",
    "kafka://host:9092/topic?sasl.password=planted",
]


@pytest.mark.parametrize("name", ["profiles", "source", "sink"])
@pytest.mark.parametrize("address", SECRETS)
def test_a_password_may_not_stand_in_a_flag(tmp_path: Path, name: str, address: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` holds a password") as caught:
        made(tmp_path, flags={name: address})
    assert "planted" not in str(caught.value)
    assert f"{PREFIX}{name.upper()}" in caught.value.hint
    assert getattr(made(tmp_path, f'{name} = "{address}"').settings, name) == address
    assert getattr(made(tmp_path, **{name: address}).settings, name) == address


@pytest.mark.parametrize("address", ["postgresql://me@host:5432/db", "sqlite:///a:b@c", "file:x?password"])
def test_an_address_without_a_password_may(tmp_path: Path, address: str) -> None:
    assert made(tmp_path, flags={"profiles": address}).settings.profiles == address


def test_the_command_line_refuses_it_too() -> None:
    done = CliRunner().invoke(main, ["serve", "--profiles", "postgresql://me:planted@host/db"])
    assert done.exit_code == 2
    assert "command line" in done.output
    assert "planted" not in done.output


def test_a_file_with_a_password_is_for_its_owner_only(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('profiles = "postgresql://me:planted@host/db"', "utf-8")
    config.chmod(0o640)
    with pytest.raises(UsageError, match="readable by other users"):
        setup({}, [], {}, config=config, environment={})


def test_secrets_are_files_everywhere_else() -> None:
    """No setting takes a key or a token itself: what could stand in a flag is the name of a file."""
    help_ = {f.name: f.metadata["help"] for f in dataclasses.fields(ServiceSettings)}
    for name in ("tokens", "tls_key", "state_key"):
        assert "file" in help_[name]


def test_what_can_be_reloaded_is_declared() -> None:
    assert {f.name for f in dataclasses.fields(ServiceSettings)} >= RELOADABLE


def test_a_setup_can_be_read_again(tmp_path: Path) -> None:
    first = made(tmp_path, "rate = 1", {"port": 5})
    (tmp_path / "serve.toml").write_text("rate = 2", "utf-8")
    assert first.again is not None
    assert (first.again().settings.rate, first.again().settings.port) == (2, 5)
