"""From intent to text: template slots, reformulations, typing errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.synthetic import personal_data
from querycloak.synthetic.people import WANDERING, People, choose_interest
from querycloak.synthetic.rng import BoolArray, FloatArray, IntArray, mix, pick_weighted, pick_zipf
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.world import SITE_FORMS, SITES, Block, TopicMap, World

TOPIC, SITE, PERSON, LOCAL, PRIVATE, FRAGMENT = range(6)
#: How often a new need is of each kind, in the order above.
SHARES = (0.555, 0.24, 0.08, 0.09, 0.03, 0.005)
#: A search stays with the interest of its session this often.
STAYS = 0.65
CELEBRITIES = 2_000


@dataclass(frozen=True)
class Intents:
    """One entry per search; a search that goes back to another shares that one's subject."""

    kind: IntArray
    category: IntArray
    site: IntArray
    first: IntArray
    last: IntArray
    own: IntArray  # 1 where a private search is about the user's own data
    town: IntArray


def draw_intents(block: Block, people: People, plan: Plan) -> Intents:
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
    return Intents(*(column[plan.origin] for column in drawn))


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


def slot_candidates(
    rng: np.random.Generator, block: Block, people: People, plan: Plan, intents: Intents
) -> IntArray:
    """Draw a piece for every slot of every search."""
    offered = np.full((plan.user.size, SLOTS), EMPTY, np.int64)
    _offer_topic(offered, rng, intents, block.world)
    _offer_place(offered, rng, intents, block.world)
    _offer_names(offered, intents, block.world)
    _offer_sites(offered, rng, people.typing[plan.user], intents, block.world)
    return offered


def _any_of(kind: str, rng: np.random.Generator, size: int, world: World) -> IntArray:
    run = world.ranges[kind]
    return run.first + pick_zipf(rng.random(size), run.size)


def _offer_topic(offered: IntArray, rng: np.random.Generator, intents: Intents, world: World) -> None:
    """Offer words of the subject's category, and words that go before and after them."""
    topics, size, category = world.topics, len(offered), intents.category
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


def _offer_place(offered: IntArray, rng: np.random.Generator, intents: Intents, world: World) -> None:
    with_in = rng.random(len(offered)) < WITH_IN
    first = np.where(with_in, world.ranges["in town"].first, world.ranges["town"].first)
    offered[:, TOWN] = first + intents.town
    # A town always lies in the same region.
    offered[:, REGION] = world.ranges["region"].first + intents.town % world.ranges["region"].size


def _offer_names(offered: IntArray, intents: Intents, world: World) -> None:
    person = intents.kind == PERSON
    offered[person, HEAD] = world.ranges["first"].first + intents.first[person]
    offered[person, SECOND] = world.ranges["last"].first + intents.last[person]


def _offer_sites(
    offered: IntArray, rng: np.random.Generator, typing: IntArray, intents: Intents, world: World
) -> None:
    """Type a site in the user's usual way, or in another; offer words that go with a site."""
    size, site, slipped = len(offered), intents.kind == SITE, intents.kind == FRAGMENT
    other = pick_zipf(rng.random(size), len(SITE_FORMS))
    form = np.where(rng.random(size) < USUAL, typing, other)
    address = world.ranges["site"].first + form * SITES + intents.site
    offered[site, HEAD] = address[site]
    offered[site, SUFFIX] = _any_of("site suffix", rng, size, world)[site]
    offered[slipped, HEAD] = _any_of("fragment", rng, size, world)[slipped]


#: Running totals: add a word, drop one, respell; the rest exchange one.
ADDS, DROPS, RESPELLS = 0.45, 0.65, 0.80


def reformulate(
    slots: IntArray, slip: IntArray, offered: IntArray, plan: Plan, drawn: tuple[IntArray, FloatArray]
) -> None:
    """Word changed searches, in place: first those that change a new one, then those that change these.

    `drawn` holds the kind of each search's subject, and two uniform draws for each search.
    """
    kind, uniform = drawn
    base = plan.copy_of[plan.source]
    waiting = np.flatnonzero(plan.changes)
    done = ~plan.changes
    while waiting.size:
        ready = waiting[done[base[waiting]]]
        slots[ready], slip[ready] = slots[base[ready]], slip[base[ready]]
        slots[ready], slip[ready] = edit(
            slots[ready], slip[ready], offered[ready], uniform[ready], kind[ready]
        )
        done[ready] = True
        waiting = waiting[~done[waiting]]


def edit(
    slots: IntArray, slip: IntArray, offered: IntArray, uniform: FloatArray, kind: IntArray
) -> tuple[IntArray, IntArray]:
    """Add a word, drop one, respell, or exchange one; a typing error is mended by any of them.

    Private texts stay as they are: a slip could turn an invented number into somebody's.
    """
    action, where = uniform.T
    whole = (kind == PRIVATE) | (kind == FRAGMENT)
    site = kind == SITE
    respell = (action >= DROPS) & (action < RESPELLS) & ~whole
    new_slip = np.where(respell & (slip == 0), 1 + (where * 2**40).astype(np.int64), 0)
    slots = slots.copy()
    _put(slots, offered, where, (action < ADDS) & ~whole & ~site, (SECOND, SUFFIX, TOWN, PREFIX, THIRD))
    _put(slots, offered, where, (action < ADDS) & site, (HEAD, HEAD, SUFFIX))
    _drop(slots, (action >= ADDS) & (action < DROPS) & ~whole)
    _put(slots, offered, where, (action >= RESPELLS) & ~whole & ~site, (HEAD, SECOND, SUFFIX))
    _put(slots, offered, where, (action >= RESPELLS) & site, (HEAD,))
    return slots, new_slip


