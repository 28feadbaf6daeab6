"""How much of a release can be linked to people, in one number for each kind of attacker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

#: Who attacks: somebody with the release alone; somebody who knows things about people; whoever does best.
ATTACKERS: Final = ("release", "knowing", "any")
#: What labels must be like for the question "whose record is this?" to be one.
ASKED: Final = {"attribution": ("mixed",), "identification": ("mixed", "one person each", "shared")}


def linked(candidate: Mapping[str, Any], attacks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give, for each kind of attacker, the attack that links the largest share, with its interval.

    Attribution counts where labels are mixed. Where a label is one person's, it already says which records
    belong together, and finding out whose label it is is the game of identification. Controls, pairs and
    concepts are told elsewhere: their shares are of other things.
    """
    found: dict[str, Any] = {}
    for attacker in ATTACKERS:
        tried = [one for one in attacks if attacker in ("any", who(one)) and _counts(one, candidate)]
        shares = [(one["label"], candidate["findings"][one["label"]]) for one in tried]
        shares = [(label, share) for label, share in shares if share["success"] is not None]
        best = max(shares, key=lambda pair: pair[1]["success"], default=None)
        found[attacker] = best and {
            "attack": best[0],
            "success": best[1]["success"],
            "low": best[1]["low"],
            "high": best[1]["high"],
        }
    return found


def who(attack: Mapping[str, Any]) -> str:
    """Say what kind of attacker runs an attack."""
    return "knowing" if set(attack["sees"]) - {"release"} else "release"


def _counts(attack: Mapping[str, Any], candidate: Mapping[str, Any]) -> bool:
    return candidate["labels"] in ASKED.get(attack["game"], ()) and attack["label"] in candidate["findings"]


def why_not_linked(candidate: Mapping[str, Any]) -> str:
    """Say why there is no share of linked records or people."""
    return {
        "empty": "nothing was released",
        "table": "a table of counts has no records to link; its promise is what there is",
        "made up": "every record was made up from the release, and is nobody's",
        "none": "records carry no label, so nothing ties two of them together but their texts",
    }.get(candidate.get("labels", ""), "no attack of this kind applies")
