"""`querycloak completion`: what a shell needs to complete our commands."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Example: querycloak completion bash > ~/.local/share/bash-completion/completions/querycloak
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root().command
    click.echo(kind(root, {}, "querycloak", "_QUERYCLOAK_COMPLETE").source())