def _put(
    slots: IntArray, offered: IntArray, where: FloatArray, chosen: BoolArray, places: tuple[int, ...]
) -> None:
    """Write the offered piece into one of the places."""
    rows = np.flatnonzero(chosen)
    slot = np.array(places)[(where[rows] * len(places)).astype(np.int64)]
    slots[rows, slot] = offered[rows, slot]


def _drop(slots: IntArray, chosen: BoolArray) -> None:
    """Empty the last filled place behind the head, or else the one before it."""
    rows = np.flatnonzero(chosen)
    filled = slots[rows, SECOND:] != EMPTY
    last = SLOTS - 1 - np.argmax(filled[:, ::-1], axis=1)
    slots[rows, np.where(filled.any(axis=1), last, PREFIX)] = EMPTY


#: How often a new query of each kind fills each place (a private query is one text of its own).
FILLED: dict[int, dict[int, float]] = {
    TOPIC: {PREFIX: 0.19, HEAD: 1, SECOND: 0.42, THIRD: 0.14, SUFFIX: 0.27, TOWN: 0.04, REGION: 0.01},
    SITE: {HEAD: 1, SUFFIX: 0.04},
    PERSON: {HEAD: 1, SECOND: 0.97, TOWN: 0.25, REGION: 0.06},
    LOCAL: {PREFIX: 0.03, HEAD: 1, SECOND: 0.15, SUFFIX: 0.12, TOWN: 1, REGION: 0.3},
    PRIVATE: {},
    FRAGMENT: {HEAD: 1},
}
#: One new query in sixteen has a typing error.
SLIPS = 0.06


@dataclass(frozen=True)
class Wording:
    """Queries as rows of pieces, and the number that their typing error follows from (0: none)."""

    slots: IntArray
    slip: IntArray


def fill_templates(block: Block, people: People, plan: Plan, intents: Intents) -> Wording:
    """Word every new search, then every changed one from what it changes."""
    rng, size = block.stream("wording"), plan.user.size
    offered = slot_candidates(rng, block, people, plan, intents)
    slots = np.where(_filled(rng.random((size, SLOTS)), intents.kind), offered, EMPTY)
    slip = np.where(rng.random(size) < SLIPS, rng.integers(1, 2**40, size), 0)
    slip[np.isin(intents.kind, (PRIVATE, FRAGMENT))] = 0
    reformulate(slots, slip, offered, plan, (intents.kind, rng.random((size, 2))))
    return Wording(slots, slip)


def _filled(uniform: FloatArray, kind: IntArray) -> BoolArray:
    """Decide which places a new query of each kind fills."""
    odds = np.array([[FILLED[k].get(slot, 0.0) for slot in range(SLOTS)] for k in range(len(FILLED))])
    return np.asarray(uniform < odds[kind])


#: The key beside a letter.
_NEIGHBOURS = dict(zip("abcdefghijklmnopqrstuvwxyz", "snvfrghjoklknmpowtdyibecux", strict=True))


def write_queries(block: Block, people: People, plan: Plan, intents: Intents, wording: Wording) -> pl.Series:
    """Spell out the query of every search; those that share a text are spelt once."""
    spelt = np.flatnonzero(plan.copy_of == np.arange(plan.user.size))
    texts = _join(wording.slots[spelt], block.world)
    secret = spelt[intents.kind[spelt] == PRIVATE]
    written = personal_data.personal_queries(block, people, plan, intents, secret)
    texts = _replace(texts, np.searchsorted(spelt, secret), written)
    slipped = np.flatnonzero(wording.slip[spelt])
    pairs = zip(texts.gather(slipped).to_list(), wording.slip[spelt][slipped].tolist(), strict=True)
    texts = _replace(texts, slipped, [mistype(text, number) for text, number in pairs])
    return texts.gather(np.searchsorted(spelt, plan.copy_of))


def _join(slots: IntArray, world: World) -> pl.Series:
    """Join the pieces of each row with blanks; a piece that repeats the head is left out."""
    slots = slots.copy()
    slots[:, 2:4][slots[:, 2:4] == slots[:, 1:2]] = EMPTY
    columns = [
        world.pieces.gather(pl.Series(slots[:, i]).replace(EMPTY, None)).alias(str(i)) for i in range(SLOTS)
    ]
    frame = pl.DataFrame(columns)
    return frame.select(pl.concat_str(pl.all(), separator=" ", ignore_nulls=True).alias("query"))["query"]


def _replace(texts: pl.Series, where: IntArray, new: list[str]) -> pl.Series:
    return texts.scatter(where, pl.Series(new, dtype=pl.String)) if new else texts


def mistype(text: str, number: int) -> str:
    """Make the typing error that a number stands for: a letter lost, doubled, swapped or missed."""
    if len(text) < 4:
        return text
    action, place = number % 4, 1 + number // 4 % (len(text) - 2)
    before, letter, after = text[:place], text[place], text[place + 1 :]
    if " " in (letter, after[0]):
        return before + after if letter == " " else before + letter + letter + after
    near = _NEIGHBOURS.get(letter, letter)
    return before + (after, letter * 2 + after, after[0] + letter + after[1:], near + after)[action]
