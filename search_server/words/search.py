"""Asks the word index: BM25 (k1 1.2, b 0.75, as Lucene scores) over passages, with filters inside.

Tantivy counts deleted passages in its statistics until segments are merged. Each word is therefore weighted by the
quotient of its true rarity and the one that Tantivy uses, so that scores are those of an index without a history.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import tantivy
from tantivy import Occur, Query

from search_server.filters import Filters
from search_server.words import analysis, exact, layout

MAX_WORDS = 96
"""The rarest words of a longer question are asked for; the others would move no place."""
MAX_EXACT_WORDS = 48
"""Rounding averages out over many words, and each costs a read."""
_LUCENE = 1.0 / (exact.K1 + 1.0)  # Lucene leaves out BM25's constant factor; Tantivy does not


@dataclass(frozen=True, slots=True)
class WordHit:
    """One passage of the word list."""

    passage_id: int
    paper_pk: int
    score: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The analysed question: index words with their counts, in the field that holds them."""

    in_field: str
    words: tuple[tuple[str, int], ...]
    n_dropped: int = 0
    n_words: int = 0
    written: tuple[tuple[str, str], ...] = ()
    exact: dict[int, float] = field(default_factory=dict, compare=False, repr=False)


class Reader:
    """One committed state of the index. Safe to use from several threads."""

    def __init__(self, searcher: tantivy.Searcher, *, n_all: int) -> None:
        self._searcher = searcher
        self._n_all = n_all
        self._n_live = max(0, searcher.num_docs - 1)  # the state document is no passage
        self._has_deletions = n_all != searcher.num_docs
        self._weights: dict[tuple[str, str], tuple[float, float]] = {}
        self._lock = threading.Lock()
        self._counts: dict[Filters, int] = {}
        self._means = {name: exact.Means(searcher, name, self._n_live) for name in ("words", "small")}
        self._kinds = {
            kind: self.count_of(Query.term_query(layout.schema(), "kind", kind, "basic"))
            for kind in ("session", "exam")
        }

    @property
    def n_passages(self) -> int:
        """How many passages the index holds."""
        return self._n_live

    def count_of(self, query: Query) -> int:
        """How many live documents a query meets."""
        found = self._searcher.search(query, 1, count=True)
        return int(getattr(found, "count", 0) or 0)  # the library's stubs leave it out

    def known_count(self, filters: Filters) -> int | None:
        """How many passages a filter leaves, where that was counted before."""
        return self._counts.get(filters)

    def count(self, filters: Filters) -> int:
        """How many passages a filter leaves."""
        known = self._counts.get(filters)
        if known is not None:
            return known
        parts = self._filter_parts(filters)
        every = (Occur.Must, Query.exists_query("passage"))
        found = self.count_of(Query.boolean_query([every, *parts])) if parts else self._n_live
        with self._lock:
            if len(self._counts) > 1000:
                self._counts.clear()
            self._counts[filters] = found
        return found

    def idf(self, field: str, word: str) -> tuple[float, float]:
        """True rarity of an index word, and its weight relative to Tantivy's own; (0, 0) where nothing holds it."""
        key = (field, word)
        known = self._weights.get(key)
        if known is None:
            in_all = self._searcher.doc_freq(field, word)
            live = in_all
            if in_all and self._has_deletions:
                live = self.count_of(Query.term_query(layout.schema(), field, word, "freq"))
            if not live:
                known = (0.0, 0.0)
            else:
                true = idf_of(live, self._n_live)
                known = (true, true / idf_of(in_all, self._n_all))
            with self._lock:
                if len(self._weights) > 100_000:
                    self._weights.clear()
                self._weights[key] = known
        return known

    def ask(self, question: str) -> Asked:
        """Analyse a question as the index was. Small words count only where the question has no others."""
        words, small = analysis.split_small(analysis.surface_words(question))
        field = "words" if words else "small"
        stems = analysis.stems(words) if words else small
        counted = Counter(stems)
        written = dict(zip(reversed(stems), reversed(words or small), strict=True))
        known = [(word, n) for word, n in counted.items() if self.idf(field, word)[0] > 0]
        if len(known) > MAX_WORDS:
            known.sort(key=lambda item: -self.idf(field, item[0])[0] * item[1])
            known = known[:MAX_WORDS]
        return Asked(field, tuple(known), len(counted) - len(known), len(words), tuple(written.items()))

    def search(self, asked: Asked, filters: Filters, limit: int, *, is_exact: bool = True) -> list[WordHit]:
        """Return up to `limit` passages, best first; equal scores by passage id.

        Without `is_exact` lengths are as rounded as the index keeps them: scores within 5 %, in a fifth of the time.
        """
        if not asked.words:
            return []
        if not is_exact:
            return self._run(self._scored(asked), self._filter_parts(filters), limit)
        # Rounding moves neighbours past each other; a few more are taken and scored exactly.
        found = self._run(self._scored(asked), self._filter_parts(filters), limit + max(10, limit // 2))
        return self._exactly(asked, found)[:limit]

    def score_papers(
        self, asked: Asked, papers: Sequence[int], keep: Collection[int] = (), *, is_exact: bool = True
    ) -> list[WordHit]:
        """Return the best passage of each given paper by the same scores, and those of `keep`, best first.

        Passages that hold none of the words are left out.
        """
        if not asked.words or not papers:
            return []
        among = exact.among_ids("paper", papers)
        seen: Counter[int] = Counter()
        few: list[WordHit] = []
        for hit in self._run(self._scored(asked), [(Occur.Must, among)], min(2000, 50 * len(papers))):
            if seen[hit.paper_pk] < 2 or hit.passage_id in keep:
                seen[hit.paper_pk] += 1
                few.append(hit)
        return self._exactly(asked, few) if is_exact else few

    def words_of(self, asked: Asked, passage_id: int) -> list[tuple[str, float]]:
        """Return the words of the question that a passage holds with their shares of its score, the largest first."""
        shares = [
            (word, rows[passage_id]) for word, rows in self._shares(asked, [passage_id]).items() if passage_id in rows
        ]
        return sorted(shares, key=lambda share: (-share[1], share[0]))

    def _exactly(self, asked: Asked, hits: list[WordHit]) -> list[WordHit]:
        """The hits with their exact scores, ordered by them."""
        if not hits or len(asked.words) > MAX_EXACT_WORDS:
            return hits
        unknown = [hit.passage_id for hit in hits if hit.passage_id not in asked.exact]
        if unknown:
            for passage in unknown:
                asked.exact[passage] = 0.0
            for rows in self._shares(asked, unknown).values():
                for passage, score in rows.items():
                    asked.exact[passage] += score
        exact = [WordHit(hit.passage_id, hit.paper_pk, asked.exact[hit.passage_id]) for hit in hits]
        return sorted(exact, key=lambda hit: (-hit.score, hit.passage_id))

    def _shares(self, asked: Asked, passages: Sequence[int]) -> dict[str, dict[int, float]]:
        """Each word's exact share of the scores of some passages."""
        rarities = {word: self.idf(asked.in_field, word) for word, _ in asked.words}
        theirs = {word: true / weight for word, (true, weight) in rarities.items() if weight > 0}
        means = self._means[asked.in_field]
        found = exact.occurrences(self._searcher, asked.in_field, theirs, passages, means)
        return {
            word: {
                passage: n * exact.bm25(rarities[word][0], tf, length, means.true)
                for passage, (tf, length) in found.get(word, {}).items()
            }
            for word, n in asked.words
        }

    def papers_titled(self, title: str, limit: int = 20) -> list[int]:
        """Return the papers whose title has exactly the words of `title` in their order."""
        term = layout.title_term(title)
        if not term:
            return []
        found = self._searcher.search(Query.term_query(layout.schema(), "title", term, "basic"), limit * 8, count=False)
        papers = self._searcher.fast_field_values("paper", [address for _, address in found.hits])
        return list(dict.fromkeys(int(p) for p in papers if p is not None))[:limit]

    def _scored(self, asked: Asked) -> Query:
        schema = layout.schema()
        parts = [
            Query.boost_query(
                Query.term_query(schema, asked.in_field, word, "freq"), self.idf(asked.in_field, word)[1] * n * _LUCENE
            )
            for word, n in asked.words
        ]
        return Query.boolean_query([(Occur.Should, part) for part in parts])

    def _run(self, scored: Query, parts: list[tuple[Occur, Query]], limit: int) -> list[WordHit]:
        query = Query.boolean_query([(Occur.Must, scored), *parts]) if parts else scored
        found = self._searcher.search(query, max(1, limit), count=False).hits
        addresses = [address for _, address in found]
        passages = self._searcher.fast_field_values("passage", addresses)
        papers = self._searcher.fast_field_values("paper", addresses)
        hits = [
            WordHit(int(g), int(p), float(score))
            for (score, _), g, p in zip(found, passages, papers, strict=True)
            if g is not None and p is not None
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage_id))

    def _filter_parts(self, filters: Filters) -> list[tuple[Occur, Query]]:
        schema = layout.schema()
        parts: list[tuple[Occur, Query]] = []

        def must(query: Query) -> None:
            parts.append((Occur.Must, Query.const_score_query(query, 0.0)))

        if filters.topics:
            must(Query.term_set_query(schema, "topic", list(filters.topics)))
        if filters.without_topics:
            parts.append((Occur.MustNot, Query.term_set_query(schema, "topic", list(filters.without_topics))))
        if filters.kinds:
            must(Query.term_set_query(schema, "kind", list(filters.kinds)))
        if dropped := [kind for kind in filters.without_kinds if self._kinds.get(kind, 1)]:
            parts.append((Occur.MustNot, Query.term_set_query(schema, "kind", dropped)))
        if filters.year_from is not None or filters.year_to is not None:
            low, high = filters.year_from, filters.year_to
            must(
                Query.range_query(
                    schema,
                    "year",
                    tantivy.FieldType.Integer,
                    low if low is not None else -(2**31),
                    high if high is not None else 2**31,
                )
            )
        return parts


def idf_of(n_holding: int, n: int) -> float:
    """Rarity of a word that `n_holding` of `n` passages hold, as Lucene's BM25 counts it."""
    return math.log1p((max(n, n_holding) - n_holding + 0.5) / (n_holding + 0.5))
