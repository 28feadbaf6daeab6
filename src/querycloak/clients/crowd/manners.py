"""How a member behaves towards her friends: declared once, with bounds and help."""

from __future__ import annotations

from dataclasses import dataclass

from querycloak import settings as declared
from querycloak.clients.crowd import rules
from querycloak.errors import ParameterError
from querycloak.settings import setting


@dataclass(frozen=True, kw_only=True)
class Manners(declared.Settings):
    """How a member chooses, waits, trusts and limits; times are in seconds."""

    penalty: float = setting(
        rules.PENALTY, kind=float, at_least=0, at_most=1, help="what a refusal costs a friend's trust (ζ)"
    )
    least_cut: float = setting(
        rules.LEAST_CUT, kind=float, at_least=0, at_most=0.99, help="least share of the vector cut out (θ)"
    )
    most_cut: float = setting(
        rules.MOST_CUT, kind=float, at_least=0, at_most=0.99, help="largest share of the vector cut out (θ)"
    )
    copies: int = setting(
        rules.MOST_COPIES,
        kind=int,
        at_least=1,
        at_most=100,
        help="the vector is repeated up to so many times",
    )
    renew: int = setting(
        0, kind=int, at_least=0, help="draw the vector anew after so many own queries; 0: never"
    )
    back: bool = setting(True, kind=bool, help="a query may go back to the friend it came from")
    redraw: str = setting(
        "alike",
        kind=str,
        choices=("alike", "vector"),
        help="who is asked after a refusal: all alike, as for others' queries, or by the vector again",
    )
    most_own: float = setting(
        1.0,
        kind=float,
        at_least=0,
        at_most=1,
        help="most share of own queries among those handed to a friend that did not come from her; 1: any",
    )
    friends_counted: int = setting(
        10, kind=int, at_least=1, at_most=1000, help="believe a friend at most so many friends of her own"
    )
    accept_within: float = setting(
        2.0, kind=float, at_least=0.05, at_most=60, help="wait so long for a friend to take or refuse"
    )
    answer_within: float = setting(
        8.0, kind=float, at_least=0.1, at_most=600, help="wait at most so long for an answer, at least half"
    )
    engine_within: float = setting(
        4.0, kind=float, at_least=0.05, at_most=300, help="wait so long for the engine"
    )
    forgiveness: float = setting(
        3600.0, kind=float, at_least=1, help="a friend without any trust gets one penalty's worth after this"
    )
    rate: float = setting(
        20.0, kind=float, at_least=0.01, at_most=1e6, help="queries a second that a friend may send"
    )
    burst: int = setting(
        100, kind=int, at_least=1, at_most=10**6, help="queries a friend may send at once after a rest"
    )
    waiting: int = setting(
        64, kind=int, at_least=1, at_most=10**5, help="queries of one friend that may be under way"
    )
    in_flight: int = setting(
        512, kind=int, at_least=1, at_most=10**6, help="queries of all together that may be under way"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least_cut > self.most_cut:
            raise ParameterError("Manners: `least_cut` must be at most `most_cut`")
        if self.engine_within > self.answer_within / 2:
            raise ParameterError(
                "Manners: `engine_within` must be at most half of `answer_within`",
                hint="else friends give up while the engine may still answer",
            )
