"""`querycloak methods`, `attacks`, `measures`, `doctor`, `completion`: what is available here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.cli.options import FOLDER, Output, repeated, with_output


@click.command("methods")
@with_output
def methods(out: Output) -> None:
    """List the protection methods with their settings, what they promise and what they do not.

    Example: querycloak methods
    """
    from querycloak.api import describe_methods

    found = describe_methods()
    _show(out, {"methods": found}, (line for method in found for line in _method(method)))


def _method(method: dict[str, Any]) -> Iterator[str]:
    yield f"{method['name']}: {method['summary']}"
    yield f"  promise: {method['promise']}"
    for limit in method["does_not_protect_against"]:
        yield f"  does not protect against {limit}"
    yield from _settings(method)


@click.command("attacks")
@with_output
def attacks(out: Output) -> None:
    """List the attacks with what each tries, what it gets to see, and its settings.

    Example: querycloak attacks
    """
    from querycloak.api import describe_attacks

    found = describe_attacks()
    _show(out, {"attacks": found}, (line for attack in found for line in _attack(attack)))


def _attack(attack: dict[str, Any]) -> Iterator[str]:
    slow = "" if attack["fast"] else "; runs only when named"
    yield f"{attack['name']}: {attack['summary']}"
    yield f"  game: {attack['game']}; sees: {' + '.join(attack['sees'])}{slow}"
    yield from _settings(attack)


def _settings(part: dict[str, Any]) -> Iterator[str]:
    for one in part["settings"]:
        yield f"  -s {one['name']}={one['default']}  {one['help']} ({one['allowed']})"
    yield ""


@click.command("measures")
@with_output
def measures(out: Output) -> None:
    """List the measures.

    Example: querycloak measures
    """
    from querycloak.api import describe_measures

    found = describe_measures()
    _show(out, {"measures": found}, (f"{measure['name']}: {measure['help']}" for measure in found))


@click.command("doctor")
@option("--remove-leftovers", is_flag=True, help="Remove temporary files that killed runs have left.")
@repeated("--folder", "folders", type=FOLDER, help="Also look for them here: where outputs or state are.")
@with_output
def doctor(remove_leftovers: bool, folders: tuple[Path, ...], out: Output) -> None:
    """Show what this machine can run, how to install the rest, and what killed runs have left.

    Example: querycloak doctor
    """
    from querycloak.api import examine_machine

    found = examine_machine(folders=folders, remove_leftovers=remove_leftovers)
    _show(out, found, _machine(found))


def _machine(found: dict[str, Any]) -> Iterator[str]:
    machine = f"Python {found['python']}, {found['cores']} cores, {found['memory_gb']} GB free"
    yield f"querycloak {found['version']}, {machine}"
    for part in found["parts"] + found["programs"]:
        hint = "" if part["installed"] else f"; {part['install']}"
        yield f"  {'yes' if part['installed'] else 'no '}  {part['name']}: {part['for']}{hint}"
    left = found["leftovers"]
    for path in left["paths"]:
        yield f"  {'removed' if left['removed'] else 'left by a run that was killed'}: {path}"
    if left["paths"] and not left["removed"]:
        yield "hint: `querycloak doctor --remove-leftovers`; the next run in these folders removes them too"


def _show(out: Output, found: Any, lines: Iterator[str]) -> None:
    """Print a list as JSON or as lines; lists are what was asked for, so `--quiet` does not hide them."""
    if out.as_json:
        out.emit(found)
    else:
        click.echo("\n".join(lines))


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Example: querycloak completion bash > ~/.local/share/bash-completion/completions/querycloak
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "querycloak", "_QUERYCLOAK_COMPLETE").source())
