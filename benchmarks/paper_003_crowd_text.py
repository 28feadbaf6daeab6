"""The sections of docs/papers/paper-003-crowd.md, with their numbers filled in."""

from __future__ import annotations

from typing import Any

from benchmarks.paper_000_page import table
from benchmarks.paper_003_claims import number
from benchmarks.paper_003_crowd import (
    ATTACKED_TESTS,
    BEST,
    COLLUDING,
    COPIES,
    EXPONENT,
    EXPONENTS,
    FEWER_TESTS,
    FLAT,
    FLAT_EXPONENT,
    LINKED,
    MOST_EXACT,
    NOTHING,
    READINGS,
    RENEWALS,
    SIZES,
    TESTS,
    spelled,
)
from benchmarks.paper_003_crowd_claims import (
    AVERAGES,
    DEVIATIONS,
    EXPOSED,
    HOPS,
    MOST,
    WAYS,
    Results,
    counted,
    sized,
    usable,
)
from benchmarks.paper_003_crowd_figures import ENGINES
from benchmarks.paper_003_crowd_tables import SHOWN, both, compared, shares
from benchmarks.paper_003_text import holds, share
from querycloak.clients.crowd.adversary import TARGETS
from querycloak.clients.crowd.knowing import VECTORS
from querycloak.clients.crowd.rules import MOST_COPIES

BACK, NO_BACK = READINGS
CUT, WHOLE = f"linked {spelled(BEST)}", f"linked {spelled(NOTHING)}"
NETWORK = ENGINES["knows the network"][0]
#: Tallies of two runs with other draws differed by so much.
TALLY_NOISE = 2
#: A difference that counts as one, where sizes of crowds are compared.
TENTH = 0.1
#: Shares of the equal one that differ by less are called equal.
EVEN = 0.02


def strongest(results: Results, part: str, at: Any, reading: str) -> float | None:
    """Give what the better of the two engines that know the network achieves."""
    paths = (NETWORK, ENGINES["knows network and rules"][0])
    found = [value for path in paths if (value := results.value(part, at, reading, *path)) is not None]
    return max(found, default=None)


def opening(results: Results) -> str:
    """Say what this is."""
    about = results.about
    return f"""<!-- Written by `python -m benchmarks.paper_003_crowd`; do not edit by hand. -->
# Paper 003, chapter 4, measured again

In chapter 4 of the thesis "Contributions to privacy in web search engines" friends submit each other's
queries, so that the profile that a search engine has of somebody is not hers alone. This page repeats its
tables and figures with [our simulator](../explanation/crowd.md) and sets the thesis's numbers beside ours.
Networks and queries are made up, as in the thesis; where it takes histories from the AOL log, **ours are
those of a made-up log**: {about["users"]:,} people with {about["rows"]:,} queries (`querycloak generate`,
seed {about["seed"]}). All is run in two readings of the thesis, *back* and *no back* ([see
below](#two-readings)), and the thesis's tables once more with *{FLAT}*: the second reading in networks where
fewer people have only one friend. [What is ours](#what-is-ours) and not the thesis's stands at the end."""


def found(results: Results) -> str:
    """Say what we found, in five paragraphs."""
    parts = (engine_found, measure_found, readings_found, friends_found, heavy_found)
    return "\n\n".join(["## What we found", *(part(results) for part in parts)])


def engine_found(results: Results) -> str:
    """Say what the engine finds out, which is the most important."""
    cut, whole = (
        [strongest(results, part, SHOWN, way) for way in WAYS] for part in (CUT, WHOLE)
    )  # fmt: skip
    alone = shares(results, CUT, SHOWN, "engine", "linked", "success")
    if None in cut or None in whole:
        return "**What the search engine finds out** is not measured in all readings yet."
    words = "does not hide" if min(one or 0 for one in cut) > MOST else "hides many"
    steps = ", ".join(
        f"from {share(before)} to {share(after)} ({way})"
        for way, before, after in zip(WAYS, whole, cut, strict=True)
    )
    return f"""**The crowd {words} authors from an engine that can link their queries and knows who is whose
friend.** Given {SHOWN} queries of one author, it names her in {share(cut[0])} of the cases if queries may go
back and in {share(cut[1])} if not; without the network in {alone[0]} and {alone[1]}. Cutting the vectors (θ)
changes this {steps}: it is meant for an engine that looks for the middle of a group, and does not lead one
astray that takes the likeliest author. [More](#our-attack-the-search-engine)."""


