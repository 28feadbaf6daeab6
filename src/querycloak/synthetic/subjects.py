"""What each search is about: a topic, a site, a person, a place, or something private."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.interests import WANDERING, choose_interest
from querycloak.synthetic.people import People
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.streams import FloatArray, IntArray, mix, pick_weighted, pick_zipf
from querycloak.synthetic.world import SITES, World

TOPIC, SITE, PERSON, LOCAL, PRIVATE, FRAGMENT = range(6)
#: How often a new need is of each kind, in the order above.
SHARES = (0.555, 0.24, 0.08, 0.09, 0.03, 0.005)
#: A search stays with the interest of its session this often.
STAYS = 0.65
CELEBRITIES = 2_000


@dataclass(frozen=True)
class Subjects:
    """One entry per search; a search that goes back to another shares that one's subject."""

    kind: IntArray
    category: IntArray
    site: IntArray
    first: IntArray
    last: IntArray
    own: IntArray  # 1 where a private search is about the user's own data
    town: IntArray


def draw_subjects(block: Block, people: People, plan: Plan) -> Subjects:
    """Draw a subject for each search and hand it on along chains of changes and returns."""
    rng, world, size = block.stream("subjects"), block.world, plan.user.size
    kind = pick_weighted(rng.random(size), np.cumsum(SHARES))
    site = pick_zipf(rng.random(size), SITES)
    category = _categories(rng, people, plan, world)
    category = np.where(kind == SITE, world.topics.category_of_site[site], category)
    category = np.where(kind == PERSON, world.topics.of_people, category)
    category = np.where((kind == PRIVATE) | (kind == FRAGMENT), world.topics.of_places, category)
    first, last = _persons(rng.random((3, size)), people, plan, world)
    town = np.where(
        rng.random(size) < 0.7, people.town[plan.user], pick_zipf(rng.random(size), world.ranges["town"].size)
    )
    own = (rng.random(size) < 0.6).astype(np.int64)
    drawn = (kind, category, site, first, last, own, town)
    return Subjects(*(column[plan.origin] for column in drawn))


def _categories(rng: np.random.Generator, people: People, plan: Plan, world: World) -> IntArray:
    """Choose a category per search: the session's interest, another of the user's, or any."""
    size = plan.user.size
    sessions = int(plan.session[-1]) + 1
    uniform = np.where(rng.random(size) < STAYS, rng.random(sessions)[plan.session], rng.random(size))
    chosen = people.interests[plan.user, choose_interest(uniform, people.breadth[plan.user])]
    anything = pick_weighted(rng.random(size), world.topics.popularity)
    return np.where(rng.random(size) < WANDERING, anything, chosen)


def _persons(uniform: FloatArray, people: People, plan: Plan, world: World) -> tuple[IntArray, IntArray]:
    """Name a person: oneself, a relative, somebody famous, or a stranger; all invented."""
    firsts, lasts = world.ranges["first"].size, world.ranges["last"].size
    which, a, b = uniform
    star = pick_zipf(a, CELEBRITIES)
    first, last = (a * firsts).astype(np.int64), (b * lasts).astype(np.int64)
    first = np.where(which < 0.3, people.first[plan.user], first)
    last = np.where(which < 0.5, people.last[plan.user], last)
    famous = which > 0.72
    first = np.where(famous, mix(star, 1) % firsts, first)
    return first, np.where(famous, mix(star, 2) % lasts, last)
