"""What replaced queries keep of their meaning: topics of profiles, likeness, and how they read."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import distinct
from querycloak.errors import NotApplicable
from querycloak.kernels.arrays import spans
from querycloak.log import IntArray
from querycloak.measures.base import Kind, LogPair, Measure, Unit, words_of

_TOPICS: Final = {"categories": "categories", "paper_4": "paper-4", "paper_19": "paper-19"}


class _Phrases:
    """The concepts of a column of queries, with the row that each is of."""

    def __init__(self, queries: pl.Series) -> None:
        from querycloak.text.reader import TextReader

        texts, number = distinct(queries)
        mapped = TextReader().read(texts).concepts
        self.sizes = np.diff(mapped.start)[number]
        self.row = np.repeat(np.arange(number.size), self.sizes)
        self.concept: IntArray = mapped.concept[spans(mapped.start[number], self.sizes)]


def _released_by(pair: LogPair) -> pl.Series:
    """Return the person behind each row of the release: by the truth, or else by equal labels."""
    if pair.truth is not None and pair.truth.height == pair.released.height:
        return pair.truth.sort("released_row")["original_user"]
    pair.both("user")
    return pair.released["user"]


class TopicLoss(Measure):
    """How far profiles by topic have moved: paper 002, equations 9 to 11."""

    name = "topic_loss"
    help = "mean Jensen–Shannon divergence of people's profiles: 16 categories, paper 002's 4 and 19 topics"
    unit, kind = Unit.SHARE, Kind.LOSS
    headline = "categories"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Average over the people of the release."""
        from querycloak.measures.profiles import divergences, grouped
        from querycloak.text.concept_space import partition_by_topic
        from querycloak.text.senses import concept_lexicon

        pair.both("query")
        author, found = _released_by(pair), {}
        people = author.drop_nulls().unique()
        place = pl.DataFrame({"user": people, "place": np.arange(people.len(), dtype=np.int64)})
        sides = []
        for frame, who in ((pair.original, pair.original["user"]), (pair.released, author)):
            phrases = _Phrases(frame["query"])
            numbers = pl.DataFrame({"user": who}).join(place, on="user", how="left", maintain_order="left")
            sides.append((numbers["place"].fill_null(-1).to_numpy()[phrases.row], phrases.concept))
        for name, wanted in _TOPICS.items():
            topics = partition_by_topic(concept_lexicon(), wanted)
            profiles = [
                part
                for person, concept in sides
                for part in grouped(person, topics.of[concept].astype(np.int64), people.len())
            ]
            lost = divergences(len(topics.names), *profiles)
            known = lost[~np.isnan(lost)]
            if not known.size:
                raise NotApplicable("nobody has a known phrase in both logs")
            found[name] = float(known.mean())
        return found


class MeaningKept(Measure):
    """How alike each phrase is to the one it replaced, by eq. 5 over WordNet."""

    name = "meaning_kept"
    help = "mean likeness (paper 002, eq. 5) of phrases to those they replaced, and the share unchanged"
    unit, kind = Unit.SHARE, Kind.USE
    headline = "similarity"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Compare phrase by phrase; needs the truth to know which replaced which."""
        from querycloak.text.concept_space import ConceptModel, ConceptSpec

        if pair.truth is None:
            raise NotApplicable("needs the truth file")
        pair.both("query")
        asked = pair.original.select(pl.col("row").cast(pl.Int64), "query")
        rows = pair.truth.sort("released_row").select(row=pl.col("original_row").cast(pl.Int64))
        origin = rows.join(asked, on="row", how="left", maintain_order="left")["query"]
        before, after = _Phrases(origin), _Phrases(pair.released["query"])
        same = before.sizes == after.sizes
        old, new = before.concept[same[before.row]], after.concept[same[after.row]]
        if not old.size:
            raise NotApplicable("no released query has as many known phrases as the one it came from")
        space = ConceptModel(ConceptSpec()).space
        kept = (space.candidates.domain[old] >= 0) & (space.candidates.domain[new] >= 0)
        alike = space.similarities(old[kept], new[kept])
        return {
            "similarity": float(alike.mean()) if alike.size else float("nan"),
            "unchanged": float((old == new).mean()),
            "phrases": int(old.size),
            "rows_compared": float(same.mean()),
        }


class Readability(Measure):
    """How much a release reads like what people type."""

    name = "readability"
    help = "share of released words that people of the log use too, and words per query before and after"
    unit, kind = Unit.SHARE, Kind.USE
    headline = "words_of_the_log"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Compare the words of both logs."""
        before, after = pair.both("query")
        typed, shown = words_of(before), words_of(after)
        if not shown.len():
            raise NotApplicable("the release has no words")
        return {
            "words_of_the_log": float(shown.is_in(typed.unique().implode()).mean()),  # type: ignore[arg-type]
            "words_per_query_before": typed.len() / before.len(),
            "words_per_query_after": shown.len() / after.len(),
        }