def measure_found(results: Results) -> str:
    """Say whether PEL tells of it."""
    pel = [results.value("cut", spelled(BEST), reading, "exposed", "honest", "60") for reading in READINGS]
    named = [strongest(results, CUT, SHOWN, reading) for reading in READINGS]
    blind = all(
        one is not None and two is not None and one / 100 < two / 2
        for one, two in zip(pel, named, strict=True)
    )
    title = (
        "PEL, the thesis's measure, does not see this" if blind else "PEL, the thesis's measure, beside this"
    )
    return f"""**{title}.** By PEL {number(pel[0])} % ({BACK}) and {number(pel[1])} % ({NO_BACK}) of the users
are exposed with {SHOWN} synthetic queries each, where the engine names {share(named[0])} and
{share(named[1])} of the authors. PEL compares what somebody asks with what *she* submits. What others submit
for her, and that they are her friends, is not in it."""


def readings_found(results: Results) -> str:
    """Say which reading fits what."""
    counts = {way: counted(results, way) for way in WAYS}
    told = "; ".join(
        f"*{way}*: {one['holds']} hold, {one['in part']} in part, {one['**does not hold**']} do not"
        for way, one in counts.items()
    )
    later = "".join(
        f" {one['not measured yet']} wait for measurements ({way})."
        for way, one in counts.items()
        if one["not measured yet"]
    )
    every = any(one["holds"] == sum(one.values()) for one in counts.values())
    most = max(one["holds"] for one in counts.values())
    best = " and ".join(f"*{way}*" for way, one in counts.items() if one["holds"] >= most - TALLY_NOISE)
    title = (
        "All of the thesis's numbers come out in one reading"
        if every
        else "No reading gives all of the thesis's numbers"
    )
    fits = "; ".join(f"{way} {(claim := usable(results, way)[0]).here}, {holds(claim)}" for way in WAYS)
    return f"""**{title}.** Of its statements, {told}.{later} Most hold with {best}, a difference of up to
{TALLY_NOISE} aside, which chance makes too. But both exponents were chosen by looking at the
hops, {EXPONENT} for *{BACK}* and {FLAT_EXPONENT} for *{FLAT}*: [that these fit proves
nothing](#what-was-chosen-after-looking). The thesis's {HOPS} hops: {fits}. {equality(results)}"""


def friends_found(results: Results) -> str:
    """Say what friends learn."""
    least, most = COLLUDING[0], COLLUDING[-1]
    one = shares(results, "colluding", least, "predecessor", "success", "success")
    seen, named = (
        shares(results, "colluding", most, "predecessor", *path)
        for path in (("seen",), ("of_all", "success"))
    )
    return f"""**A friend who takes the one that hands her a query for its author is right in {one[0]}
({BACK}) and {one[1]} ({NO_BACK}) of the cases** ({100 * least:g} % of the members collude, so that hardly
any two meet; ten members of one network, so a rough figure). If {100 * most:g} % collude, they see {seen[0]}
and {seen[1]} of all others' queries and name the authors of {named[0]} and {named[1]} of all.
Somebody's only friend knows all: whatever comes from there and was not handed there by herself is hers."""


def heavy_found(results: Results) -> str:
    """Say who loses most."""
    heavy, rest = (
        [results.value("selfish", 0.0, reading, "own", who) for reading in READINGS]
        for who in ("heaviest tenth", "others")
    )
    more = all(
        one is not None and two is not None and one > two for one, two in zip(heavy, rest, strict=True)
    )
    title = "Whoever searches much runs out of trust" if more else "Those who search much, beside others"
    real, synthetic, free = (
        both(results, part, at, "exposed", "honest", "60", digits=1)
        for part, at in (("selfish", 0.0), ("cut", spelled(BEST)), ("no trust", 0))
    )
    return f"""**{title}.** Of the tenth that searches most, each submits {share(heavy[0])} ({BACK}) and
{share(heavy[1])} ({NO_BACK}) of her own queries herself, others {share(rest[0])} and {share(rest[1])}.
Histories, in which some search far more than others, expose {real[0]} and {real[1]} % of the users by PEL,
equally many queries each {synthetic[0]} and {synthetic[1]} % (thesis: {sum(EXPOSED["60"]) / 10:.1f} % with
histories). With ζ = 0, where trust is never lost, histories expose {free[0]} and {free[1]} %."""


