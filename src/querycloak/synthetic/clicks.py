"""Clicked results: about half of all searches have a click, most on the first result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.queries import HEAD, SECOND, SITE, Intents, Wording
from querycloak.synthetic.rng import BoolArray, FloatArray, IntArray, mix, pick_weighted, pick_zipf
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.world import Block, World

#: How often a search for a site, and any other, gets a click.
CLICKS_SITE, CLICKS_OTHER = 0.70, 0.45
#: After a click another one follows this often.
CLICKS_AGAIN, MOST_CLICKS = 0.22, 8
#: How the first click falls on ranks 1 to 10: when looking for a site, and otherwise.
RANKS_SITE = (85, 6, 2.5, 1.6, 1.2, 1, 0.8, 0.7, 0.6, 0.6)
RANKS_OTHER = (47, 15, 9, 6.5, 5, 4.2, 3.6, 3.2, 3, 3.5)


@dataclass(frozen=True)
class Clicks:
    """One entry per row of the log: the search it belongs to, and its click (rank 0: none)."""

    search: IntArray
    rank: IntArray
    site: IntArray


def draw_clicks(block: Block, plan: Plan, intents: Intents, wording: Wording) -> Clicks:
    """Draw the clicks of every search; several clicks of one search are several rows."""
    rng = block.stream("clicks")
    size = plan.user.size
    for_site = intents.kind == SITE
    clicked = rng.random(size) < np.where(for_site, CLICKS_SITE, CLICKS_OTHER)
    more = np.floor(np.log1p(-rng.random(size)) / np.log(CLICKS_AGAIN)).astype(np.int64)
    count = np.where(clicked, 1 + np.minimum(more, MOST_CLICKS - 1), 0)
    first = _first_rank(rng.random(size), for_site) + 10 * plan.next_page
    search = np.repeat(np.arange(size), np.maximum(count, 1))
    steps = 1 + pick_zipf(rng.random(search.size), 6)
    rank = np.where(count[search] > 0, _grow(first, steps, search), 0)
    return Clicks(search, rank, _results(plan.copy_of[search], rank, intents, wording, block.world))


def _first_rank(uniform: FloatArray, for_site: BoolArray) -> IntArray:
    ranks = (pick_weighted(uniform, np.cumsum(odds)) for odds in (RANKS_SITE, RANKS_OTHER))
    return 1 + np.where(for_site, *ranks)


def _grow(first: IntArray, steps: IntArray, search: IntArray) -> IntArray:
    """Return the ranks: each further click of a search is below the one before."""
    opens = np.concatenate([[True], search[1:] != search[:-1]])
    steps = np.where(opens, 0, steps)
    total = np.cumsum(steps)
    return np.asarray(first[search] + total - total[opens][search], np.int64)


def _results(asked: IntArray, rank: IntArray, intents: Intents, wording: Wording, world: World) -> IntArray:
    """Find the site at a rank: the one looked for comes first, and a query always gets the same list."""
    topics = world.topics
    sites = topics.sites[topics.domain[intents.category[asked]]]
    words = mix(wording.slots[asked, HEAD], wording.slots[asked, SECOND])
    drawn = pick_zipf(mix(words, rank) / 2.0**63, np.maximum(sites.size, 1))
    site = topics.sites_by_domain[np.minimum(sites.first + drawn, topics.sites_by_domain.size - 1)]
    looked_for = (intents.kind[asked] == SITE) & (rank == 1)
    return np.where(looked_for, intents.site[asked], site)
