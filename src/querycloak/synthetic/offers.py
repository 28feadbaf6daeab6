"""A word for every place of every query, used or not: what a query may be built or changed with."""

from __future__ import annotations

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.people import People
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.streams import IntArray, pick_zipf
from querycloak.synthetic.subjects import FRAGMENT, PERSON, SITE, Subjects
from querycloak.synthetic.topicmap import TopicMap
from querycloak.synthetic.world import SITE_FORMS, SITES, World

#: The places of a query's words, in the order of writing; `EMPTY` leaves one out.
PREFIX, HEAD, SECOND, THIRD, SUFFIX, TOWN, REGION = range(7)
SLOTS, EMPTY = 7, -1
#: How often the word behind a topic is one that goes with this topic only, and a town comes with "in".
FITTING, WITH_IN = 0.55, 0.35
#: How often a word is one of the interest's own category, instead of any of its domain.
FOND = 0.4
#: The commonest few words of a list are about equally common.
FLAT = 4.0
#: How often a site is typed in the user's usual way.
USUAL = 0.6


def draw_offers(
    rng: np.random.Generator, block: Block, people: People, plan: Plan, subjects: Subjects
) -> IntArray:
    """Draw a piece for every slot of every search."""
    offered = np.full((plan.user.size, SLOTS), EMPTY, np.int64)
    _offer_topic(offered, rng, subjects, block.world)
    _offer_place(offered, rng, subjects, block.world)
    _offer_names(offered, subjects, block.world)
    _offer_sites(offered, rng, people.typing[plan.user], subjects, block.world)
    return offered


def _any_of(kind: str, rng: np.random.Generator, size: int, world: World) -> IntArray:
    run = world.ranges[kind]
    return run.first + pick_zipf(rng.random(size), run.size)


def _offer_topic(offered: IntArray, rng: np.random.Generator, subjects: Subjects, world: World) -> None:
    """Offer words of the subject's category, and words that go before and after them."""
    topics, size, category = world.topics, len(offered), subjects.category
    for slot in (HEAD, SECOND, THIRD):
        offered[:, slot] = _words(rng, category, topics)
    offered[:, PREFIX] = _any_of("prefix", rng, size, world)
    suffixes = topics.suffixes[category]
    fitting = suffixes.first + pick_zipf(rng.random(size), suffixes.size)
    general = _any_of("suffix", rng, size, world)
    offered[:, SUFFIX] = np.where(rng.random(size) < FITTING, fitting, general)


def _words(rng: np.random.Generator, category: IntArray, topics: TopicMap) -> IntArray:
    """Draw a word of each category or, more often, of its whole domain; common ones more often."""
    own, common = topics.words[category], topics.common[topics.domain[category]]
    fond = rng.random(category.size) < FOND
    rank = pick_zipf(rng.random(category.size), np.where(fond, own.size, common.size), FLAT)
    anywhere = topics.common_words[common.first + np.minimum(rank, common.size - 1)]
    return np.where(fond, own.first + np.minimum(rank, own.size - 1), anywhere)


def _offer_place(offered: IntArray, rng: np.random.Generator, subjects: Subjects, world: World) -> None:
    with_in = rng.random(len(offered)) < WITH_IN
    first = np.where(with_in, world.ranges["in town"].first, world.ranges["town"].first)
    offered[:, TOWN] = first + subjects.town
    # A town always lies in the same region.
    offered[:, REGION] = world.ranges["region"].first + subjects.town % world.ranges["region"].size


def _offer_names(offered: IntArray, subjects: Subjects, world: World) -> None:
    person = subjects.kind == PERSON
    offered[person, HEAD] = world.ranges["first"].first + subjects.first[person]
    offered[person, SECOND] = world.ranges["last"].first + subjects.last[person]


def _offer_sites(
    offered: IntArray, rng: np.random.Generator, typing: IntArray, subjects: Subjects, world: World
) -> None:
    """Type a site in the user's usual way, or in another; offer words that go with a site."""
    size, site, slipped = len(offered), subjects.kind == SITE, subjects.kind == FRAGMENT
    other = pick_zipf(rng.random(size), len(SITE_FORMS))
    form = np.where(rng.random(size) < USUAL, typing, other)
    address = world.ranges["site"].first + form * SITES + subjects.site
    offered[site, HEAD] = address[site]
    offered[site, SUFFIX] = _any_of("site suffix", rng, size, world)[site]
    offered[slipped, HEAD] = _any_of("fragment", rng, size, world)[slipped]
