"""The synthetic log: records a second and memory; and its statistics beside those of AOL 2006."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from papers.p001.results import PAPER_TABLE_3
from tests.support.log_statistics import Statistics, describe

from benchmarks.common import peak_gigabytes
from querycloak.log import Log
from querycloak.synthetic import generate, marketing, pieces
from querycloak.synthetic.marketing import correlations, count_terms, with_revenue

SEED = 7
#: At this many users the log has a little over a million lines.
STATISTICS_USERS = 30_000
AOL_USERS = 657_426
#: Figures of a term, and how paper 001 calls them.
FIGURES = {"frequency": "term frq.", "users": "user frq."} | {
    name: name for name in ("bid", "clicks", "impressions", "revenue")
}


def measure(scale: float) -> dict[str, Any]:
    """Generate a log piece by piece and keep nothing."""
    users = int(STATISTICS_USERS * scale)
    generate(1, SEED)  # the fixed world is built once per process
    begin = time.perf_counter()
    records = sum(len(piece) for piece in pieces(users, SEED))
    seconds = time.perf_counter() - begin
    return {
        "users": users,
        "records": records,
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds),
        "peak_memory_mb": round(1000 * peak_gigabytes()),
    }


def different_queries(scale: float) -> dict[str, Any]:
    """Count lines and different queries (by 64-bit hash) of a log with as many users as AOL's."""
    users, lines, hashes = int(AOL_USERS * scale), 0, np.empty(0, np.uint64)
    for piece in pieces(users, SEED):
        lines += len(piece)
        hashes = np.union1d(hashes, piece.frame["query"].unique().hash(seed=0).to_numpy())
    return {"users": users, "lines": lines, "different_queries": hashes.size, "share": hashes.size / lines}


def statistics(scale: float) -> dict[str, Any]:
    """Print the tables of docs/explanation/made-up-log.md."""
    log = generate(int(STATISTICS_USERS * scale), SEED)
    print("\n".join(table(describe(log.frame))), end="\n\n")
    print("\n".join(marketing_table(log, SEED)))
    return {}


def table(ours: Statistics) -> Iterator[str]:
    """Yield the statistics as a Markdown table beside the published figures."""
    yield "| figure | made-up log | AOL 2006 | source |"
    yield "| --- | ---: | ---: | --- |"
    for name, made_up, published, source in _rows(ours):
        yield f"| {name} | {made_up} | {published} | {source} |"


def _rows(s: Statistics) -> Iterator[tuple[str, str, str, str]]:
    yield "users", f"{s.users:,}", "657,426", "a"
    yield "lines", f"{s.lines:,}", "36,389,567", "a"
    yield "new queries", f"{s.new_queries:,}", "21,011,340", "a"
    yield "requests for a next page", f"{s.next_pages:,}", "7,887,022", "a"
    yield "click-through events", f"{s.click_events:,}", "19,442,629", "a"
    yield "lines without click-through", f"{s.lines_without_click:,}", "16,946,938", "a"
    yield "different queries", f"{s.distinct_queries:,}", "10,154,742", "a"
    yield "new queries per user, mean", f"{s.new_queries / s.users:.1f}", f"{21_011_340 / 657_426:.1f}", "b"
    yield "searches per user, mean", f"{s.searches_per_user:.1f}", f"{28_898_362 / 657_426:.1f}", "b"
    yield "searches per user, median", f"{s.median_searches_per_user:.0f}", "", ""
    yield "lines per user, mean", f"{s.lines_per_user:.1f}", f"{36_389_567 / 657_426:.1f}", "b"
    yield "lines per user, median", f"{s.median_lines_per_user:.0f}", "17", "c"
    yield "users with a single line", f"{s.users_with_one_line:.1%}", "8.7%", "c"
    yield "share of lines by the busiest fifth of users", f"{s.share_of_busiest_fifth:.0%}", "70%", "d"
    yield "different queries per new query", f"{s.distinct_queries / s.new_queries:.1%}", "48.3%", "b"
    yield "different queries per line", f"{s.distinct_queries / s.lines:.1%}", "27.9%", "b"
    yield "lines with a click", f"{s.click_events / s.lines:.1%}", "53.4%", "b"
    yield "searches with a click", f"{s.clicked_searches:.1%}", "41.4%", "b"
    yield "clicks per search with a click", f"{_clicks_per_clicked(s):.2f}", "1.63", "b"
    yield "next pages per new query", f"{s.next_pages / s.new_queries:.3f}", "0.375", "b"
    published = ("45%", "13%", "9%")
    for rank, (share, theirs) in enumerate(zip(s.rank_shares, published, strict=True), start=1):
        yield f"clicks on rank {rank}", f"{share:.0%}", theirs, "d"
    yield "searches that repeat one of the same user", f"{s.repeated:.1%}", "33% (Yahoo!)", "e"
    yield "words per new query, mean", f"{s.words_per_query:.2f}", "", ""
    yield "share of the ten commonest queries", f"{s.share_of_top_ten:.1%}", "", ""
    yield "different queries made only once", f"{s.asked_once:.1%}", "", ""
    yield "busiest and quietest hour", f"{s.busiest_hour} h, {s.quietest_hour} h", "", ""


def marketing_table(log: Log, seed: int) -> Iterator[str]:
    """Yield the correlations of the marketing figures beside the paper's."""
    figures = with_revenue(count_terms(log).join(marketing(log, seed), on="term"))
    ours = correlations(figures)
    yield "| correlation of | made-up figures | paper 001 |"
    yield "| --- | ---: | ---: |"
    for place, a in enumerate(FIGURES):
        for b in reversed(list(FIGURES)[place + 1 :]):
            theirs = PAPER_TABLE_3[f"{FIGURES[a]} / {FIGURES[b]}"]
            yield f"| {a}, {b} | {ours[a, b]:.3f} | {theirs:.3f} |"


def _clicks_per_clicked(s: Statistics) -> float:
    return s.click_events / (s.clicked_searches * s.searches)
