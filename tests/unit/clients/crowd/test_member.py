"""A member answers every local query once, whatever its friends do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.clients.crowd.config import PeerSettings
from querycloak.clients.crowd.friend import MAX_PROTOCOL_ERRORS, MAX_RATE_EXCESSES, MAX_TIMEOUTS
from querycloak.clients.crowd.member import MAX_ATTEMPTS, Member
from querycloak.clients.crowd.messages import (
    Accepted,
    DeliverToUser,
    EngineReply,
    FriendConnected,
    FriendLost,
    Inbound,
    LocalQuery,
    Page,
    Query,
    Refused,
    Rejected,
    Send,
    SubmitToEngine,
    TimerFired,
    reply,
)
from querycloak.errors import ParameterError
from tests.support.in_memory_crowd import InMemoryNetwork

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)]
FOUND = Page("text/plain", b"found")


class Driven(Member):
    """A member with a short method for each event."""

    searches = 0

    def search(self, text, now):
        """Return the number of the search, and what the member does."""
        self.searches += 1
        return self.searches, self.handle(LocalQuery(self.searches, text), now)

    def asked(self, friend, hop, text, now):
        return self.handle(Inbound(friend, Query(hop, text)), now)

    def accepted(self, friend, hop, now):
        return self.handle(Inbound(friend, Accepted(hop)), now)

    def refused(self, friend, hop, now):
        return self.handle(Inbound(friend, Refused(hop)), now)

    def returned(self, friend, hop, result, now):
        return self.handle(Inbound(friend, reply(hop, result)), now)

    def submitted(self, job, result):
        return self.handle(EngineReply(job, result), 0.0)

    def joined(self, friend, friends):
        assert self.handle(FriendConnected(friend, friends), 0.0) == []

    def left(self, friend, now):
        return self.handle(FriendLost(friend), now)

    def wake(self, now):
        return self.handle(TimerFired(), now)

    def has_enough_of(self, friend):
        return self.friends[friend].exceeds_misbehaviour_limit


def alone(friends=2, draws=(), stored=None, **settings):
    """One member, with connected friends who have one friend each; the last draw is repeated."""
    left, hops = list(draws), iter(range(10**6))
    member = Driven(
        [f"f{n}" for n in range(friends)],
        PeerSettings(**({"most_own": 1.0} | settings)),
        lambda: left.pop(0) if len(left) > 1 else (left or [0.5])[0],
        lambda: f"{next(hops):032x}",
        stored,
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
    network = InMemoryNetwork(RING, seed, engine_fails, lost, back=back)
    for number, (what, where) in enumerate(steps):
        if what == "search":
            network.search(where, f"query {number}")
        elif what == "part":
            network.part(*RING[where])
        elif what == "meet":
            network.meet(*RING[where])
        else:
            for _ in range(min(where, len(network.letters))):
                network.carry(network.letters.pop(network.any_first()))
    network.settle(in_order=False)
    assert network.delivered == dict.fromkeys(network.searches, 1)
    assert not network.hops or max(network.hops.values()) == 1
    for member in network.members.values():
        counts = member.counts
        assert member.in_flight == 0
        assert all(0 <= known.trust <= 1 and known.pending == 0 for known in member.friends.values())
        assert counts["searches_started"] == counts["searches_answered"] + counts["searches_failed"]
        assert counts["queries_accepted"] == counts["answers_returned"] + counts["answers_dropped"]
    if engine_fails == 0.0:
        assert not network.failed
        assert set(network.searches.values()) == {text for _, text in network.submitted}


def test_a_broken_engine_does_not_make_queries_multiply():
    network = InMemoryNetwork(RING, seed=1, engine_fails=1.0)
    for number in range(100):
        network.search(number % 5, f"query {number}")
        network.settle()
    assert len(network.failed) == 100
    # every hop of a way back tries the engine once: about as many tries as hops, and one
    assert len(network.submitted) < 100 * 15
    trusts = [known.trust for member in network.members.values() for known in member.friends.values()]
    assert min(trusts) > 0.8  # nobody is blamed for the engine, but for the first few failures
    network.engine_fails = 0.0
    for number in range(100, 200):
        network.search(number % 5, f"query {number}")
        network.settle()
    assert len(network.failed) == 100


def test_the_same_network_without_trouble_loses_and_repeats_nothing():
    network = InMemoryNetwork(RING, seed=2)
    for number in range(500):
        network.search(number % 5, f"query {number}")
    network.settle(in_order=False)
    assert not network.failed
    assert Counter(text for _, text in network.submitted) == {f"query {n}": 1 for n in range(500)}
    assert (
        sum(
            member.counts["late_replies"] + member.counts["protocol_errors"]
            for member in network.members.values()
        )
        == 0
    )


def test_refused_by_all_she_submits_it_herself():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [first] = member.search("oboe", 0.0)
    [second] = member.refused(first.friend, first.message.hop, 0.1)
    assert {first.friend, second.friend} == {1, 2}
    assert first.message.hop != second.message.hop
    assert member.refused(second.friend, second.message.hop, 0.2) == [SubmitToEngine(1, "oboe")]
    assert member.submitted(1, FOUND) == [DeliverToUser(1, FOUND)]
    assert [known.trust for known in member.friends.values()] == [0.97, 0.97]


def test_a_friend_who_stays_silent_is_passed_over_and_trusted_less():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [first] = member.search("oboe", 0.0)
    assert member.next_timer() == member.settings.accept_within
    assert member.wake(member.next_timer() - 0.01) == []
    [second] = member.wake(member.next_timer())
    assert second.friend != first.friend
    assert member.friends[first.friend].trust == 0.97
    member.accepted(second.friend, second.message.hop, 3.0)
    assert (
        3.0 + member.settings.answer_within / 2 <= member.next_timer() <= 3.0 + member.settings.answer_within
    )
    assert member.returned(second.friend, second.message.hop, FOUND, 4.0) == [DeliverToUser(1, FOUND)]
    assert member.accepted(first.friend, first.message.hop, 5.0) == []
    assert member.returned(first.friend, first.message.hop, FOUND, 5.0) == []
    assert (
        member.counts["late_replies"],
        member.counts["protocol_errors"],
        member.counts["searches_answered"],
    ) == (2, 0, 1)


def test_a_friend_who_never_replies_is_taken_for_gone():
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    for number in range(MAX_TIMEOUTS):
        assert not member.has_enough_of(1)
        member.search(f"query {number}", 100.0 * number)
        member.wake(100.0 * number + 50.0)
    assert member.has_enough_of(1)
    member.joined(1, 1)
    assert not member.has_enough_of(1)


def test_a_friend_who_takes_a_query_and_lets_it_drop_is_passed_over():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [first] = member.search("oboe", 0.0)
    member.accepted(first.friend, first.message.hop, 0.0)
    [then] = member.wake(member.next_timer())
    assert isinstance(then, Send) is (then != SubmitToEngine(1, "oboe"))
    assert member.counts["timeouts"] == 1


@pytest.mark.parametrize("end", ["silence", "gone"])
def test_a_friend_who_takes_queries_and_brings_nothing_is_taken_for_gone(end):
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)

    def drop(number):
        now = 100.0 * number
        _, [asked] = member.search(f"query {number}", now)
        member.accepted(1, asked.message.hop, now)
        doings = (
            member.wake(now + 50.0) if end == "silence" else member.returned(1, asked.message.hop, None, now)
        )
        member.submitted(doings[-1].job, FOUND)

    for number in range(MAX_TIMEOUTS - 1):
        drop(number)
    _, [refused] = member.search("refused", 900.0)  # to refuse in between changes nothing
    member.submitted(member.refused(1, refused.message.hop, 900.0)[0].job, FOUND)
    _, [answered] = member.search("answered", 900.0)
    member.accepted(1, answered.message.hop, 900.0)
    assert not member.has_enough_of(1)
    assert member.friends[1].timeouts == MAX_TIMEOUTS - 1
    member.returned(1, answered.message.hop, FOUND, 900.0)
    for number in range(MAX_TIMEOUTS):
        assert not member.has_enough_of(1)
        drop(10 + number)
    assert member.has_enough_of(1)


def test_nobody_is_taken_for_gone_because_the_engine_is():
    network = InMemoryNetwork(RING, seed=6, engine_fails=1.0)
    for number in range(50):
        network.search(number % 5, f"query {number}")
    network.settle(in_order=False)
    assert sum(member.counts["gone_received"] for member in network.members.values()) > 20
    standings = [known for member in network.members.values() for known in member.friends.values()]
    assert {known.timeouts for known in standings} == {0}


def test_each_line_may_be_late_once():
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    member.wake(50.0)
    member.accepted(1, asked.message.hop, 51.0)
    member.returned(1, asked.message.hop, FOUND, 51.0)
    assert (member.counts["late_replies"], member.counts["protocol_errors"]) == (2, 0)
    for number in range(MAX_PROTOCOL_ERRORS):
        assert not member.has_enough_of(1)
        if number % 2:
            member.accepted(1, asked.message.hop, 52.0)
        else:
            member.returned(1, asked.message.hop, FOUND, 52.0)
    assert member.has_enough_of(1)
    assert (member.counts["late_replies"], member.counts["protocol_errors"]) == (2, MAX_PROTOCOL_ERRORS)


def test_who_has_taken_a_query_in_time_cannot_take_it_again_later():
    member = alone(friends=1, draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    member.accepted(1, asked.message.hop, 0.0)
    member.wake(50.0)
    member.accepted(1, asked.message.hop, 51.0)
    assert (member.counts["late_replies"], member.counts["protocol_errors"]) == (0, 1)


def second_asked(own, draw, redraw):
    """Say who is asked after friend 1 has refused; friends 1 and 2 have many friends, the others one."""
    member = alone(friends=6, draws=[0.0, 0.0, 0.0, 0.1, draw], least_cut=0.0, most_cut=0.0, redraw=redraw)
    for friend in range(1, 7):
        member.joined(friend, 10 if friend <= 2 else 1)
    if not own:  # from friend 6, with draws for her trust and for who is next
        member._draw = iter([0.0, 0.2, draw]).__next__
        first = take(member, friend=6)[-1]
    else:
        first = member.search("oboe", 0.0)[1][-1]
    assert first.friend == 1
    then = member.refused(1, first.message.hop, 0.0)[0]
    return 0 if isinstance(then, SubmitToEngine) else then.friend


def test_after_a_refusal_own_queries_go_to_the_same_friends_as_those_of_others():
    """Else friends who act together could tell an author from a middle by refusing."""
    draws = [n / 60 for n in range(60)]
    others = [second_asked(False, draw, "alike") for draw in draws]
    assert [second_asked(True, draw, "alike") for draw in draws] == others
    assert Counter(others) == dict.fromkeys((0, 2, 3, 4, 5, 6), 10)
    assert [second_asked(True, draw, "vector") for draw in draws] != others  # the thesis's rule


def test_a_query_that_the_engine_rejects_is_submitted_once_and_nobody_is_blamed():
    network = InMemoryNetwork(RING, seed=4, rejects="bad")
    for number in range(60):
        network.search(number % 5, f"bad {number}")
        network.settle()
    assert Counter(text for _, text in network.submitted) == {f"bad {n}": 1 for n in range(60)}
    assert len(network.failed) == 60
    assert sum(member.counts["engine_rejected"] for member in network.members.values()) == 60
    assert sum(member.counts["gone_received"] for member in network.members.values()) == 0
    # taking costs trust and is given back; what is left are refusals, of which there are none
    trusts = [known.trust for member in network.members.values() for known in member.friends.values()]
    assert min(trusts) == pytest.approx(1.0)


def test_an_engines_no_is_no_reason_to_blame_a_friend_who_could_not_ask_it():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    member._engine_fails = True
    number, [asked] = member.search("oboe", 0.0)
    member.accepted(asked.friend, asked.message.hop, 0.0)
    assert member.returned(asked.friend, asked.message.hop, None, 0.0) == [SubmitToEngine(number, "oboe")]
    assert member.submitted(number, Rejected()) == [DeliverToUser(number, Rejected())]
    assert member.friends[asked.friend].trust == 1.0


@pytest.mark.parametrize("own", [True, False])
def test_no_query_is_handed_to_more_than_a_few(own):
    member = alone(friends=20, draws=[0.9], least_cut=0.0, most_cut=0.0)
    doings = member.search("oboe", 0.0)[1] if own else take(member)
    for _ in range(MAX_ATTEMPTS):
        assert isinstance(doings[-1], Send)
        doings = member.refused(doings[-1].friend, doings[-1].message.hop, 0.0)
    assert isinstance(doings[-1], SubmitToEngine)


def test_own_queries_and_others_wait_alike():
    """Else friends who act together could tell an author from a middle by when she gives up."""
    own, others = alone(draws=[0.9], least_cut=0.0, most_cut=0.0), alone(draws=[0.9])
    _, [asked] = own.search("oboe", 0.0)
    others.friends[1].trust = 1.0
    [_, passed] = take(others)
    assert own.next_timer() == others.next_timer()
    own.accepted(asked.friend, asked.message.hop, 1.0)
    others.accepted(passed.friend, passed.message.hop, 1.0)
    assert own.next_timer() == others.next_timer()


def test_after_the_time_for_answers_nobody_else_is_asked():
    for member in (alone(friends=4, draws=[0.5]), alone(friends=4, draws=[0.5])):
        doings = member.search("oboe", 0.0)[1]
        asked = 0
        while not isinstance(doings[-1], SubmitToEngine):
            asked += 1
            member.accepted(doings[-1].friend, doings[-1].message.hop, member.next_timer())
            doings = member.wake(member.next_timer())
        assert asked <= 2


def test_a_query_that_is_sent_twice_is_refused():
    member = alone(draws=[0.0])
    assert take(member)[0] == Send(1, Accepted(hop(0)))
    for _ in range(MAX_PROTOCOL_ERRORS):
        assert not member.has_enough_of(1)
        assert take(member) == [Send(1, Refused(hop(0)))]
    assert member.has_enough_of(1)
    assert member.counts["queries_replayed"] == MAX_PROTOCOL_ERRORS
    assert take(member, friend=2)[0] == Send(2, Accepted(hop(0)))  # another friend may draw the same


def test_answers_that_nobody_asked_for_are_counted_and_end_the_talk():
    member = alone()
    for number in range(MAX_PROTOCOL_ERRORS):
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
    assert member.returned(other, asked.message.hop, FOUND, 0.0) == []
    assert member.refused(other, asked.message.hop, 0.0) == []
    assert member.returned(asked.friend, asked.message.hop, FOUND, 0.0) == []  # not taken yet
    assert member.counts["protocol_errors"] == 3
    member.accepted(asked.friend, asked.message.hop, 0.0)
    assert member.returned(asked.friend, asked.message.hop, FOUND, 0.0) == [DeliverToUser(1, FOUND)]


def test_a_flood_is_refused_and_costs_all_trust():
    member = alone(draws=[0.0], rate=1.0, burst=10, waiting=1000)
    replies = [take(member, number)[0] for number in range(10 + MAX_RATE_EXCESSES)]
    assert Counter(type(one.message) for one in replies) == {Accepted: 10, Refused: MAX_RATE_EXCESSES}
    assert member.has_enough_of(1)
    assert member.friends[1].trust == 0.0
    assert member.friends[2].trust == 1.0
    assert take(member, 1000, now=100.0) == [Send(1, Refused(hop(1000)))]  # isolated, though within the rate
    assert member.counts["queries_declined"] == 1


def test_an_isolated_friend_earns_trust_by_taking_queries():
    member = alone(draws=[0.0, 0.0, 0.0, 0.4], least_cut=0.0, most_cut=0.0)
    member.friends[1].trust = 0.0
    assert take(member)[0] == Send(1, Refused(hop(0)))
    _, [asked] = member.search("lute", 0.0)
    assert asked.friend == 1
    member.accepted(1, asked.message.hop, 0.0)
    member.returned(1, asked.message.hop, FOUND, 0.0)
    assert member.friends[1].trust == pytest.approx(0.06)


def test_lost_trust_comes_back_a_little_after_a_long_time():
    member = alone(draws=[0.0])
    member.friends[1].trust = 0.0
    assert take(member, 0, now=0.0) == [Send(1, Refused(hop(0)))]
    assert take(member, 1, now=3599.0) == [Send(1, Refused(hop(1)))]
    assert take(member, 2, now=3601.0)[0] == Send(1, Accepted(hop(2)))
    assert take(member, 3, now=3602.0) == [Send(1, Refused(hop(3)))]


def test_no_more_is_under_way_than_may_be():
    member = alone(draws=[0.0], waiting=3, in_flight=5)
    kinds = [type(take(member, number)[0].message) for number in range(5)]
    assert kinds == [Accepted] * 3 + [Refused] * 2
    kinds = [type(take(member, number, friend=2)[0].message) for number in range(5)]
    assert kinds == [Accepted] * 2 + [Refused] * 3
    assert member.counts["queries_over_capacity"] == 5


def test_being_away_costs_no_trust():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    doings = member.left(asked.friend, 0.1)
    assert [doing.friend for doing in doings] == [3 - asked.friend]
    assert member.left(3 - asked.friend, 0.2) == [SubmitToEngine(1, "oboe")]
    assert member.search("lute", 0.3)[1] == [SubmitToEngine(2, "lute")]
    assert [known.trust for known in member.friends.values()] == [1.0, 1.0]


def test_nobody_is_told_the_answer_to_a_query_of_a_friend_who_left():
    member = alone(draws=[0.0])
    assert take(member) == [Send(1, Accepted(hop(0))), SubmitToEngine(1, "oboe")]
    member.left(1, 0.0)
    member.joined(1, 1)
    assert member.submitted(1, FOUND) == []
    assert member.counts["answers_dropped"] == 1


def test_a_friend_who_fails_is_blamed_only_if_the_engine_answers_others():
    member = alone(draws=[0.0, 0.0, 0.0, 0.6], least_cut=0.0, most_cut=0.0)
    _, [asked] = member.search("oboe", 0.0)
    member.accepted(asked.friend, asked.message.hop, 0.0)
    [then] = member.returned(asked.friend, asked.message.hop, None, 0.0)
    assert isinstance(then, Send)
    assert member.friends[asked.friend].trust == 0.97
    member.accepted(then.friend, then.message.hop, 0.0)
    assert member.returned(then.friend, then.message.hop, None, 0.0) == [SubmitToEngine(1, "oboe")]
    assert member.submitted(1, None) == [DeliverToUser(1, None)]
    before = {n: known.trust for n, known in member.friends.items()}
    number, [asked] = member.search("lute", 1.0)  # the engine is known to fail now
    member.accepted(asked.friend, asked.message.hop, 1.0)
    assert member.returned(asked.friend, asked.message.hop, None, 1.0) == [SubmitToEngine(number, "lute")]
    assert member.submitted(number, None) == [DeliverToUser(number, None)]
    assert {n: known.trust for n, known in member.friends.items()} == before
    number, [asked] = member.search("harp", 2.0)
    member.accepted(asked.friend, asked.message.hop, 2.0)
    member.returned(asked.friend, asked.message.hop, None, 2.0)
    member.submitted(number, FOUND)
    assert member.friends[asked.friend].trust == pytest.approx(before[asked.friend] - 0.03)


def test_a_friend_is_not_believed_any_number_of_friends():
    member = alone(friends_counted=10)
    member.joined(1, 999_999)
    assert member.friends[1].friends == 10


def test_what_is_kept_goes_on_after_a_restart_and_holds_no_text():
    member = alone(draws=[0.3, 0.6, 0.2, 0.9, 0.1])
    for number in range(5):
        take(member, number, text="planted oboe")
    member.search("planted lute", 0.0)
    kept = member.snapshot()
    again = alone(draws=[0.77], stored=kept)
    assert again.snapshot() == kept
    assert again.own_weights() == member.own_weights()
    assert "planted" not in str(kept)


def test_the_vector_is_drawn_anew_as_often_as_is_said():
    member = alone(draws=[0.1, 0.2, 0.3, 0.5], renew=2)
    vectors = []
    for number in range(5):
        member.search(f"query {number}", 0.0)
        vectors.append(tuple(member.snapshot()["vector"]))
    assert vectors[0] == vectors[1] == (0.1, 0.2, 0.3)
    assert vectors[2] == vectors[3] == vectors[4] == (0.5, 0.5, 0.5)


def test_a_snapshot_does_not_grow_with_the_number_of_queries():
    """Stored hashes of all queries stalled the peer's loop, and let a thief of the folder test guesses."""
    member = alone(draws=[0.9, 0.1])
    sizes = []
    for turn in range(2):
        for number in range(500):
            member.search(f"planted {turn} {number}", float(number))
            take(member, turn * 500 + number, now=float(number), text=f"other {turn} {number}")
        sizes.append(len(str(member.snapshot())))
    assert sizes[1] - sizes[0] < 50


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
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(ParameterError):
        PeerSettings(**wrong)


