"""Pure functions of the protocol (paper 003, section 4.3), and its settings.

Callers pass uniform draws in [0, 1), so that peer and compiled simulator share these functions. A member
has the number 0, and its friends have the numbers from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from querycloak import settings as declared
from querycloak.errors import ParameterError
from querycloak.settings import setting

#: Declares a setting that is a share of something.
share_setting: Final = partial(setting, at_least=0, at_most=1)
_cut: Final = partial(setting, at_least=0, at_most=0.999)


@dataclass(frozen=True, kw_only=True)
class ProtocolSettings(declared.Settings):
    """Settings of the protocol, for peers and simulator; the defaults are the best values of the thesis."""

    method = "crowd"

    penalty: float = share_setting(0.03, help="trust lost by a refusal (ζ)")
    least_cut: float = _cut(0.6, help="least share of the vector that is cut out (θ)")
    most_cut: float = _cut(0.8, help="largest share of the vector that is cut out (θ)")
    copies: int = setting(
        3, at_least=1, at_most=100, help="largest number of repetitions of the vector before the cut"
    )
    renew: int = setting(0, at_least=0, help="redraw the vector after this number of own queries; 0: never")
    back: bool = setting(True, help="whether a query may return to the friend from which it came")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least_cut > self.most_cut:
            raise ParameterError("crowd: `least_cut` must be at most `most_cut`")


def cut_weights(friends_of: Any, copies: int, share: float, begin: float, weights: Any) -> None:
    """Compute how often each member remains in the vector from which the next hop is drawn (Ψ, 4.3.4).

    The vector has the searcher once and each friend as often as that friend has friends (`friends_of`),
    repeated `copies` times. An interval is cut out: `share` of the length, starting at the fraction `begin`
    and continuing at the start if it passes the end. The rest is uneven on purpose: the number of queries
    that each member submits should not reveal the member at the centre.
    """
    period = 1
    for many in friends_of:
        period += many
    size = copies * period
    first = int(begin * size)
    last = first + int(share * size)
    place = 0
    for who in range(len(weights)):
        own = 1 if who == 0 else friends_of[who - 1]
        weights[who] = copies * own
        for copy in range(copies):
            low = copy * period + place
            weights[who] -= max(0, min(low + own, last) - max(low, first))
            weights[who] -= max(0, min(low + own, last - size) - low)
        place += own


def draw_weighted(weights: Any, excluded: Any, draw: float) -> int:
    """Draw a member that is not excluded, in proportion to the weights; -1 if none is left."""
    whole = 0
    for who in range(len(weights)):
        if not excluded[who]:
            whole += weights[who]
    if whole == 0:
        return -1
    rest = int(draw * whole)
    for who in range(len(weights)):
        if not excluded[who]:
            rest -= weights[who]
            if rest < 0:
                return who
    return -1


def draw_forward(friends: int, excluded: Any, refused: int, draw: float) -> int:
    """Draw the next hop of another member's query, the member itself included, uniformly (Ψf, 4.3.3).

    `refused` is the number of friends that are excluded because they refused it.
    """
    rest = int(draw * (friends + 1 - refused))
    if refused == 0:
        return rest
    for who in range(friends + 1):
        if not excluded[who]:
            if rest == 0:
                return who
            rest -= 1
    return -1


def accepts(trust: float, draw: float) -> bool:
    """Whether a query of a friend is accepted (Υ, 4.3.5): with the friend's trust as probability."""
    return draw < trust


def after_answer(trust: float, penalty: float) -> float:
    """Return the trust in a friend that answered a query."""
    return min(1.0, trust + 2.0 * penalty)


def after_loss(trust: float, penalty: float) -> float:
    """Return the trust in a friend whose query was accepted, who refused one, or did not reply in time."""
    return max(0.0, trust - penalty)
