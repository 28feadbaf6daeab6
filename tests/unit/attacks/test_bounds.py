"""Bounds come from traits: a plug-in method that states one is held to it, by attackers who know no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from querycloak import settings as declared
from querycloak.attacks import run
from querycloak.attacks.base import AttackerView
from querycloak.knowledge import Game, Knowledge
from querycloak.protector import AttackBound, Labels, Protector, Traits
from querycloak.registry import METHODS
from querycloak.settings import setting

#: Twelve users, in groups of three.
USERS = [f"u{n}" for n in range(12)]


class Toy(Protector):
    """States bounds that its releases may or may not keep."""

    name = "toy-groups"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of the toy."""

        k: int = setting(3, kind=int, at_least=1, help="members of a group")

    @classmethod
    def traits(cls, settings):
        """Return the stated bounds."""
        return Traits(
            labels=Labels.GROUP,
            bounds=(
                AttackBound(Game.ATTRIBUTION, 1 / settings.k, Knowledge.VOLUMES),
                AttackBound(Game.IDENTIFICATION, 1 / settings.k, Knowledge.TEXTS, known_terms=2),
            ),
        )

    promise = push = close = snapshot = restore = None


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(METHODS, "added", {})
    METHODS.add(Toy.name, Toy)


def case(kept: bool):
    """A release whose labels are the authors' own (the bound is broken), or drawn from the group."""
    rows = [(user, f"q{n} {user}") for n in range(30) for user in USERS]
    authors = [user for user, _ in rows]
    draws = np.random.default_rng(1)
    labels = [USERS[int(user[1:]) // 3 * 3 + draws.integers(3)] for user in authors] if kept else authors
    release = pl.DataFrame({"row": range(len(rows)), "user": labels, "query": [query for _, query in rows]})
    original = pl.DataFrame({"row": range(len(rows)), "user": authors, "query": [query for _, query in rows]})
    numbers = {"released_row": range(len(rows)), "original_row": range(len(rows))}
    truth = pl.DataFrame(numbers | {"original_user": authors, "released_after": 0})
    return release, {"methods": [{"method": "toy-groups", "settings": {"k": 3}}]}, original, truth


@pytest.mark.parametrize("kept", [True, False])
def test_a_plug_in_is_held_to_its_bound_by_link_repeat(toy, kept):
    (finding,) = run.attack(*case(kept), ["link-repeat"])
    assert finding.bound == pytest.approx(1 / 3)
    assert finding.details["bound_from"] == "promised by toy-groups"
    assert finding.holds is kept


class ByAnotherName(Toy):
    """The same, with a setting that is not called `k`."""

    name = "toy-tables"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of the toy."""

        places: int = setting(3, kind=int, at_least=1, help="members of a group")

    @classmethod
    def traits(cls, settings):
        """Return the stated bound."""
        return Traits(labels=Labels.GROUP, bounds=(AttackBound(Game.ATTRIBUTION, 1 / settings.places),))


@pytest.mark.parametrize("kept", [True, False])
def test_an_attacker_takes_the_size_of_groups_from_the_bound(toy, kept):
    METHODS.add(ByAnotherName.name, ByAnotherName)
    release, _, original, truth = case(kept)
    certificate = {"methods": [{"method": "toy-tables", "settings": {"places": 3}}]}
    (finding,) = run.attack(release, certificate, original, truth, ["link-repeat"])
    assert finding.holds is kept


def test_a_bound_that_no_attack_could_test_is_named(toy):
    release, certificate, original, truth = case(kept=True)
    assert run.attack(release, certificate, original, truth, ["link-repeat"]).untested == []
    without = run.attack(release.drop("query"), certificate, original, truth, ["link-repeat", "link-pairs"])
    assert without.untested == ["toy-groups (attribution)"]
    # An attack that knows more than the bound assumes tests nothing.
    knowing = run.attack(release, certificate, original, truth, ["link-overlap", "link-repeat"])
    assert knowing.untested == ["toy-groups (identification)"]
    # No attack of this game was asked for.
    assert run.attack(release, certificate, original, truth, ["link-pairs"]).untested == []


def test_a_bound_covers_attackers_who_know_no_more_than_it_names(toy):
    names = ["link-repeat", "link-volume", "link-overlap"]
    bounds = {one.attack: one.bound for one in run.attack(*case(kept=True), names)}
    third = pytest.approx(1 / 3)
    assert bounds == {"link-repeat": third, "link-volume": third, "link-overlap": None}
    for known, queries, covered in (("terms", 2, True), ("terms", 3, False), ("queries", 1, False)):
        chosen = {"known": known, "queries": str(queries)}
        (finding,) = run.attack(*case(kept=True), ["link-background"], chosen)
        assert (finding.bound is not None) is covered


def test_a_bound_without_a_number_of_terms_covers_any_number():
    every = AttackBound(Game.IDENTIFICATION, 0.1, Knowledge.HISTORIES)
    assert every.covers(Game.IDENTIFICATION, Knowledge.SEARCHES, float("inf"))
    assert not every.covers(Game.ATTRIBUTION, Knowledge.RELEASE)
    assert not every.covers(Game.IDENTIFICATION, Knowledge.OTHERS)
    two = AttackBound(Game.IDENTIFICATION, 0.1, Knowledge.TEXTS, known_terms=2)
    assert two.covers(Game.IDENTIFICATION, Knowledge.TEXTS, 2)
    assert two.covers(Game.IDENTIFICATION, Knowledge.RELEASE)
    assert not two.covers(Game.IDENTIFICATION, Knowledge.TEXTS, 3)


def test_a_method_that_exchanges_labels_voids_earlier_bounds(toy):
    certificate = {
        "methods": [
            {"method": "toy-groups", "settings": {"k": 3}},
            {"method": "short-sessions", "settings": {}},
        ]
    }
    view = AttackerView(pl.DataFrame(), certificate)
    assert view.bound(Game.ATTRIBUTION) is None
    assert view.bound(Game.IDENTIFICATION) is None