@pytest.mark.parametrize("most", [0.0, 0.3, 0.5])
@given(seed=st.integers(0, 10**6), back=st.booleans())
@settings(max_examples=15, deadline=None)
def test_of_what_a_friend_could_not_know_at_most_the_stated_share_is_own(most, seed, back):
    """A friend bets that whoever hands her a query wrote it: right so often at any time, and once more."""
    network = InMemoryNetwork(RING, seed, most_own=most, back=back)
    handed, own, all_ = {}, Counter(), Counter()
    carry = network.post

    def watch(m, doings):
        for doing in doings:
            if isinstance(doing, Send) and isinstance(doing.message, Query):
                friend, text = network.friends[m][doing.friend - 1], doing.message.text
                handed.setdefault((m, friend), set()).add(text)
                if text not in handed.get((friend, m), ()):
                    all_[m, friend] += 1
                    own[m, friend] += text.startswith(f"{m}:")
                    assert own[m, friend] <= most * all_[m, friend] + (most > 0)
        carry(m, doings)

    network.post = watch
    for turn in range(60):
        network.search(turn % 5, f"{turn % 5}:{turn}")
        network.settle()
    assert all(count == 1 for count in network.delivered.values())
    assert (sum(own.values()) > 0) == (most > 0)


def test_what_was_handed_on_is_counted_over_restarts():
    member = alone(draws=[0.0, 0.0, 0.0, 0.9], least_cut=0.0, most_cut=0.0, most_own=0.5)
    member.search("oboe", 0.0)
    kept = member.snapshot()
    assert sorted(part["own"] for part in kept["friends"].values()) == [0, 1]
    kept["friends"]["f0"] |= {"own": 3, "passed": 2}
    kept["friends"]["f1"] |= {"own": 4, "passed": 2}
    again = alone(most_own=0.5, stored=kept)
    assert again.friends[1].may_receive_own
    assert not again.friends[2].may_receive_own
