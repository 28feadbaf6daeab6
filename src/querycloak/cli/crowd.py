"""`querycloak crowd`: friends who forward each other's queries, simulated or real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from click import option

from querycloak.api import protocol_settings
from querycloak.cli.options import FILE, FOLDER, SEED, Output, defaulted, with_output, with_reading
from querycloak.errors import UsageError
from querycloak.formatting import number, plural

#: Settings of the protocol, which are options of `simulate`.
PROTOCOL: Final = {one["name"]: one for one in protocol_settings()}


@click.group("crowd")
def crowd() -> None:
    """Friends submit each other's queries, so that no profile belongs to one user.

    Example: querycloak crowd simulate --users 10000 --queries 1000000
    """


SHARE = click.FloatRange(0, 1)


def protocol(flag: str, kind: click.ParamType[Any]) -> Callable[[Any], Any]:
    """Return the option for a setting of the protocol, with its declared default and help."""
    declared = PROTOCOL[flag.lstrip("-")]
    return defaulted(flag, type=kind, default=declared["default"], help=_sentence(declared["help"]))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


@crowd.command("simulate")
@option("--users", type=click.IntRange(min=2), help="Number of members.")
@option("--queries", type=click.IntRange(min=1), help="Number of queries of all members together.")
@option("--log", help="Take users and queries from a log.")
@option("--edges", type=FILE, help="Take friendships from a file: two names per line.")
@defaulted(
    "--exponent",
    type=click.FloatRange(0, 10),
    default=1.5,
    help="Exponent of the power law for the number of friends.",
)
@defaulted("--most-friends", type=click.IntRange(1, 1000), default=10, help="Largest number of friends.")
@option("--selfish", type=SHARE, default=0.0, help="Share of members that accept no query.")
@option("--colluding", type=SHARE, default=0.0, help="Share of members that share all they see.")
@option("--churn", type=SHARE, default=0.0, help="Share of the time that members are away.")
@protocol("--penalty", SHARE)
@defaulted(
    "--cut",
    type=(SHARE, SHARE),
    default=(PROTOCOL["least_cut"]["default"], PROTOCOL["most_cut"]["default"]),
    help="Least and largest share of the vector that is cut out (θ).",
)
@protocol("--copies", click.IntRange(1, 100))
@protocol("--renew", click.IntRange(min=0))
@defaulted("--back/--no-back", default=PROTOCOL["back"]["default"], help=_sentence(PROTOCOL["back"]["help"]))
@option("--attack/--no-attack", default=True, help="Attack as a search engine that guesses authors.")
@option("-o", "--output", help="With --log: write the search engine's view.")
@option("--truth", type=FILE, help="With -o: ground truth, the author of each query; mode 0600.")
@with_reading
@SEED
@with_output
def simulate(out: Output, **given: Any) -> None:
    """Simulate friends who submit each other's queries: exposure, positions, hops, load, attacks.

    Example: querycloak crowd simulate --users 10000 --queries 1000000 --selfish 0.1
    """
    from querycloak.api import simulate_crowd

    with out.progress() as show:
        found = simulate_crowd(progress=show, **given)
    out.emit(found)
    out.say("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    exposed, guessed = found["exposed"], found.get("engine")
    honest = exposed.get("honest", {}).get("60")
    lines = [
        f"{plural(found['users'], 'user')}, {number(found['queries'])} queries, "
        f"{number(found['queries_per_second'])} a second",
        f"  hops: {number(found['hops'])}; response: {number(found['response_ms'])} ms",
    ]
    if honest is not None:
        lines.append(f"  exposed (PEL above 60 %): {number(honest)} % of honest users")
    if "selfish" in exposed:
        lines.append(f"  exposed: {number(exposed['selfish']['60'])} % of selfish users")
    for name, words in (
        ("linked", "knows which queries are one author's"),
        ("linked_with_network", "also knows who is whose friend"),
        ("linked_with_rules", "also knows the rules by which the crowd draws"),
        ("single", "knows nothing but the submitter"),
    ):
        if guessed and guessed.get(name, {}).get("success") is not None:
            lines.append(f"  the engine finds the author of {guessed[name]['success']:.1%} if it {words}")
    if "predecessor" in found and found["predecessor"]["success"]["success"] is not None:
        seen = found["predecessor"]
        lines.append(
            f"  colluding members see {seen['seen']:.1%} of others' queries and name the author of "
            f"{seen['success']['success']:.1%} of those"
        )
    return lines


@crowd.command("peer")
@click.argument("config", required=False, type=FILE)
@option("--http", metavar="HOST:PORT", help="Accept searches there, e.g. 127.0.0.1:8686.")
@option(
    "--new-identity",
    type=FOLDER,
    metavar="DIR",
    help="Create a key and a certificate in this folder, and do nothing else.",
)
def peer(config: Path | None, http: str | None, new_identity: Path | None) -> None:
    """Run a member of the crowd: forward queries of friends, and have friends forward yours.

    CONFIG is a TOML file that names your friends and their certificates.

    Example: querycloak crowd peer crowd.toml --http 127.0.0.1:8686
    """
    from querycloak.api import new_peer_identity, run_peer

    if (config is None) == (new_identity is None):
        raise UsageError("either a configuration file or `--new-identity DIR` is needed")
    if new_identity is not None:
        click.echo(f"your certificate has the fingerprint {new_peer_identity(new_identity)}", err=True)
    if config is not None:
        run_peer(config, http)


@crowd.command("search-server")
@defaulted("--host", default="127.0.0.1", help="Address to listen on.")
@defaulted("--port", default=8000, type=click.IntRange(0, 65535), help="Port to listen on.")
def search_server(host: str, port: int) -> None:
    """Run a small search engine with synthetic results, for trials. It logs nothing.

    Example: querycloak crowd search-server --port 8000
    """
    from querycloak.api import run_search_server

    run_search_server(host, port)