def equality(results: Results) -> str:
    """Say in which readings an author and her friends submit equally much."""
    known = {
        reading: [
            results.value("equal", spelled(NOTHING), reading, "equal", who) for who in ("author", "friends")
        ]
        for reading in READINGS
    }
    if None in (value for side in known.values() for value in side):
        return "Shares are not measured in both readings yet."
    equal = [
        f"*{reading}*" for reading, side in known.items() if max(abs((one or 0) - 1) for one in side) <= EVEN
    ]
    if not equal:
        return "A user and her friends submit equally many of her queries in no reading."
    only = " only" if len(equal) < len(known) else ""
    return f"""A user and her friends submit equally many of her queries, which is what the thesis
wants,{only} with {" and ".join(equal)}."""


def readings(results: Results) -> str:
    """Explain the two readings, with the shares that each gives."""
    rows = [
        [who, *both(results, "equal", spelled(NOTHING), "equal", who)]
        for who in ("author", "friends", "their friends")
    ]
    far = [
        results.value("equal", spelled(NOTHING), reading, "equal", "their friends") for reading in READINGS
    ]
    less = all(one is not None and one < 1 - EVEN for one in far)
    beyond = (
        " Their friends submit less in both: the next step divides by their number again." if less else ""
    )
    return f"""## Two readings

An author with k friends, who have H₁ … Hₖ friends, hands a query to friend j with probability
Hⱼ/(ΣH + 1). The friend lets herself or one of her friends go on, "equiprobable", 1/(k + 1) each. Is the
friend whom the query came from among these? *Back*: yes, which is what k + 1 says. *No back*: no; then friend
j submits Hⱼ/(ΣH + 1) · 1/Hⱼ, which is exactly the author's own share 1/(ΣH + 1). The thesis wants equal
shares for the author, her friends and their friends. In multiples of 1/(ΣH + 1), without cuts and trust
(θ = 0, ζ = 0; mean over authors):

{table(["submitted by each", *READINGS], rows)}

{equality(results)} (Up to {100 * EVEN:.0f} %: a query that comes round in a circle adds a little.){beyond}"""


def engine(results: Results) -> str:
    """Show what the engine learns, by what it knows."""
    rows = []
    for interval in (NOTHING, BEST):
        for words, (path, _, _) in ENGINES.items():
            for way in WAYS:
                found = results.over(f"linked {spelled(interval)}", LINKED, way, *path)
                cells = [share(found.get(each)) for each in LINKED]
                rows.append([f"{spelled(interval)} %, {way}: {words}", *cells])
    single = shares(results, CUT, SHOWN, "engine", "single", "success")
    return f"""## Our attack: the search engine

It knows which queries are one author's, for example because they are equal: the thesis's worst case, which
its own tests make. *Knows nothing else*: whoever submitted most of them is the author. *Knows the network*:
of those who submitted most, and their friends, the one under whom what was seen is likeliest; it reckons as
if nothing were cut out and queries could go back (`engine` in `crowd simulate --json`). *Knows network and
rules*: the same with the rules as they are, over {VECTORS:,} vectors drawn as members draw them; in small
networks only, here up to {MOST_EXACT} queries. No engine reckons with single refusals, so a better one may
exist. Authors named, by linked queries of each ({ATTACKED_TESTS} networks of 1,000 with {TARGETS} authors
each, one network for the last engine: 95 % intervals are within ± 2.6 and ± 4.4 points):

{table(["θ, reading: engine", *(f"{each:,}" for each in LINKED)], rows)}

A single query, without links, is its submitter's own in {single[0]} ({BACK}) and {single[1]} ({NO_BACK}).

{renewed(results)}"""


