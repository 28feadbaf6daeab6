"""The share that an attacker with given knowledge links: one answer, and attackers nest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks.finding import ATTACKERS, Finding, Linkage, linkage
from querycloak.knowledge import Game, Knowledge
from querycloak.protector import Labels

KINDS = [Knowledge.RELEASE, *Knowledge.EVERYTHING]


def finding(name="a", success=0.1, low=0.05, high=0.2, knowledge=Knowledge.RELEASE, **more):
    values = {"game": "attribution", "unit": "record", "labels": Labels.GROUP} | more
    return Finding(name, success=success, low=low, high=high, knowledge=knowledge, **values)


shares = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)
findings = st.builds(
    lambda name, share, knowledge, game, labels: finding(
        name, share[1], share[0], share[2], knowledge, game=game, labels=labels
    ),
    st.sampled_from("abcdef"),
    shares,
    st.lists(st.sampled_from(KINDS), max_size=4).map(
        lambda some: Knowledge.RELEASE if not some else some[0] | some[-1]
    ),
    st.sampled_from(list(Game)),
    st.sampled_from(list(Labels)),
)


@given(st.lists(findings, max_size=8), st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_more_knowledge_never_gives_a_smaller_share(found, some, more):
    less, all_of_it = linkage(found, some), linkage(found, some | more)
    if less is None:
        return
    assert all_of_it is not None
    for name in ("success", "low", "high"):
        assert getattr(all_of_it, name) >= getattr(less, name)


@given(st.lists(findings, max_size=8))
def test_every_attacker_links_at_least_what_the_release_shows(found):
    release = linkage(found, ATTACKERS["release"])
    for knows in ATTACKERS.values():
        here = linkage(found, knows)
        assert (here.high if here else -1) >= (release.high if release else -1)
    strongest = linkage(found, ATTACKERS["any"])
    counted = [one.high for one in found if one.links]
    assert (strongest.high if strongest else None) == (max(counted) if counted else None)


def test_figures_are_maxima_and_the_attack_with_the_largest_upper_end_is_named():
    narrow, wide = finding("narrow", 0.105, 0.10, 0.11), finding("wide", 0.12, 0.09, 0.16)
    small = finding("small", 0.2, 0.19, 0.21, Knowledge.VOLUMES, unit="user")
    assert linkage([narrow, wide], Knowledge.RELEASE) == Linkage("wide", 0.12, 0.10, 0.16)
    sure = finding("sure", 0.13, 0.125, 0.14)
    assert linkage([sure, wide], Knowledge.RELEASE) == Linkage("wide", 0.13, 0.125, 0.16)
    assert linkage([narrow, small], Knowledge.VOLUMES) == Linkage("small", 0.2, 0.19, 0.21)


def test_an_attack_counts_only_for_attackers_who_know_all_that_it_needs():
    both = finding(knowledge=Knowledge.VOLUMES | Knowledge.TEXTS)
    assert linkage([both], Knowledge.VOLUMES) is None
    assert linkage([both], Knowledge.SEARCHES) is None
    assert linkage([both], Knowledge.VOLUMES | Knowledge.SEARCHES) is not None
    hours = finding(knowledge=Knowledge.HOURS)
    assert linkage([hours], ATTACKERS["searches"]) is not None
    assert linkage([hours], ATTACKERS["volumes"]) is None


@pytest.mark.parametrize(
    ("game", "labels", "counts"),
    [
        ("attribution", Labels.OTHERS, True),
        ("attribution", Labels.GROUP, True),
        ("attribution", Labels.OWN, False),
        ("attribution", Labels.PARTS, False),
        ("identification", Labels.OWN, True),
        ("identification", Labels.PARTS, True),
        ("linkage", Labels.GROUP, False),
        ("inference", Labels.GROUP, False),
        ("control", Labels.GROUP, False),
    ],
)
def test_what_counts_as_linked(game, labels, counts):
    assert (linkage([finding(game=game, labels=labels)], Knowledge.EVERYTHING) is not None) is counts


def test_what_did_not_apply_does_not_count():
    none = Finding("a", "attribution", "record", not_applicable="why", labels=Labels.GROUP)
    assert linkage([none], Knowledge.EVERYTHING) is None
    assert linkage([], Knowledge.EVERYTHING) is None


def test_the_json_form_has_no_internal_field():
    assert not {"knowledge", "labels"} & finding().as_dict().keys()
