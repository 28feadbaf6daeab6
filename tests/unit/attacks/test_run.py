"""The runner: what attacks get to see, how findings are made, what is refused."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import polars as pl
import pytest

from querycloak import settings as declared
from querycloak.attacks import run
from querycloak.attacks.auxiliary import Histories, KnownSearches, KnownVolumes, Targets
from querycloak.attacks.base import Attack, Attribution, Identification, PairGuesses
from querycloak.attacks.controls import Copy
from querycloak.errors import DataError, MissingExtra, NotApplicable, UnknownName, UsageError
from querycloak.registry import ATTACKS
from querycloak.settings import setting
from tests.reference import naive_swap
from tests.support.logs import made_up

PAPERS = ["link-random", "link-frequent", "link-profile"]


@pytest.fixture(scope="module")
def log():
    return made_up(60, 3, categories=True).frame


def case(log, method="swap", **settings):
    made = naive_swap.release(log, method, **({"k": 3} | settings))
    release = made.release.cast({"released_row": pl.Int64})
    truth = pl.DataFrame(
        {
            "released_row": release["released_row"],
            "original_row": pl.Series([None] * release.height, dtype=pl.Int64),
            "original_user": made.author,
            "released_after": pl.zeros(release.height, dtype=pl.Int64, eager=True),
        }
    )
    return release, made.certificate, log, truth


@pytest.fixture
def register(monkeypatch):
    """Register attacks for one test."""
    monkeypatch.setattr(ATTACKS, "added", {})

    def add(cls):
        ATTACKS.add(cls.name, cls)
        return cls

    return add


class Probe(Attack):
    """Notes what it saw."""

    name, game = "probe", "attribution"
    seen: ClassVar[list] = []

    def guess(self, view):
        self.seen.append(view)
        return Attribution(view.release["user"])


def one(findings):
    assert len(findings) == 1
    return findings[0]


def test_copy_is_always_right_and_guess_is_the_floor(log):
    release, certificate, original, truth = case(log)
    copied, floor = run.attack(release, certificate, original, truth, ["copy", "guess"])
    assert (copied.success, copied.high, copied.game, copied.bound) == (1.0, 1.0, "control", None)
    most = release["user"].value_counts(sort=True)["user"][0]
    assert floor.success == pytest.approx((truth["original_user"] == most).mean())


def test_the_papers_attacks_are_measured_against_the_papers_claim(log):
    for finding in run.attack(*case(log), PAPERS):
        assert finding.bound == pytest.approx(1 / 3)
        assert finding.details["bound_from"] == "claimed by the paper"
        assert finding.details["claimed_bound"] == finding.bound
        assert 0 < finding.low < finding.success < finding.high < 1
        assert finding.n == case(log)[0].height


def test_cohort_promises_its_own_bound(log):
    finding = one(run.attack(*case(log, "cohort", k=5), ["link-random"]))
    assert (finding.bound, finding.details["bound_from"]) == (pytest.approx(0.2), "promised by cohort")
    assert "claimed_bound" not in finding.details
    assert finding.holds is True


def test_other_methods_promise_none(log):
    release, _, original, truth = case(log, "cohort", k=5)
    rules = {"methods": [{"method": "rules", "settings": {}}]}
    finding = one(run.attack(release, rules, original, truth, ["link-random"], {"k": "3"}))
    assert (finding.bound, finding.holds) == (None, None)


def test_who_knows_more_than_the_release_has_no_bound(log, register):
    @register
    class Knows(Probe):
        name = "knows"

        def requests(self):
            return (KnownVolumes(),)

    assert one(run.attack(*case(log), ["knows"])).bound is None


def test_an_attack_sees_the_release_and_never_the_truth(log, register):
    register(Probe)
    Probe.seen.clear()
    release, certificate, original, truth = case(log)
    run.attack(release.with_columns(secret=truth["original_user"]), certificate, original, truth, ["probe"])
    view = Probe.seen.pop()
    assert {field.name for field in fields(view)} == {"release", "certificate", "auxiliary"}
    assert set(vars(view)) <= {
        "release",
        "certificate",
        "auxiliary",
        "stages",
        "labels",
    }  # from the certificate
    assert view.release.columns == ["released_row", "user", "query", "time", "category"]
    assert view.auxiliary == {}
    assert not vars(Probe(Probe.Settings())).keys() - {"settings"}


def test_what_an_attack_does_to_its_view_changes_nothing(log, register):
    @register
    class Vandal(Probe):
        name = "vandal"

        def guess(self, view):
            view.certificate["methods"][0]["settings"]["k"] = 1
            view.release[0, "user"] = "somebody else"
            return Attribution(view.release["user"])

    alone = one(run.attack(*case(log), ["link-random"]))
    after = run.attack(*case(log), ["vandal", "link-random"])[1]
    assert (after.bound, after.success) == (alone.bound, alone.success)


def test_nobody_gets_in_by_the_door_of_copy(log, register):
    @register
    class Burglar(Copy):
        name = "burglar"

    assert one(run.attack(*case(log), ["burglar"])).not_applicable == "there is no truth to copy"


def knowing(register, what, answer, settings=declared.Settings, kind="attribution"):
    @register
    class Knows(Attack):
        name, game, Settings = f"knows-{what.name}", kind, settings

        def requests(self):
            chosen = {one: getattr(self.settings, one) for one in ("targets", "seed") if settings is Sampling}
            return (what(**chosen),)

        def guess(self, view):
            return answer(view.auxiliary[what.name], view)

    return Knows.name


def test_volumes_count_searches_and_name_no_fresh_pseudonym(log, register):
    seen = []

    def answer(known, view):
        seen.append(known)
        return Attribution(view.release["user"])

    name = knowing(register, KnownVolumes, answer)
    release, certificate, original, truth = case(log)
    run.attack(release, certificate, original, truth, [name])
    expected = dict(original["user"].value_counts().iter_rows())
    assert dict(seen[0].iter_rows()) == expected
    fresh = truth.with_columns(original_label="fresh " + pl.col("original_user"))
    run.attack(release, certificate, original, fresh, [name])
    assert not set(seen[1]["user"]) & (set(expected) | {f"fresh {user}" for user in expected})
    assert sorted(seen[1]["count"]) == sorted(expected.values())
    assert seen[1]["count"].to_list() != seen[0]["count"].to_list()  # nor does the order tell
    assert seen[1].columns == ["user", "count"]


@dataclass(frozen=True, kw_only=True)
class Sampling(declared.Settings):
    """How many people, and how much is known of each."""

    targets: int = setting(10, kind=int, help="people")
    seed: int = setting(0, kind=int, help="what draws start from")


def test_samples_name_no_one_and_targets_are_scored_as_the_people_they_are(log, register):
    seen = []

    def answer(known, view):
        seen.append(known)
        targets = known["user"].unique(maintain_order=True)
        # Whoever wrote a known query under her own label; swap never shows that, cohort sometimes does.
        return Identification(targets, pl.Series([[0]] * len(targets)))

    name = knowing(register, KnownSearches, answer, Sampling, "identification")
    release, certificate, original, truth = case(log)
    finding = one(run.attack(release, certificate, original, truth, [name]))
    assert (finding.unit, finding.n, finding.bound) == ("user", 10, None)
    known = seen[0]
    assert known.columns == ["user", "query"]
    assert known.group_by("user").len()["len"].to_list() == [3] * 10
    assert not set(known["user"]) & set(original["user"])
    run.attack(release, certificate, original, truth, [name])
    run.attack(release, certificate, original, truth, [name], seed=9)
    assert known.equals(seen[1])
    assert not known.equals(seen[2])
    everyone = one(run.attack(release, certificate, original, truth, [name], {"targets": "1000"}))
    texts = original.drop_nulls("query").group_by("user").agg(count=pl.col("query").n_unique())
    big_enough = texts.filter(pl.col("count") >= 3)
    assert everyone.n == big_enough.height
    assert everyone.success == pytest.approx(1 / everyone.n)  # row 0 is one person's


def test_histories_name_no_one(log, register):
    """Kept labels are ids: an attack that takes a target's name for the label must fail."""
    seen = []

    def answer(known, view):
        seen.append(known)
        people = known["user"].unique(maintain_order=True)
        return Identification(people, people)

    name = knowing(register, Histories, answer, kind="identification")
    assert one(run.attack(*case(log), [name])).success == 0.0
    known = seen[0]
    assert known.columns == ["user", "query", "category"]
    assert not set(known["user"]) & set(log["user"])

    def contents(frame):
        rows = frame.select("user", "query").group_by("user").agg(pl.col("query").sort())
        return sorted(map(repr, rows["query"].to_list()))

    assert contents(known) == contents(log)


