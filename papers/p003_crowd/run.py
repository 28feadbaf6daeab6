"""Reproduces chapter 4 of paper 003: friends who submit each other's queries, and who learns what of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

import querycloak as qc
from papers.common import study
from papers.common.results import Line
from querycloak.clients.crowd import attackers, metrics, network, simulator
from querycloak.clients.crowd.simulator import Behaviour, Trace
from querycloak.dictionary import distinct

Longs = npt.NDArray[np.int64]
USERS, EACH = 1000, 100
#: How often everything is repeated in networks of 1,000, each time with another one.
TESTS, FEWER_TESTS, ATTACKED_TESTS = 40, 20, 3
#: The two readings of the forward function: may a query go back to the friend it came from?
READINGS = {"back": True, "no back": False}
#: The exponent of the power law of friends, and a smaller one, with which *no back* has the thesis's hops.
EXPONENT, FLAT_EXPONENT = 1.5, 0.75
FLAT = f"no back, {FLAT_EXPONENT}"
NOTHING, BEST = (0.0, 0.0), (0.6, 0.8)
#: The intervals of Table 4.1, in its order.
CUTS = (NOTHING, (0.4, 0.8), (0.4, 0.6), (0.2, 0.8), BEST, (0.2, 0.4), (0.1, 0.3), (0.2, 0.3), (0.1, 0.2))
PENALTIES = (0.0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.10)
SELFISH = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
COPIES, EXPONENTS = (1, 10), (0.5, FLAT_EXPONENT, 1.0, EXPONENT, 2.0, 2.5)
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LINKED = (1, 3, 10, 30, 100, 1000)
#: More linked queries are not given to the exact engine: its sample of vectors is too coarse for them.
MOST_EXACT = 100
RENEWALS, COLLUDING = (1, 10), (0.001, 0.01, 0.05, 0.1)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One setting to simulate, in one or several networks."""

    part: str
    at: Any
    reading: str
    users: int = USERS
    each: int | None = EACH  # None: the histories of the synthetic log
    exponent: float = EXPONENT
    tests: int = 1
    attack: bool = False
    exact: bool = False
    behaviour: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the line."""
        return f"{self.part} {self.at} {self.reading}"


def cut(interval: tuple[float, float]) -> dict[str, float]:
    """Return the settings of an interval."""
    return {"least_cut": interval[0], "most_cut": interval[1]}


def spelled(interval: tuple[float, float]) -> str:
    """Return an interval in percent."""
    return f"{100 * interval[0]:.0f}-{100 * interval[1]:.0f}"


def plans(quick: bool) -> Iterator[Plan]:
    """Yield what to simulate, in both readings; in the flatter network what the tables need."""
    for reading, back in READINGS.items():
        for plan in (*_tables(quick), *_networks(quick), *_attacked(quick)):
            yield Plan(**(plan | {"reading": reading, "behaviour": {"back": back} | plan["behaviour"]}))
    for plan in (*_tables(quick), *_linked(quick, (10, 100))):
        flat = {"reading": FLAT, "exponent": FLAT_EXPONENT, "behaviour": {"back": False} | plan["behaviour"]}
        yield Plan(**(plan | flat))


def _tables(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield what the thesis's tables and figures need."""
    many, fewer = (2, 2) if quick else (TESTS, FEWER_TESTS)
    for interval in CUTS[::4] if quick else CUTS:
        yield {"part": "cut", "at": spelled(interval), "tests": many, "behaviour": cut(interval)}
    for copies in COPIES[:1] if quick else COPIES:
        yield {"part": "copies", "at": copies, "tests": many, "behaviour": {"copies": copies}}
    for penalty in PENALTIES[::3] if quick else PENALTIES:
        yield {"part": "penalty", "at": penalty, "tests": fewer,
               "behaviour": {"penalty": penalty, "selfish": 0.1}}  # fmt: skip
    for share in SELFISH[:3] if quick else SELFISH:
        yield {"part": "selfish", "at": share, "tests": fewer, "each": None, "behaviour": {"selfish": share}}
    yield {"part": "hops", "at": 1000, "users": 1000 if quick else 10_000, "each": 1000, "behaviour": {}}
    yield {"part": "no trust", "at": 0, "tests": fewer, "each": None, "behaviour": {"penalty": 0.0}}
    plain = cut(NOTHING) | {"penalty": 0.0, "copies": 1}
    yield {
        "part": "equal",
        "at": spelled(NOTHING),
        "tests": 1 if quick else 3,
        "each": 1000,
        "behaviour": plain,
    }


