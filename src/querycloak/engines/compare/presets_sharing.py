"""The preset `search-data-sharing`: rules of the kind that regulators propose for handing out search data."""

from __future__ import annotations

from typing import Any, Final

#: Everything that looks personal left out, and length limits that are stricter than the method's own.
_RULES: Final = "max_words=6:max_letters=60"

#: What the preset is made of, by the names of a preset's parts. It is modelled on what such rules have in
#: common (an allow-list by frequency, length limits, no rare terms, coarse times, short sessions that nothing
#: links, daily batches, samples for different readers) and is the text of no law.
SHARING: Final[dict[str, Any]] = {
    "about": "Frequent queries in short unlinked sessions, day by day, whole and as three samples, as rules "
    "for sharing search data tend to ask; on at most 20,000 people",
    "candidates": (
        f"rules+short-sessions:{_RULES}:k=5,10,30,100",
        f"short-sessions+rules:{_RULES}:rare=terms:k=5,10,30,100",
        f"rules+short-sessions:{_RULES}:time=day:clicks=drop:k=30",
        f"rules+short-sessions:{_RULES}:k=30:sample=small,5%,synthetic",
    ),
    "sample": 20_000,
}