def test_the_order_of_histories_and_of_their_names_tells_nothing(log, register):
    def answer(known, view):
        people = known["user"].unique(maintain_order=True)
        labels = sorted(view.release["user"].unique())
        return Identification(people, pl.Series([labels[n % len(labels)] for n in range(len(people))]))

    name = knowing(register, Histories, answer, kind="identification")
    assert one(run.attack(*case(log), [name])).success < 0.2


def test_traces_under_attack_cannot_be_identified_by_their_own_labels(log, register):
    """Targets of a trace are named by their labels, so that naming them again is no success."""

    def answer(known, view):
        return Identification(known["user"], known["user"])

    name = knowing(register, Targets, answer, Sampling, kind="identification")
    with pytest.raises(UsageError, match="targets that it was not given"):
        run.attack(*case(log), [name])


def test_a_linkage_is_scored_as_pairs(log, register):
    @register
    class Pairs(Attack):
        name, game = "pairs", "linkage"

        def guess(self, view):
            rows = view.release["released_row"].to_numpy()
            same = view.release["query"].to_numpy()[:-1] == view.release["query"].to_numpy()[1:]
            return PairGuesses(rows[:-1], rows[1:], same.astype(float))

    finding = one(run.attack(*case(log), ["pairs"]))
    assert (finding.unit, finding.details["chance"]) == ("pair", 0.5)
    assert finding.success >= 0.5