def renewed(results: Results) -> str:
    """Say what vectors help that are made anew."""
    anew = [[results.value("renew", at, reading, *NETWORK) for reading in READINGS] for at in RENEWALS]
    never = [results.value(CUT, SHOWN, reading, *NETWORK) for reading in READINGS]
    pairs = [(one, two) for line in anew for one, two in zip(line, never, strict=True)]
    better = all(one is not None and two is not None and one > two for one, two in pairs)
    words = (
        "The cuts average out, and the engine does better" if better else "Here is what the engine finds then"
    )
    rows = [[str(at), *map(share, line)] for at, line in zip(RENEWALS, anew, strict=True)]
    return f"""The thesis lets vectors be made anew as often as one likes. {words} (*knows the network*,
{SHOWN} linked queries):

{table(["made anew after", *READINGS], [*rows, ["never", *map(share, never)]])}"""


def friends(results: Results) -> str:
    """Show what members learn."""
    rows = [
        [f"{100 * at:g} %", *(
            cell
            for path in (("seen",), ("success", "success"), ("of_all", "success"))
            for cell in shares(results, "colluding", at, "predecessor", *path)
        )]
        for at in COLLUDING
    ]  # fmt: skip
    head = [f"{what}, {r}" for what in ("seen", "named, of those", "named, of all") for r in READINGS]
    ends = [
        [
            f"{many}",
            *shares(results, "colluding", COLLUDING[1], "predecessor", "by_friends", str(many), "success"),
        ]
        for many in (1, 2, 3, 5, 10)
    ]
    return f"""## Our attack: colluding friends

Members who collude take whoever hands a query to the first of them for its author (`predecessor`). 10,000
users, {SHOWN} queries each, θ = {spelled(BEST)} %.

{table(["collude", *head], rows)}

Of the queries that they see, by the number of friends that the author has ({100 * COLLUDING[1]:g} % collude):

{table(["friends", *READINGS], ends)}"""


def lonely(results: Results, way: str) -> str:
    """Say how many of the exposed users of a log have one friend."""
    found = results.friends("selfish", 0.0, way, "exposed", "by_friends", "*", "60")
    return share(found[1] / sum(found.values())) if found else "–"


def choices(results: Results) -> str:
    """Show what was left open by the thesis, and what fits."""
    powers = []
    for at in EXPONENTS:
        cells = both(results, "exponent", at, "hops")
        for part in ("exponent", "exponent, histories"):
            cells += both(results, part, at, "exposed", "honest", "60", digits=1)
        powers.append([f"{at:g}", *cells])
    off = {
        (at, reading): abs(value - HOPS)
        for reading in READINGS
        for at, value in results.over("exponent", EXPONENTS, reading, "hops").items()
    }
    best = min(off, key=lambda at: off[at], default=None)
    fits = "–" if best is None else f"{best[0]:g}, {best[1]}"
    shapes = [f"{what}, {r}" for what in ("hops", "exposed, synthetic, %", "histories, %") for r in READINGS]
    copies = []
    for at in (COPIES[0], MOST_COPIES, COPIES[1]):
        where: tuple[str, Any] = ("cut", spelled(BEST)) if at == MOST_COPIES else ("copies", at)
        cells = [
            *both(results, *where, "hops"),
            *both(results, *where, "position", "10", "average"),
            *both(results, *where, "position", "10", "deviation"),
            *both(results, *where, "exposed", "honest", "60", digits=1),
        ]
        copies.append([str(at), *cells])
    head = [f"{what}, {r}" for what in ("hops", "position", "deviation", "exposed, %") for r in READINGS]
    return f"""## What the thesis leaves open

**The exponent** of the power law of friends, 1 to 10 of them. Nearest to the thesis's {HOPS} hops: {fits}.
Of those whom its Table 4.2 calls exposed, {share(EXPOSED["60"][0] / sum(EXPOSED["60"]))} have one
friend; here {lonely(results, NO_BACK)} with exponent {EXPONENT}, and {lonely(results, FLAT)} with
{FLAT_EXPONENT} ({NO_BACK}).

{table(["exponent", *shapes], powers)}

**How often the vector is repeated** before the cut: up to so many times. Positions are those of users with
ten friends (thesis: {AVERAGES[-1]}, deviation {DEVIATIONS[-1]}).

{table(["copies", *head], copies)}"""


