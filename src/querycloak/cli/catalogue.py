"""`querycloak methods`, `attacks`, `measures`, `doctor`, `completion`: what is available here."""

from __future__ import annotations

import click

from querycloak.cli.options import TALK, emit


@click.command("methods")
@TALK
def methods(quiet: bool, as_json: bool) -> None:
    """List the protection methods with their settings, what they promise and what they do not.

    Example: querycloak methods
    """
    from querycloak.api import describe_methods

    found = describe_methods()
    if as_json:
        emit({"methods": found})
        return
    for method in found:
        click.echo(f"{method['name']}: {method['summary']}")
        click.echo(f"  promise: {method['promise']}")
        for limit in method["does_not_protect_against"]:
            click.echo(f"  does not protect against {limit}")
        for setting in method["settings"]:
            click.echo(
                f"  -s {setting['name']}={setting['default']}  {setting['help']} ({setting['allowed']})"
            )
        click.echo("")


@click.command("attacks")
@TALK
def attacks(quiet: bool, as_json: bool) -> None:
    """List the attacks with what each tries, what it gets to see, and its settings.

    Example: querycloak attacks
    """
    from querycloak.api import describe_attacks

    found = describe_attacks()
    if as_json:
        emit({"attacks": found})
        return
    for attack in found:
        click.echo(f"{attack['name']}: {attack['summary']}")
        slow = "" if attack["fast"] else "; runs only when named"
        click.echo(f"  game: {attack['game']}; sees: {' + '.join(attack['sees'])}{slow}")
        for setting in attack["settings"]:
            click.echo(
                f"  -s {setting['name']}={setting['default']}  {setting['help']} ({setting['allowed']})"
            )
        click.echo("")


@click.command("measures")
@TALK
def measures(quiet: bool, as_json: bool) -> None:
    """List the measures.

    Example: querycloak measures
    """
    from querycloak.api import describe_measures

    found = describe_measures()
    if as_json:
        emit({"measures": found})
        return
    for measure in found:
        click.echo(f"{measure['name']}: {measure['help']}")


@click.command("doctor")
@TALK
def doctor(quiet: bool, as_json: bool) -> None:
    """Show what this machine can run, and how to install the rest.

    Example: querycloak doctor
    """
    from querycloak.api import examine_machine

    found = examine_machine()
    if as_json:
        emit(found)
        return
    machine = f"Python {found['python']}, {found['cores']} cores, {found['memory_gb']} GB free"
    click.echo(f"querycloak {found['version']}, {machine}")
    for part in found["parts"] + found["programs"]:
        hint = "" if part["installed"] else f"; {part['install']}"
        click.echo(f"  {'yes' if part['installed'] else 'no '}  {part['name']}: {part['for']}{hint}")


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
    root = ctx.find_root().command
    click.echo(kind(root, {}, "querycloak", "_QUERYCLOAK_COMPLETE").source())