def _networks(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield networks of other shapes and sizes."""
    for exponent in EXPONENTS[1:2] if quick else EXPONENTS:
        shape = {"at": exponent, "exponent": exponent, "behaviour": {}}
        yield shape | {"part": "exponent", "users": 1000 if quick else 10_000}
        yield shape | {"part": "exponent, histories", "each": None, "tests": 1 if quick else FEWER_TESTS}
    for users in SIZES[:1] if quick else SIZES:
        yield {"part": "size, few", "at": users, "users": users, "each": 3, "attack": True, "behaviour": {}}
        if users <= 100_000:
            yield {"part": "size", "at": users, "users": users, "attack": True, "behaviour": {}}


def _linked(quick: bool, ats: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield what the search engine is tried on, by how many queries of an author it links."""
    tests = 1 if quick else ATTACKED_TESTS
    for each in (each for each in ats if each <= 10 or not quick):
        for interval in (NOTHING, BEST):
            yield {"part": f"linked {spelled(interval)}", "at": each, "each": each, "tests": tests,
                   "attack": True, "exact": each <= MOST_EXACT, "behaviour": cut(interval)}  # fmt: skip


def _attacked(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield what the search engine and those who collude are tried on."""
    yield from _linked(quick, LINKED)
    tests = 1 if quick else ATTACKED_TESTS
    for renew in RENEWALS[:1] if quick else RENEWALS:
        yield {"part": "renew", "at": renew, "tests": tests, "attack": True, "behaviour": {"renew": renew}}
    for share in COLLUDING[1:2] if quick else COLLUDING:
        yield {"part": "colluding", "at": share, "users": 1000 if quick else 10_000,
               "behaviour": {"colluding": share}}  # fmt: skip


def histories(users: int, seed: int) -> tuple[npt.NDArray[np.int32], Longs]:
    """Return the author and the text of each query of a synthetic log, in order of time."""
    frame = qc.generate(users=users, seed=seed).frame.sort("time", maintain_order=True)
    return distinct(frame["user"])[1].astype(np.int32), distinct(frame["query"])[1].astype(np.int64)


def tested(plan: Plan, test: int, real: tuple[Any, Any]) -> dict[str, Any]:
    """Simulate a plan in one network, and measure all of it."""
    net = network.power_law(plan.users, test, plan.exponent)
    author, query = real
    if plan.each is not None:
        author, query = simulator.authors(net.users, net.users * plan.each, test), None
    trace = simulator.simulate(net, author, Behaviour(**plan.behaviour), test)
    found = metrics.summary(trace, query) | {"first": first_of_equals(trace), "own": own_shares(trace)}
    if plan.part == "equal":
        found["equal"] = equal_shares(trace)
    if plan.attack:
        found["engine"] = attackers.engine(trace, test)
    if plan.exact and not test:  # it takes long: in one network
        targets = attackers.targets(trace, test)
        observed = list(attackers.observations(trace, targets))
        found["exact"] = attackers.informed_engine(trace, observed, test)
    if trace.behaviour.colluding:
        found["predecessor"] = attackers.predecessor(trace)
    return found


def first_of_equals(trace: Trace) -> dict[str, Any]:
    """Return positions by friends, as the simulator does, but with everybody before all of their equals."""
    friends = trace.network.friends
    person = np.repeat(np.arange(friends.size), friends)
    place = np.bincount(person, trace.friends["submitted"] < trace.users["own"][:-1][person], friends.size)
    return {
        str(many): {
            "average": float(place[who].mean()),
            "deviation": float(place[who].std()),
            "people": int(who.sum()),
        }
        for many in range(1, 11)
        if (who := (friends == many) & ~trace.selfish).any()
    }


def own_shares(trace: Trace) -> dict[str, Any]:
    """Return the share of their own queries that users submit: selfish users, heavy searchers."""
    sent = np.bincount(trace.author, minlength=trace.network.users)
    share = trace.users["own"][:-1] / np.maximum(sent, 1)
    friends, honest = trace.network.friends, ~trace.selfish & (sent > 0)
    by_friends = {
        str(many): float(share[who].mean())
        for many in range(1, 11)
        if (who := trace.selfish & (sent > 0) & (friends == many)).any()
    }
    heavy = honest & (sent > np.quantile(sent[honest], 0.9))
    sides = {"heaviest tenth": heavy, "others": honest & ~heavy}
    return {
        "selfish": by_friends,
        **{name: float(share[who].mean()) for name, who in sides.items() if who.any()},
    }


def equal_shares(trace: Trace) -> dict[str, float]:
    """Compare what each submits of an author's with 1/(ΣH + 1), which Ps aims at for all near the author.

    1 is that share: of the author, of the author's friends, and of their friends.
    """
    net, users = trace.network, trace.network.users
    friends = [set(net.friend[net.start[u] : net.start[u + 1]].tolist()) for u in range(users)]
    told = np.zeros((users, users))
    np.add.at(told, (trace.author, trace.outcomes["submitter"]), 1)
    told *= np.array([1 + sum(len(friends[v]) for v in friends[u]) for u in range(users)])[:, None]
    told /= np.bincount(trace.author, minlength=users)[:, None]
    second = [set().union(*(friends[v] for v in friends[u])) - friends[u] - {u} for u in range(users)]
    return {
        "author": float(np.diag(told).mean()),
        "friends": fmean(float(told[u, list(near)].mean()) for u, near in enumerate(friends)),
        "their friends": fmean(float(told[u, list(near)].mean()) for u, near in enumerate(second) if near),
    }


def averaged(found: list[Any]) -> Any:
    """Return the means over several networks, number by number; positions over all users."""
    if not isinstance(found[0], dict):
        known = [one for one in found if one is not None]
        return fmean(known) if known else None
    keys = dict.fromkeys(key for one in found for key in one)
    if "deviation" in keys:
        return pooled(found)
    return {key: averaged([one[key] for one in found if key in one]) for key in keys}


def pooled(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and deviation over the people of all networks."""
    people = sum(one["people"] for one in found)
    mean = sum(one["people"] * one["average"] for one in found) / people
    square = sum(one["people"] * (one["deviation"] ** 2 + one["average"] ** 2) for one in found) / people
    return {"average": mean, "deviation": max(square - mean**2, 0.0) ** 0.5, "people": people}


@dataclass
class Study(study.Study):
    """The simulated crowd in both readings of the thesis."""

    name = "p003_crowd"
    seed: int = 5

    @cached_property
    def real(self) -> tuple[npt.NDArray[np.int32], Longs]:
        """Authors and texts of the synthetic log."""
        return histories(USERS, self.seed)

    def identity(self) -> Line:
        """Return users, seed, and a digest of what the simulator draws in small and in large networks."""
        seen = hashlib.sha256()
        for users in (1000, 40_000):
            author = simulator.authors(users, 10_000, self.seed)
            net = network.power_law(users, self.seed)
            for back in READINGS.values():
                seen.update(
                    simulator.simulate(net, author, Behaviour(back=back), self.seed).outcomes.tobytes()
                )
        return {"users": USERS, "seed": self.seed, "drawn": seen.hexdigest()[:16]}

    def about(self) -> Line:
        """Count the records of the log."""
        return {"rows": len(self.real[0])}

    def plans(self) -> Iterator[Plan]:
        """Yield what to simulate."""
        return plans(self.quick)

    def measure(self, plan: Plan) -> Line:
        """Simulate a plan in all its networks."""
        busy = time.process_time()
        found = averaged([tested(plan, test, self.real) for test in range(plan.tests)])
        for speed in ("seconds", "queries_per_second"):  # the machine did other work too
            found.pop(speed)
        return asdict(plan) | {"cpu_seconds": round(time.process_time() - busy, 2)} | found