def test_what_cannot_run_says_why(log, register):
    @register
    class Lacks(Probe):
        name = "lacks"

        def guess(self, view):
            raise MissingExtra("attacks", "this attack")

    @register
    class Nothing(Probe):
        name = "nothing"

        def guess(self, view):
            raise NotApplicable("there is nothing here")

    release, *rest = case(log)
    findings = run.attack(release.drop("category"), *rest, ["link-random", "lacks", "nothing", "copy"])
    assert [finding.not_applicable for finding in findings] == [
        "the release has no category",
        "this attack needs the extra `attacks`",
        "there is nothing here",
        None,
    ]
    assert findings[0].success is None
    assert findings[0].holds is None


def test_an_empty_release_and_one_without_users(log):
    release, certificate, original, truth = case(log)
    for finding in run.attack(
        release.clear(), certificate, original, truth.clear(), [*PAPERS, "copy", "guess"]
    ):
        assert finding.not_applicable == "the release is empty"
    nameless = release.with_columns(user=pl.lit(None, pl.String))
    copied, *others = run.attack(nameless, certificate, original, truth, ["copy", *PAPERS, "guess"])
    assert copied.success == 1.0
    assert {finding.not_applicable for finding in others} == {"the release has no user"}


def test_one_user_alone_is_borne(log):
    release, certificate, original, truth = case(log)
    alone = truth["original_user"][0]
    mine = release.head(3).with_columns(user=pl.lit(alone))
    truth = truth.head(3).with_columns(original_user=pl.lit(alone))
    random, floor = run.attack(mine, certificate, original, truth, ["link-random", "guess"])
    assert (random.success, random.details["guessed"]) == (0.0, 0.0)
    assert floor.success == 1.0


def test_settings_go_to_their_attack(log):
    findings = run.attack(*case(log), PAPERS, {"link-random.k": "9"})
    assert [finding.details["attacker_k"] for finding in findings] == [9, 3, 3]
    with pytest.raises(
        UsageError, match="`k` is a setting of link-random and link-frequent and link-profile"
    ):
        run.attack(*case(log), PAPERS, {"k": "9"})
    with pytest.raises(UnknownName, match="no attack is called `link-time`"):
        run.attack(*case(log), PAPERS, {"link-time.k": "9"})
    with pytest.raises(UnknownName, match="no attack is called `link-randon`"):
        run.attack(*case(log), ["link-randon"])
    with pytest.raises(UsageError, match="named twice"):
        run.attack(*case(log), ["copy", "copy"])


def test_a_seed_goes_to_all_who_draw(log):
    def success(**seed):
        return [finding.success for finding in run.attack(*case(log), [*PAPERS, "copy"], **seed)]

    assert success(seed=5) == success(seed=5) != success(seed=6)
    assert success() == success(seed=0)


def test_the_rebuilt_log_is_the_release_with_guessed_users(log):
    rebuilt = {}
    release, certificate, original, truth = case(log)
    run.attack(release, certificate, original, truth, ["copy", "link-random"], rebuilt=rebuilt.__setitem__)
    assert rebuilt["copy"]["user"].equals(truth["original_user"], check_names=False)
    assert rebuilt["link-random"].drop("user").equals(release.drop("user"))


def test_a_truth_of_another_log_is_refused(log):
    release, certificate, original, truth = case(log)
    rows = truth.with_columns(original_row=pl.int_range(pl.len()))
    with pytest.raises(DataError, match="does not belong to this original"):
        run.attack(release, certificate, original, rows, ["copy"])


def test_an_attack_must_give_guesses(log, register):
    @register
    class Silent(Probe):
        name = "silent"

        def guess(self, view):
            return None

    with pytest.raises(UsageError, match="no guesses that can be scored"):
        run.attack(*case(log), ["silent"])


def test_no_finding_holds_a_user_or_a_query(log):
    release, certificate, original, truth = case(log)
    for finding in run.attack(release, certificate, original, truth, [*PAPERS, "copy", "guess"]):
        text = repr(finding.as_dict())
        assert not any(
            f"'{cell}'" in text for cell in [*original["user"].unique(), *original["query"].unique()]
        )
