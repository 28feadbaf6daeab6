"""A member answers every query of hers once, whatever her friends do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak import measures
from querycloak.clients.crowd.doings import Accept, Answer, Ask, Deliver, Refuse, Rejected, Return, Submit
from querycloak.clients.crowd.exposure import Exposure
from querycloak.clients.crowd.manners import Manners
from querycloak.clients.crowd.member import MOST_ASKS, MOST_FAULTS, MOST_OVERFLOWS, MOST_SILENCES, Member
from querycloak.errors import ParameterError
from tests.unit.clients.crowd.office import KEY, Office, answer_to

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)]
FOUND = Answer("text/plain", b"found")


def alone(friends=2, draws=(), kept=None, **manners):
    """One member, with connected friends who have one friend each; the last draw is repeated."""
    left, hops = list(draws), iter(range(10**6))
    member = Member(
        [f"f{n}" for n in range(friends)],
        Manners(**({"most_own": 1.0} | manners)),
        Exposure(KEY),
        lambda: left.pop(0) if len(left) > 1 else (left or [0.5])[0],
        lambda: f"{next(hops):032x}",
        kept,
    )
    for friend in range(1, friends + 1):
        member.joined(friend, 1)
    return member


def hop(number):
    return f"{number + 10**9:032x}"


def take(member, number=0, friend=1, now=0.0, text="oboe"):
    return member.asked(friend, hop(number), text, now)


@st.composite
def troubles(draw):
    """Searches, partings and meetings, in any order, with letters that get lost and engines that fail."""
    steps = st.one_of(
        st.tuples(st.just("search"), st.integers(0, 4)),
        st.tuples(st.just("part"), st.integers(0, len(RING) - 1)),
        st.tuples(st.just("meet"), st.integers(0, len(RING) - 1)),
        st.tuples(st.just("carry"), st.integers(0, 20)),
    )
    return draw(st.lists(steps, max_size=40)), draw(st.integers(0, 10**6))


@given(troubles(), st.sampled_from([0.0, 0.2]), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_every_query_ends_once_whatever_happens(story, lost, engine_fails, back):
    steps, seed = story
    office = Office(RING, seed, engine_fails, lost, back=back)
    for number, (what, where) in enumerate(steps):
        if what == "search":
            office.search(where, f"query {number}")
        elif what == "part":
            office.part(*RING[where])
        elif what == "meet":
            office.meet(*RING[where])
        else:
            for _ in range(min(where, len(office.letters))):
                office.carry(office.letters.pop(office._any_first()))
    office.settle(in_order=False)
    assert office.delivered == dict.fromkeys(office.searches, 1)
    assert not office.hops or max(office.hops.values()) == 1
    for member in office.members.values():
        counts = member.counts
        assert member.under_way == 0
        assert all(0 <= known.trust <= 1 and known.waiting == 0 for known in member.standing.values())
        assert counts["searched"] == counts["answered"] + counts["failed"]
        assert counts["taken"] == counts["brought back"] + counts["nobody waits"]
    if engine_fails == 0.0:
        assert not office.failed
        assert set(office.searches.values()) == {text for _, text in office.submitted}


def test_a_broken_engine_does_not_make_queries_multiply():
    office = Office(RING, seed=1, engine_fails=1.0)
    for number in range(100):
        office.search(number % 5, f"query {number}")
        office.settle()
    assert len(office.failed) == 100
    # every hop of a way back tries the engine once: about as many tries as hops, and one
    assert len(office.submitted) < 100 * 15
    trusts = [known.trust for member in office.members.values() for known in member.standing.values()]
    assert min(trusts) > 0.8  # nobody is blamed for the engine, but for the first few failures
    office.engine_fails = 0.0
    for number in range(100, 200):
        office.search(number % 5, f"query {number}")
        office.settle()
    assert len(office.failed) == 100


def test_the_same_network_without_trouble_loses_and_repeats_nothing():
    office = Office(RING, seed=2)
    for number in range(500):
        office.search(number % 5, f"query {number}")
    office.settle(in_order=False)
    assert not office.failed
    assert Counter(text for _, text in office.submitted) == {f"query {n}": 1 for n in range(500)}
    assert sum(member.counts["late"] + member.counts["forged"] for member in office.members.values()) == 0


def test_refused_by_all_she_submits_it_herself():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [first] = member.search("oboe", 0.0)
    [second] = member.refused(first.friend, first.hop, 0.1)
    assert {first.friend, second.friend} == {1, 2}
    assert first.hop != second.hop
    assert member.refused(second.friend, second.hop, 0.2) == [Submit(1, "oboe")]
    assert member.submitted(1, FOUND) == [Deliver(1, FOUND)]
    assert [known.trust for known in member.standing.values()] == [0.97, 0.97]


def test_a_friend_who_stays_silent_is_passed_over_and_trusted_less():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [first] = member.search("oboe", 0.0)
    assert member.due == member.manners.accept_within
    assert member.wake(member.due - 0.01) == []
    [second] = member.wake(member.due)
    assert second.friend != first.friend
    assert member.standing[first.friend].trust == 0.97
    member.accepted(second.friend, second.hop, 3.0)
    assert 3.0 + member.manners.answer_within / 2 <= member.due <= 3.0 + member.manners.answer_within
    assert member.returned(second.friend, second.hop, FOUND, 4.0) == [Deliver(1, FOUND)]
    assert member.accepted(first.friend, first.hop, 5.0) == []
    assert member.returned(first.friend, first.hop, FOUND, 5.0) == []
    assert (member.counts["late"], member.counts["forged"], member.counts["answered"]) == (2, 0, 1)


def test_a_friend_who_never_replies_is_taken_for_gone():
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    for number in range(MOST_SILENCES):
        assert not member.has_enough_of(1)
        member.search(f"query {number}", 100.0 * number)
        member.wake(100.0 * number + 50.0)
    assert member.has_enough_of(1)
    member.joined(1, 1)
    assert not member.has_enough_of(1)


def test_a_friend_who_takes_a_query_and_lets_it_drop_is_passed_over():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [first] = member.search("oboe", 0.0)
    member.accepted(first.friend, first.hop, 0.0)
    [then] = member.wake(member.due)
    assert isinstance(then, Ask) is (then != Submit(1, "oboe"))
    assert member.counts["silent"] == 1


@pytest.mark.parametrize("end", ["silence", "gone"])
def test_a_friend_who_takes_queries_and_brings_nothing_is_taken_for_gone(end):
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)

    def drop(number):
        now = 100.0 * number
        _, [asked] = member.search(f"query {number}", now)
        member.accepted(1, asked.hop, now)
        doings = member.wake(now + 50.0) if end == "silence" else member.returned(1, asked.hop, None, now)
        member.submitted(doings[-1].job, FOUND)

    for number in range(MOST_SILENCES - 1):
        drop(number)
    _, [refused] = member.search("refused", 900.0)  # to refuse in between changes nothing
    member.submitted(member.refused(1, refused.hop, 900.0)[0].job, FOUND)
    _, [answered] = member.search("answered", 900.0)
    member.accepted(1, answered.hop, 900.0)
    assert not member.has_enough_of(1)
    assert member.standing[1].silences == MOST_SILENCES - 1
    member.returned(1, answered.hop, FOUND, 900.0)
    for number in range(MOST_SILENCES):
        assert not member.has_enough_of(1)
        drop(10 + number)
    assert member.has_enough_of(1)


def test_nobody_is_taken_for_gone_because_the_engine_is():
    office = Office(RING, seed=6, engine_fails=1.0)
    for number in range(50):
        office.search(number % 5, f"query {number}")
    office.settle(in_order=False)
    assert sum(member.counts["gone"] for member in office.members.values()) > 20
    standings = [known for member in office.members.values() for known in member.standing.values()]
    assert {known.silences for known in standings} == {0}


def test_each_line_may_be_late_once():
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    member.wake(50.0)
    member.accepted(1, asked.hop, 51.0)
    member.returned(1, asked.hop, FOUND, 51.0)
    assert (member.counts["late"], member.counts["forged"]) == (2, 0)
    for number in range(MOST_FAULTS):
        assert not member.has_enough_of(1)
        if number % 2:
            member.accepted(1, asked.hop, 52.0)
        else:
            member.returned(1, asked.hop, FOUND, 52.0)
    assert member.has_enough_of(1)
    assert (member.counts["late"], member.counts["forged"]) == (2, MOST_FAULTS)


def test_who_has_taken_a_query_in_time_cannot_take_it_again_later():
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    member.accepted(1, asked.hop, 0.0)
    member.wake(50.0)
    member.accepted(1, asked.hop, 51.0)
    assert (member.counts["late"], member.counts["forged"]) == (0, 1)


def second_asked(own, draw, redraw):
    """Say who is asked after friend 1 has refused; friends 1 and 2 have many friends, the others one."""
    member = alone(friends=6, draws=[0.0, 0.0, 0.0, 0.1, draw], least_cut=0.0, most_cut=0.0, redraw=redraw)
    for friend in range(1, 7):
        member.joined(friend, 10 if friend <= 2 else 1)
    if not own:  # from friend 6, with draws for her trust and for who is next
        member._chance = iter([0.0, 0.2, draw]).__next__
        first = take(member, friend=6)[-1]
    else:
        first = member.search("oboe", 0.0)[1][-1]
    assert first.friend == 1
    then = member.refused(1, first.hop, 0.0)[0]
    return 0 if isinstance(then, Submit) else then.friend


def test_after_a_refusal_own_queries_go_to_the_same_friends_as_those_of_others():
    """Else friends who act together could tell an author from a middle by refusing."""
    draws = [n / 60 for n in range(60)]
    others = [second_asked(False, draw, "alike") for draw in draws]
    assert [second_asked(True, draw, "alike") for draw in draws] == others
    assert Counter(others) == dict.fromkeys((0, 2, 3, 4, 5, 6), 10)
    assert [second_asked(True, draw, "vector") for draw in draws] != others  # the thesis's rule


def test_a_query_that_the_engine_rejects_is_submitted_once_and_nobody_is_blamed():
    office = Office(RING, seed=4, rejects="bad")
    for number in range(60):
        office.search(number % 5, f"bad {number}")
        office.settle()
    assert Counter(text for _, text in office.submitted) == {f"bad {n}": 1 for n in range(60)}
    assert len(office.failed) == 60
    assert sum(member.counts["engine rejected"] for member in office.members.values()) == 60
    assert sum(member.counts["gone"] for member in office.members.values()) == 0
    # taking costs trust and is given back; what is left are refusals, of which there are none
    trusts = [known.trust for member in office.members.values() for known in member.standing.values()]
    assert min(trusts) == pytest.approx(1.0)


def test_an_engines_no_is_no_reason_to_blame_a_friend_who_could_not_ask_it():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    member._engine_fails = True
    number, [asked] = member.search("oboe", 0.0)
    member.accepted(asked.friend, asked.hop, 0.0)
    assert member.returned(asked.friend, asked.hop, None, 0.0) == [Submit(number, "oboe")]
    assert member.submitted(number, Rejected()) == [Deliver(number, Rejected())]
    assert member.standing[asked.friend].trust == 1.0


@pytest.mark.parametrize("own", [True, False])
def test_no_query_is_handed_to_more_than_a_few(own):
    member = alone(friends=20, draws=[0.9], least_cut=0.0, most_cut=0.0)
    doings = member.search("oboe", 0.0)[1] if own else take(member)
    for _ in range(MOST_ASKS):
        assert isinstance(doings[-1], Ask)
        doings = member.refused(doings[-1].friend, doings[-1].hop, 0.0)
    assert isinstance(doings[-1], Submit)


def test_own_queries_and_others_wait_alike():
    """Else friends who act together could tell an author from a middle by when she gives up."""
    own, others = alone(draws=[0.9], least_cut=0.0, most_cut=0.0), alone(draws=[0.9])
    _, [asked] = own.search("oboe", 0.0)
    others.standing[1].trust = 1.0
    [_, passed] = take(others)
    assert own.due == others.due
    own.accepted(asked.friend, asked.hop, 1.0)
    others.accepted(passed.friend, passed.hop, 1.0)
    assert own.due == others.due


def test_after_the_time_for_answers_nobody_else_is_asked():
    for member in (alone(friends=4, draws=[0.5]), alone(friends=4, draws=[0.5])):
        doings = member.search("oboe", 0.0)[1]
        asked = 0
        while not isinstance(doings[-1], Submit):
            asked += 1
            member.accepted(doings[-1].friend, doings[-1].hop, member.due)
            doings = member.wake(member.due)
        assert asked <= 2


def test_a_query_that_is_sent_twice_is_refused():
    member = alone(draws=[0.0])
    assert take(member)[0] == Accept(1, hop(0))
    for _ in range(MOST_FAULTS):
        assert not member.has_enough_of(1)
        assert take(member) == [Refuse(1, hop(0))]
    assert member.has_enough_of(1)
    assert member.counts["replayed"] == MOST_FAULTS
    assert take(member, friend=2)[0] == Accept(2, hop(0))  # another friend may draw the same


def test_answers_that_nobody_asked_for_are_counted_and_end_the_talk():
    member = alone()
    for number in range(MOST_FAULTS):
        assert not member.has_enough_of(1)
        assert member.returned(1, hop(number), FOUND, 0.0) == []
    assert member.has_enough_of(1)
    assert not member.has_enough_of(2)
    member.joined(1, 1)
    assert not member.has_enough_of(1)


def test_nobody_else_can_answer_or_refuse_for_a_friend():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    other = 3 - asked.friend
    assert member.returned(other, asked.hop, FOUND, 0.0) == []
    assert member.refused(other, asked.hop, 0.0) == []
    assert member.returned(asked.friend, asked.hop, FOUND, 0.0) == []  # not taken yet
    assert member.counts["forged"] == 3
    member.accepted(asked.friend, asked.hop, 0.0)
    assert member.returned(asked.friend, asked.hop, FOUND, 0.0) == [Deliver(1, FOUND)]


def test_a_flood_is_refused_and_costs_all_trust():
    member = alone(draws=[0.0], rate=1.0, burst=10, waiting=1000)
    replies = [take(member, number)[0] for number in range(10 + MOST_OVERFLOWS)]
    assert Counter(type(reply) for reply in replies) == {Accept: 10, Refuse: MOST_OVERFLOWS}
    assert member.has_enough_of(1)
    assert member.standing[1].trust == 0.0
    assert member.standing[2].trust == 1.0
    assert take(member, 1000, now=100.0) == [Refuse(1, hop(1000))]  # isolated, though within the rate
    assert member.counts["declined"] == 1


def test_an_isolated_friend_earns_trust_by_taking_queries():
    member = alone(draws=[0.0, 0.0, 0.0, 0.4], least_cut=0.0, most_cut=0.0)
    member.standing[1].trust = 0.0
    assert take(member)[0] == Refuse(1, hop(0))
    _, [asked] = member.search("lute", 0.0)
    assert asked.friend == 1
    member.accepted(1, asked.hop, 0.0)
    member.returned(1, asked.hop, FOUND, 0.0)
    assert member.standing[1].trust == pytest.approx(0.06)


def test_lost_trust_comes_back_a_little_after_a_long_time():
    member = alone(draws=[0.0])
    member.standing[1].trust = 0.0
    assert take(member, 0, now=0.0) == [Refuse(1, hop(0))]
    assert take(member, 1, now=3599.0) == [Refuse(1, hop(1))]
    assert take(member, 2, now=3601.0)[0] == Accept(1, hop(2))
    assert take(member, 3, now=3602.0) == [Refuse(1, hop(3))]


def test_no_more_is_under_way_than_may_be():
    member = alone(draws=[0.0], waiting=3, in_flight=5)
    kinds = [type(take(member, number)[0]) for number in range(5)]
    assert kinds == [Accept] * 3 + [Refuse] * 2
    kinds = [type(take(member, number, friend=2)[0]) for number in range(5)]
    assert kinds == [Accept] * 2 + [Refuse] * 3
    assert member.counts["full"] == 5


def test_being_away_costs_no_trust():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    doings = member.left(asked.friend, 0.1)
    assert [doing.friend for doing in doings] == [3 - asked.friend]
    assert member.left(3 - asked.friend, 0.2) == [Submit(1, "oboe")]
    assert member.search("lute", 0.3)[1] == [Submit(2, "lute")]
    assert [known.trust for known in member.standing.values()] == [1.0, 1.0]


def test_nobody_is_told_the_answer_to_a_query_of_a_friend_who_left():
    member = alone(draws=[0.0])
    assert take(member) == [Accept(1, hop(0)), Submit(1, "oboe")]
    member.left(1, 0.0)
    member.joined(1, 1)
    assert member.submitted(1, FOUND) == []
    assert member.counts["nobody waits"] == 1


def test_a_friend_who_fails_is_blamed_only_if_the_engine_answers_others():
    member = alone(draws=[0.0, 0.0, 0.0, 0.6], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    member.accepted(asked.friend, asked.hop, 0.0)
    [then] = member.returned(asked.friend, asked.hop, None, 0.0)
    assert isinstance(then, Ask)
    assert member.standing[asked.friend].trust == 0.97
    member.accepted(then.friend, then.hop, 0.0)
    assert member.returned(then.friend, then.hop, None, 0.0) == [Submit(1, "oboe")]
    assert member.submitted(1, None) == [Deliver(1, None)]
    before = {n: known.trust for n, known in member.standing.items()}
    number, [asked] = member.search("lute", 1.0)  # the engine is known to fail now
    member.accepted(asked.friend, asked.hop, 1.0)
    assert member.returned(asked.friend, asked.hop, None, 1.0) == [Submit(number, "lute")]
    assert member.submitted(number, None) == [Deliver(number, None)]
    assert {n: known.trust for n, known in member.standing.items()} == before
    number, [asked] = member.search("harp", 2.0)
    member.accepted(asked.friend, asked.hop, 2.0)
    member.returned(asked.friend, asked.hop, None, 2.0)
    member.submitted(number, FOUND)
    assert member.standing[asked.friend].trust == pytest.approx(before[asked.friend] - 0.03)


def test_a_friend_is_not_believed_any_number_of_friends():
    member = alone(friends_counted=10)
    member.joined(1, 999_999)
    assert member.standing[1].friends == 10


def test_what_is_kept_goes_on_after_a_restart_and_holds_no_text():
    member = alone(draws=[0.3, 0.6, 0.2, 0.9, 0.1])
    for number in range(5):
        take(member, number, text="planted oboe")
    member.search("planted lute", 0.0)
    kept = member.kept()
    again = alone(draws=[0.77], kept=kept)
    assert again.kept() == kept
    assert again._own_weights() == member._own_weights()
    assert "planted" not in str(kept) + str(member.exposure.kept())


def test_the_vector_is_drawn_anew_as_often_as_is_said():
    member = alone(draws=[0.1, 0.2, 0.3, 0.5], renew=2)
    vectors = []
    for number in range(5):
        member.search(f"query {number}", 0.0)
        vectors.append(tuple(member.kept()["vector"]))
    assert vectors[0] == vectors[1] == (0.1, 0.2, 0.3)
    assert vectors[2] == vectors[3] == vectors[4] == (0.5, 0.5, 0.5)


@given(st.lists(st.sampled_from("abcd"), max_size=20), st.lists(st.sampled_from("abcdef"), max_size=20))
def test_exposure_is_the_measure_of_what_was_searched_and_submitted(own, shown):
    exposure = Exposure(KEY)
    for text in own:
        exposure.searched(text)
    for text in shown:
        exposure.submitted(text)
    expected = pytest.approx(measures.profile_exposure(own, shown), nan_ok=True)
    assert exposure.level() == expected
    assert Exposure(KEY, exposure.kept()).level() == expected
    assert exposure.totals() == {"searched": len(own), "submitted": len(shown)}


def test_hashes_hang_on_the_key_and_on_the_whole_text():
    def hashes(key, *texts):
        exposure = Exposure(key)
        for text in texts:
            exposure.searched(text)
        return set(exposure.kept()["own"])

    assert len(hashes(KEY, "oboe", "oboes", "lute")) == 3
    assert not hashes(KEY, "oboe") & hashes(b"x" * 32, "oboe")


def test_exposure_forgets_texts_of_others_beyond_a_number_but_counts_them(monkeypatch):
    monkeypatch.setattr("querycloak.clients.crowd.exposure.MOST_OF_OTHERS", 2)
    exposure = Exposure(KEY)
    for text in ("a", "b"):
        exposure.searched(text)
    for text in ("x", "y", "z", "a"):
        exposure.submitted(text)
    assert len(exposure.kept()["submitted"]) == 3
    assert exposure.level() == pytest.approx(measures.profile_exposure(["a", "b"], ["x", "y", "z", "a"]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"penalty": 2.0},
        {"least_cut": 0.9},
        {"engine_within": 5.0},
        {"rate": 0.0},
        {"burst": 1.5},
        {"back": 1},
    ],
)
def test_manners_out_of_bounds_are_refused(wrong):
    with pytest.raises(ParameterError):
        Manners(**wrong)


def test_the_office_checks_answers():
    assert answer_to("abc").body == b"cba"
    assert Return(1, "h", None).answer is None


@pytest.mark.parametrize("most", [0.0, 0.3, 0.5])
@given(seed=st.integers(0, 10**6), back=st.booleans())
@settings(max_examples=15, deadline=None)
def test_of_what_a_friend_could_not_know_at_most_the_stated_share_is_own(most, seed, back):
    """A friend bets that whoever hands her a query wrote it: right so often at any time, and once more."""
    office = Office(RING, seed, most_own=most, back=back)
    handed, own, all_ = {}, Counter(), Counter()
    carry = office.post

    def watch(m, doings):
        for doing in doings:
            if isinstance(doing, Ask):
                friend = office.friends[m][doing.friend - 1]
                handed.setdefault((m, friend), set()).add(doing.text)
                if doing.text not in handed.get((friend, m), ()):
                    all_[m, friend] += 1
                    own[m, friend] += doing.text.startswith(f"{m}:")
                    assert own[m, friend] <= most * all_[m, friend] + (most > 0)
        carry(m, doings)

    office.post = watch
    for turn in range(60):
        office.search(turn % 5, f"{turn % 5}:{turn}")
        office.settle()
    assert all(count == 1 for count in office.delivered.values())
    assert (sum(own.values()) > 0) == (most > 0)


def test_what_was_handed_on_is_counted_over_restarts():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0, most_own=0.5)
    member.search("oboe", 0.0)
    kept = member.kept()
    assert sorted(part["own"] for part in kept["friends"].values()) == [0, 1]
    kept["friends"]["f0"] |= {"own": 3, "passed": 2}
    kept["friends"]["f1"] |= {"own": 4, "passed": 2}
    again = alone(most_own=0.5, kept=kept)
    assert again.standing[1].may_have_one_more
    assert not again.standing[2].may_have_one_more
