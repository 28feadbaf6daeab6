"""The command line: parses, calls public Python, prints; it contains no logic."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from querycloak._version import __version__
from querycloak.errors import DISK_FULL, DISK_FULL_HINT, DiskFull, QueryCloakError, is_full

#: Commands in the order in which they are used, each with the module that has it, imported on use.
COMMANDS = {
    "demo": "generate:demo",
    "generate": "generate:generate",
    "classify": "generate:classify",
    "protect": "protect:command",
    "verify": "verify:verify",
    "attack": "evaluate:attack",
    "measure": "evaluate:measure",
    "compare": "compare:compare",
    "recommend": "compare:recommend",
    "assess": "verify:assess",
    "obfuscate": "obfuscate:command",
    "crowd": "crowd:crowd",
    "serve": "serve:command",
    "methods": "catalogue:methods",
    "attacks": "catalogue:attacks",
    "measures": "catalogue:measures",
    "doctor": "catalogue:doctor",
    "completion": "catalogue:completion",
}


class Cli(click.Group):
    """Command group that turns our exceptions into a message and an exit status. No other code does this."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """Run the command line; only in a process of its own, not where it is called with arguments."""
        if args is None:
            from querycloak.api import remove_at_signals

            remove_at_signals()
        return super().main(args, *more, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported when it is first used."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"querycloak.cli.{module}"), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Suggest the nearest command for an unknown one."""
        from difflib import get_close_matches

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"\n\nhint: did you mean `{near[0]}`?" if near else ""
            ctx.fail(f"there is no command `{args[0]}`{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn errors into text."""
        try:
            return super().invoke(ctx)
        except QueryCloakError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_status)
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            sys.stderr.close()
            ctx.exit(0)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:
            if is_full(error):
                click.echo(f"error: {DISK_FULL}\n\nhint: {DISK_FULL_HINT}", err=True)
                ctx.exit(DiskFull.exit_status)
            if os.environ.get("QUERYCLOAK_DEBUG"):
                raise
            _report_bug(ctx, error)


def _report_bug(ctx: click.Context, error: Exception) -> None:
    """Report a fault of the program. Its message is not shown, since it can contain data."""
    click.echo(
        f"error: something unforeseen went wrong ({type(error).__name__})\n\n"
        "hint: this is a fault in querycloak; QUERYCLOAK_DEBUG=1 shows the traceback, which may hold data",
        err=True,
    )
    ctx.exit(1)


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="querycloak")
def main() -> None:
    """Publish web-search logs without publishing people.

    QueryCloak protects a query log, checks its own promise, and says in numbers what is kept.

    Example: querycloak demo
    """