def sizes(results: Results) -> str:
    """Show whether the size of the crowd matters."""
    rows = []
    for users in SIZES:
        cells = both(results, "size, few", users, "hops")
        for part in ("size, few", "size"):
            cells += shares(results, part, users, *NETWORK)
        rows.append([f"{users:,}", *cells])
    found = [
        list(results.over(part, SIZES, reading, *NETWORK).values())
        for part in ("size, few", "size")
        for reading in READINGS
    ]
    widest = max((max(line) - min(line) for line in found if line), default=None)
    words = "Not measured yet."
    if widest is not None:
        title = "A larger crowd hides nobody better" if widest < TENTH else "The size of the crowd matters"
        words = f"**{title}**: what the engine finds differs by at most {100 * widest:.1f} points."
    head = [f"named of {each}, {reading}" for each in (3, SHOWN) for reading in READINGS]
    return f"""## Sizes

Authors named by the engine that knows the network, with 3 and with {SHOWN} queries each. {words}

{table(["users", *(f"hops, {reading}" for reading in READINGS), *head], rows)}

{compared(results, sized, READINGS)}"""


def ours(results: Results) -> str:
    """Say what is ours, not the thesis's."""
    return f"""## What is ours

**The attacks** of the engine and of colluding friends, the second reading (*no back*), the shares of *Two
readings*, copies, exponents, *equals after*, and who runs out of trust. The thesis has PEL and positions
only.

**The log** of Tables 4.2 and 4.3 and of Figures 4.2 and 4.3 (histories): made up, where the thesis has 1,000
AOL users. How unequally people search decides who runs out of trust, and ours may differ from those.

**Networks**: everybody draws her number of friends by a power law with exponent {EXPONENT}, 1 to 10, and
friendships are joined by chance; the thesis does not give its exponent (*{FLAT}*: {FLAT_EXPONENT}). Vectors
are repeated up to 3 times, and made once. A selfish user submits her own query only if all friends refuse
it. Trust stays within 0 and 1.

**Figures 4.2 and 4.3** have no numbers in the thesis's text: only its words can be set beside ours. Its
Figure 4.3 counts queries; ours is their share.

**Fewer repetitions**: {TESTS} networks instead of 1,000 for Table 4.1, {FEWER_TESTS} instead of 100 for the
others. Averages of {TESTS} networks are of about 550 users with ten friends: one standard error of an average
position is about 0.13.

### What was chosen after looking

**The exponents.** {EXPONENT} was taken because *{BACK}* then has about the thesis's hops. *No back* missed
them, so we tried others ({", ".join(f"{one:g}" for one in EXPONENTS)}; 0 in a trial that is not kept) and
took {FLAT_EXPONENT} for *{FLAT}*. Hops and response time are therefore no test of either. Both are in
the tally all the same. Positions and exposed users were in sight too when {FLAT_EXPONENT} was chosen.

**How equals count.** *Equals after* was added when *half before*, which the simulator has, did not give the
thesis's variances. Three statements of Table 4.1 are thus counted twice in the tally, once for each rule.

**Run twice.** The simulator was changed after a first run: small networks now take one query after the
other, and draw otherwise. So all lines below 100,000 users were measured again, and the first are not kept.
The first tallies of statements that hold, hold in part and do not were 7, 10, 10 (*{BACK}*), 12, 5, 10
(*{NO_BACK}*) and 16, 4, 7 (*{FLAT}*): two more or less say nothing. What the engines found, and what a single
friend finds, differed by less than three points (at {SHOWN} queries).

**The engines.** The one that *knows network and rules* was written when the simulator's own did worse with
*no back* than with *back*: its rules were wrong there. Where the text gives one number for an engine that
knows the network, it is the better of the two, which favours the engine a little: they were tried on
different numbers of networks.

**Verdicts are computed.** A number of the thesis is met if both differ by at most a quarter of the larger.
*In part* says for how many of the numbers a statement holds."""


def again(results: Results) -> str:
    """Say how to run it again."""
    machine = results.machine
    return f"""## How to run it again

```sh
.venv/bin/python -m benchmarks.paper_003_crowd
```

It took {results.seconds / 60:.0f} minutes on {machine["cores"]} cores ({machine["processor"]}, shared with
other work). It carries on where it was stopped; `--quick` takes few networks and settings, `--only-draw`
measures nothing. Results: `benchmarks/results/paper-003-crowd.jsonl`. Seeds are fixed."""
