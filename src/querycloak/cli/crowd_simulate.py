"""`querycloak crowd simulate`: a crowd of any size, and who learns what in it."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import READING, SEED, TALK, pairs
from querycloak.cli.show import emit, number, plural, progress, say

SHARE = click.FloatRange(0, 1)


@click.command("simulate")
@click.option("--users", type=click.IntRange(min=2), help="How many members to make up.")
@click.option("--queries", type=click.IntRange(min=1), help="How many queries they send, all together.")
@click.option("--log", help="Take people and queries from a log instead.")
@click.option(
    "--edges", type=click.Path(dir_okay=False), help="Take friendships from a file: two names a line."
)
@click.option("--exponent", type=click.FloatRange(0, 10), default=1.5, show_default=True,
              help="Of the power law of how many friends people have.")  # fmt: skip
@click.option("--most-friends", type=click.IntRange(1, 1000), default=10, show_default=True,
              help="The most friends that anybody has.")  # fmt: skip
@click.option("--selfish", type=SHARE, default=0.0, help="Share of members who take nobody's queries.")
@click.option(
    "--colluding", type=SHARE, default=0.0, help="Share of members who tell each other all they see."
)
@click.option("--churn", type=SHARE, default=0.0, help="Share of the time that members are away.")
@click.option("--penalty", type=SHARE, default=0.03, show_default=True, help="Trust lost by a refusal (ζ).")
@click.option("--cut", type=(SHARE, SHARE), default=(0.6, 0.8), show_default=True,
              help="Least and most share of the vector that is cut out (θ).")  # fmt: skip
@click.option("--copies", type=click.IntRange(1, 100), default=3, show_default=True,
              help="How often the vector is repeated at most before the cut.")  # fmt: skip
@click.option("--renew", type=click.IntRange(min=0), default=0,
              help="Make vectors anew after so many of somebody's queries; 0: never.")  # fmt: skip
@click.option("--back/--no-back", default=True, show_default=True,
              help="Whether a query may go back to whom it came from.")  # fmt: skip
@click.option("--attack/--no-attack", default=True, help="Let the search engine guess who wrote what.")
@click.option("-o", "--output", help="With --log: write what the search engine sees.")
@click.option("--truth", type=click.Path(dir_okay=False), help="Beside it, whose each query was; mode 0600.")
@READING
@SEED
@TALK
def command(cut: tuple[float, float], seed: int | None, quiet: bool, as_json: bool, **given: Any) -> None:
    """Simulate friends who submit each other's queries: exposure, positions, hops, load, attacks.

    Example: querycloak crowd simulate --users 10000 --queries 1000000 --selfish 0.1
    """
    from querycloak.clients.crowd.simulator import Behaviour
    from querycloak.engines.crowd import Study, study

    behaviour = Behaviour(
        least_cut=cut[0],
        most_cut=cut[1],
        **{name: given.pop(name) for name in
           ("selfish", "colluding", "churn", "penalty", "copies", "renew", "back")},
    )  # fmt: skip
    truth = given.pop("truth")
    what = Study(
        behaviour=behaviour,
        seed=secrets.randbits(32) if seed is None else seed % 2**63,
        truth=Path(truth) if truth else None,
        reading={
            "format": given.pop("format_"),
            "mapping": pairs(given.pop("mapping"), "--map"),
            "strict": given.pop("strict"),
        },
        **given,
    )
    with progress(quiet or as_json) as show:
        found = study(what, show)
    if as_json:
        emit(found)
    say("\n".join(_lines(found)), quiet or as_json)


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
