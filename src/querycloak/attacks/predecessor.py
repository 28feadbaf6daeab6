"""`predecessor`: who wrote a query that a crowd submitted, for colluding members or the search engine."""

from __future__ import annotations

from dataclasses import dataclass

from querycloak import settings as declared
from querycloak.attacks.base import Attack, AttackerView, Attribution
from querycloak.attacks.case import HANDED_BY
from querycloak.errors import NotApplicable
from querycloak.settings import setting


class Predecessor(Attack):
    """Names the member who handed a query to a colluding member, or the one who submitted it most often.

    For what `querycloak crowd simulate --log … -o …` writes: `user` is who submitted a query, and `handed_by`
    who handed it to the first member who colludes. Queries that none of them saw have no guess; the search
    engine (`view=engine`) takes the member who submitted the text most often.
    """

    name = "predecessor"
    game = "attribution"
    trace_columns = frozenset({HANDED_BY})
    certified = False
    fast = False

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `predecessor`."""

        view: str = setting(
            "peers",
            choices=("peers", "engine"),
            help="who looks: colluding `peers`, if the trace has any, or the search `engine`",
        )

    settings: Settings

    def guess(self, view: AttackerView) -> Attribution:
        """Guess the author of every row."""
        seen = view.release
        if self.settings.view == "peers":
            if HANDED_BY not in seen.columns:
                raise NotApplicable("no member colludes: the release has no handed_by")
            return Attribution(seen[HANDED_BY])
        most = (
            seen.group_by("query", "user")
            .len()
            .sort("len", "user", descending=[True, False])
            .unique("query", keep="first", maintain_order=True)
        )
        return Attribution(seen.join(most, on="query", how="left", maintain_order="left")["user_right"])
