"""`threshold-dp`: what it counts, what its noise is, and that (ε, δ) hold for every small case."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import querycloak as qc
from querycloak.cli import main
from querycloak.dictionary import Dictionaries
from querycloak.errors import MissingExtra, ParameterError, UsageError
from querycloak.log import Batch
from querycloak.methods import dp_counts
from querycloak.methods.dp_counts import threshold as threshold_dp
from querycloak.methods.dp_counts.threshold import ThresholdDp, delta_of, epsilon_of, laplace_tail
from querycloak.testing.conformance import Harness, cut
from querycloak.testing.strategies import cuts, logs
from tests.reference import naive_counts as naive

#: Noise that is 0 but for one draw in 10²¹, where the settings only have to be allowed.
STILL = {"b": 0.02, "b_q": 0.02}
SMALL = [(1, 2, 0.7, 0.9), (2, 2, 0.4, 0.6), (2, 5, 1.0, 1.5), (3, 4, 0.8, 2.0), (3, 6, 1.5, 1.0)]


def close_to(exact: float, told: float) -> bool:
    return exact <= told <= exact * (1 + 1e-6)


@pytest.mark.parametrize("b", [0.3, 1.0, 7.5])
def test_the_tail_is_the_sum_of_its_probabilities(b):
    least = np.arange(-30, 31)
    summed = [sum(naive.laplace(x, b) for x in range(t, 900)) for t in least.tolist()]
    assert laplace_tail(least, b) == pytest.approx(summed, rel=1e-9)


@pytest.mark.dp
@pytest.mark.parametrize(("d", "b", "b_q"), [(1, 0.3, 0.7), (20, 10.0, 20.0), (7, 3.3, 1.1)])
def test_epsilon_is_not_below_what_opendp_says_about_its_noise(d, b, b_q):
    from querycloak.accounting import library

    opendp = library()
    vector = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    distance = opendp.metrics.l1_distance(T="i64")
    parts = [opendp.measurements.make_laplace(vector, distance, scale=s).map(d) for s in (b, b_q)]
    assert epsilon_of(d, b, b_q) == pytest.approx(sum(parts))
    assert epsilon_of(d, b, b_q) >= d / b + d / b_q - 1e-12


@pytest.mark.parametrize(("d", "K", "b", "b_q"), SMALL)
def test_no_history_more_or_less_tells_more_than_was_promised(d, K, b, b_q):
    """All logs of two queries asked up to three times, and all that one person may add, exactly."""
    epsilon, delta = epsilon_of(d, b, b_q), delta_of(d, K, b)
    for base in product(range(4), repeat=2):
        without = naive.tables(base, K, b, b_q, top=60)
        for added in naive.histories(d, 2):
            counts = [n + m for n, m in zip(base, added, strict=True)]
            with_one = naive.tables(counts, K, b, b_q, top=60)
            assert naive.excess(with_one, without, epsilon) <= delta + 1e-12
            assert naive.excess(without, with_one, epsilon) <= delta + 1e-12


@pytest.mark.parametrize(("d", "K", "b", "b_q"), SMALL[:3])
def test_a_history_exchanged_costs_twice(d, K, b, b_q):
    epsilon, delta = 2 * epsilon_of(d, b, b_q), 2 * delta_of(d, K, b)
    for base in product(range(3), repeat=2):
        made = [
            naive.tables([n + m for n, m in zip(base, added, strict=True)], K, b, b_q, top=60)
            for added in naive.histories(d, 2)
        ]
        assert max(naive.excess(a, c, epsilon) for a in made for c in made) <= delta + 1e-12


@pytest.mark.parametrize(("d", "K", "b", "b_q"), SMALL)
def test_delta_is_what_the_worst_history_of_queries_of_ones_own_reaches(d, K, b, b_q):
    """The bound is not loose: some split of d searches comes near it, by the chance that one is shown."""
    shown = [1 - naive.line(n, K, b, b_q, top=60)[0] for n in range(d + 1)]
    splits = [added for added in naive.histories(d, d) if list(added) == sorted(added)]
    worst = max(sum(shown[n] for n in added) for added in splits)
    assert worst <= delta_of(d, K, b) <= 1.5 * worst


@pytest.mark.parametrize(("d", "K", "b"), [(1, 5, 1.0), (4, 9, 2.0), (6, 30, 10.0)])
def test_delta_is_the_largest_share_over_all_splits(d, K, b):
    tail = [sum(naive.laplace(x, b) for x in range(K + 1 - n, 2000)) for n in range(1, d + 1)]
    assert close_to(max(d * chance / n for n, chance in enumerate(tail, 1)), delta_of(d, K, b))


def test_delta_falls_with_the_threshold_and_never_to_nothing():
    found = [delta_of(20, K, 10.0) for K in (1, 50, 100, 200, 10**6)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 1.0
    assert found[-1] > 0


@pytest.mark.dp
@pytest.mark.parametrize("b", [0.8, 3.0])
def test_the_noise_is_the_discrete_laplace(b):
    """Chi-square over 9 cells of 200,000 draws. OpenDP cannot be seeded: a false alarm once in 10⁶ runs."""
    draws = dp_counts.add_laplace(np.full(200_000, 5, np.int64), b) - 5
    edge = math.ceil(2 * b)
    inner = np.unique(np.linspace(-edge, edge, 8).astype(int))
    cells = [(-(10**6), inner[0] - 1), *zip(inner, [*(inner[1:] - 1), edge], strict=True), (edge + 1, 10**6)]
    found = np.array([((draws >= low) & (draws <= high)).sum() for low, high in cells])
    within = [range(max(low, -400), min(high, 400) + 1) for low, high in cells]
    share = np.array([sum(naive.laplace(x, b) for x in cell) for cell in within])
    assert share.sum() == pytest.approx(1)
    assert far(found, share) < 1


@pytest.mark.dp
def test_the_method_draws_once_to_choose_and_anew_to_show():
    """30,000 queries asked 3 times each: how many pass, and what those show. False alarm: twice 10⁻⁶."""
    n, K, b, b_q, texts = 3, 3, 1.5, 2.0, Dictionaries()
    method = ThresholdDp(ThresholdDp.Settings(d=1, K=K, b=b, b_q=b_q), bytes(32), texts)
    query = np.repeat(texts.query.intern([f"q{number}" for number in range(30_000)]), n)
    row = np.arange(query.size)
    method.push(Batch.of({"row": row, "seq": row + 1, "user": row, "query": query}, texts))
    method.close()
    shown = method.counts()["count"].to_numpy()
    chance = laplace_tail(np.array([K + 1 - n]), b)[0]
    assert abs(shown.size - 30_000 * chance) < 4.9 * math.sqrt(30_000 * chance * (1 - chance))
    share = naive.line(n, -(10**6), b, b_q, top=9)[1:]  # all pass: what is left is the count
    assert far(np.bincount(np.minimum(shown, 9), minlength=10), share) < 1


def far(found: np.ndarray, share: np.ndarray) -> float:
    """Give the chi-square distance as a share of what chance exceeds once in 10⁶ runs."""
    from scipy.stats import chi2

    expected = found.sum() * share
    return float(((found - expected) ** 2 / expected).sum() / chi2.isf(1e-6, share.size - 1))


@pytest.mark.dp
def test_each_count_gets_a_draw_of_its_own():
    one, other = (dp_counts.add_laplace(np.zeros(100_000, np.int64), 5.0) for _ in range(2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.0155  # 4.9 deviations of 1/√n: once in 10⁶ runs
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.0155


@pytest.mark.dp
def test_more_numbers_than_go_to_opendp_at_once_stay_in_their_order(monkeypatch):
    monkeypatch.setattr(dp_counts, "_SLICE", 7)
    counts = np.arange(100, dtype=np.int64) * 1000
    assert dp_counts.add_laplace(counts, 0.02).tolist() == counts.tolist()
    assert dp_counts.add_laplace(counts[:0], 0.02).dtype == np.int64


@pytest.mark.dp
@settings(max_examples=60)
@given(log=logs(min_size=5), at=cuts(), d=st.integers(1, 4))
def test_what_is_shown_is_what_loops_count(log, at, d):
    """With noise that is 0, the queries above the threshold are those of the naive twin, with its counts."""
    harness = Harness(ThresholdDp, ThresholdDp.Settings(d=d, K=d, **STILL), log)
    method = harness.make()
    for piece in cut(harness.batch, at):
        method.push(piece)
    asked = harness.frame.sort("row").select("user", "query", "time").iter_rows()
    expected = naive.first_searches(asked, d)
    state = method.snapshot()
    assert Counter(harness.texts.query.decode(state["counted_query"])) == expected
    method.close()
    table = method.counts()
    assert dict(table.iter_rows()) == {query: n for query, n in expected.items() if n > d}


def searches(*lines: tuple[str, str, str]) -> pl.DataFrame:
    made = pl.DataFrame(lines, schema=["user", "query", "time"], orient="row")
    return made.with_columns(time=("2006-03-01 " + pl.col("time")).str.to_datetime(time_zone="UTC"))


@pytest.fixture
def counted(tmp_path):
    def count(frame, **chosen):
        path = tmp_path / "log.parquet"
        frame.write_parquet(path)
        table = qc.protect(path, "threshold-dp", **(STILL | chosen)).log.frame
        return dict(zip(table["query"], table["count"], strict=True))

    return count


@pytest.mark.dp
def test_the_first_searches_by_time_count_wherever_they_stand_in_the_file(counted):
    late = [(f"u{n}", "late", "12:00") for n in range(9)]
    early = [(f"u{n}", "early", "08:00") for n in range(9)]
    assert counted(searches(*late, *early), d=1, K=3) == {"early": 9}
    assert counted(searches(*late, *early), d=2, K=3) == {"early": 9, "late": 9}


@pytest.mark.dp
def test_clicks_are_not_searches(counted):
    clicks = [(f"u{n}", "one search", "08:00") for n in range(9)] * 4
    later = [(f"u{n}", "another", "09:00") for n in range(9)]
    assert counted(searches(*clicks, *later), d=2, K=5) == {"one search": 9, "another": 9}
    assert counted(searches(*clicks, *later), d=2, K=10) == {}


@pytest.mark.dp
def test_one_person_moves_no_more_than_d_counts(counted):
    flood = [("bot", "buy this", f"{hour:02d}:{minute:02d}") for hour in range(24) for minute in range(60)]
    others = [(f"u{n}", "weather", "08:00") for n in range(30)]
    assert counted(searches(*flood, *others), d=3, K=10) == {"weather": 30}


@pytest.mark.dp
def test_spellings_are_queries_of_their_own(counted):
    asked = [(f"u{n}", query, "08:00") for n in range(9) for query in ("Rain", "rain", "rain ")]
    assert counted(searches(*asked), d=3, K=5) == {"Rain": 9, "rain": 9, "rain ": 9}


@pytest.mark.dp
def test_a_count_is_never_below_nothing(counted):
    asked = [(f"u{n}", f"q{n % 40}", "08:00") for n in range(120)]
    shown = counted(searches(*asked), d=1, K=2, b=0.3, b_q=50.0)
    assert shown
    assert min(shown.values()) == 0  # 40 counts of 3 with so much noise: some are clipped


def promise(**chosen):
    return ThresholdDp.promise(ThresholdDp.Settings(**chosen))


def test_the_promise_states_both_numbers_rounded_up_and_both_neighbours():
    told = promise()
    assert told.statement == (
        "the table is (ε, δ)-differentially private for one history more or less, ε = 3, δ = 4.35e-7; "
        "for one history exchanged, both twice"
    )
    assert told.facts["epsilon"] == 3.0
    assert told.facts["epsilon_if_exchanged"] == 6.0
    assert close_to(20 * naive_tail(170, 10.0), told.facts["delta"])
    assert told.facts["delta_if_exchanged"] == 2 * told.facts["delta"]
    assert "ε = 13.4, δ = 0.0345;" in promise(d=2, K=2, b=0.3, b_q=0.3).statement  # 13.33…


def naive_tail(least: int, b: float) -> float:
    return sum(naive.laplace(x, b) for x in range(least, least + 3000))


def test_a_log_is_promised_nothing():
    told = promise(output="log", d=3, K=1)
    assert told.statement.startswith("no guarantee of privacy")
    assert "epsilon" not in told.facts


@pytest.mark.parametrize(
    ("chosen", "what"),
    [
        ({"d": 0}, "`d` must be"),
        ({"K": 0}, "`K` must be"),
        ({"b": 0.0}, "`b` must be"),
        ({"b": math.inf}, "`b` must be"),
        ({"b_q": math.nan}, "`b_q` must be"),
        ({"output": "graph"}, "`output` must be one of counts, log"),
        ({"K": 20}, "δ = 1 is no promise"),
        ({"d": 3, "K": 2, "b": 1.0}, "is no promise"),
    ],
)
def test_settings_that_promise_nothing_are_refused(chosen, what):
    with pytest.raises(ParameterError, match=what):
        ThresholdDp.Settings(**chosen)


def test_the_hint_names_the_least_threshold_that_will_do():
    with pytest.raises(ParameterError, match=r"K=162 gives") as error:
        ThresholdDp.Settings(K=5)
    assert delta_of(20, 162, 10.0) <= 1e-6 < delta_of(20, 161, 10.0)
    assert error.value.exit_status == 2


def test_without_the_extra_it_says_so_before_the_log_is_read(tmp_path, monkeypatch):
    def missing(purpose):
        raise MissingExtra("dp", purpose)

    monkeypatch.setattr(dp_counts, "library", missing)
    with pytest.raises(MissingExtra, match=r"noise for counts needs the extra `dp`"):
        qc.protect(tmp_path / "not there.csv", "threshold-dp")


@pytest.mark.dp
@pytest.mark.parametrize("before", ["z-anonymity", "swap"])
def test_methods_in_which_others_depend_on_a_person_are_refused_before_it(tmp_path, before):
    with pytest.raises(UsageError, match=before):
        qc.protect(searches_file(tmp_path), before, "threshold-dp")


def searches_file(folder: Path) -> Path:
    asked = [(f"user{n:03d}", query, "08:00") for n in range(60) for query in ("rain", f"only {n}")]
    path = folder / "log.csv"
    searches(*asked).write_csv(path)
    return path


@pytest.mark.dp
def test_rules_before_it_are_fine(tmp_path):
    release = qc.protect(searches_file(tmp_path), "rules", "threshold-dp", d=2, K=20, b=1.0, b_q=1.0)
    assert release.log.frame["query"].to_list() == ["rain"]
    assert [part["audit"] for part in release.certificate["methods"]] == ["kept", "not checkable"]


@pytest.mark.dp
def test_the_certificate_holds_nothing_that_only_the_log_could_tell(tmp_path):
    """Two logs that differ in everything countable get the same certificate, name and hash aside."""
    searches(*[(f"u{n}", "other", "08:00") for n in range(7)]).write_csv(tmp_path / "few.csv")
    told = []
    for log in (searches_file(tmp_path), tmp_path / "few.csv"):
        document = qc.protect(log, "threshold-dp", seed=1, output=tmp_path / "out.csv").certificate
        del document["release"]["sha256"]
        told.append(json.dumps(document, sort_keys=True))
    assert told[0] == told[1]


@pytest.mark.dp
def test_the_command_line_from_log_to_verified_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    searches_file(tmp_path)
    run, protect = CliRunner().invoke, ["protect", "log.csv", "-m", "threshold-dp"]
    chosen = ["-s", "d=2", "-s", "K=20", "-s", "b=1", "-s", "b_q=1"]
    done = run(main, [*protect, *chosen, "-o", "out.csv", "--truth", "t.parquet", "--explain"])
    assert done.exit_code == 0, done.stderr
    assert "released a table of 1 line, from 120 records" in done.stderr
    assert "threshold-dp: counted, not shown: 120" in done.stderr
    head, line = Path("out.csv").read_text().splitlines()
    assert head == "query,count"
    assert line.partition(",")[0] == "rain"
    assert abs(int(line.partition(",")[2]) - 60) < 60  # e^-60: never
    for evidence in ([], ["--original", "log.csv", "--truth", "t.parquet"]):
        assert run(main, ["verify", "out.csv", *evidence]).exit_code == 0
    private = Path("out.csv.certificate.json").read_text() + done.stderr
    assert "user0" not in private
    assert "rain" not in private
    for wrong in (
        "K=3",
        "k=300",
        "d=0",
        "b=none",
    ):  # too low; no such setting; no number of searches; no number
        assert run(main, [*protect, "-s", wrong, "-o", "no.csv"]).exit_code == 2
    assert not Path("no.csv").exists()


@pytest.mark.dp
def test_output_log_gives_the_first_searches_of_queries_that_passed(tmp_path):
    log = searches_file(tmp_path)
    as_log = STILL | {"threshold-dp.output": "log"}  # plain `output` is where `protect` writes to
    release = qc.protect(log, "threshold-dp", d=1, K=5, seed=1, **as_log)
    assert release.log.frame["query"].unique().to_list() == ["rain"]
    assert sorted(release.log.frame["user"]) == [f"user{n:03d}" for n in range(60)]
    assert release.report.reasons == {"threshold-dp": {"beyond the person's share": 60}}
    assert release.certificate["randomness"]["reproducible"] is False
    less = qc.protect(log, "threshold-dp", d=2, K=5, **as_log)
    assert less.report.reasons == {"threshold-dp": {"its query stayed below the threshold": 60}}
    with pytest.raises(RuntimeError):
        ThresholdDp(threshold_dp.ThresholdDp.Settings(), bytes(32), Dictionaries()).counts()
