"""Exact BM25 from an index that rounds: Tantivy keeps lengths in one byte and counts deleted passages.

For a few passages each word is asked for alone; its score gives back how often the passage holds it, because all else in
Tantivy's formula is known. With that, the true length and the true rarity, the score is BM25's own, as an index without
rounding and without a history would give it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import tantivy
from tantivy import Occur, Query

from search_server.words import layout

K1, B = 1.2, 0.75
_FREE = 24


def _rounded_lengths() -> list[int]:
    """The lengths that one byte can say: exact up to 40, then eight steps to each doubling (Lucene's SmallFloat)."""
    found: list[int] = []
    for code in range(256):
        if code < _FREE:
            found.append(code)
            continue
        bits, shift = (code - _FREE) & 7, ((code - _FREE) >> 3) - 1
        found.append(_FREE + (bits if shift == -1 else (bits | 8) << shift))
    return found


_LENGTHS = _rounded_lengths()


def rounded_length(n_words: int) -> int:
    """The length that Tantivy remembers for a text of `n_words` words."""
    return _LENGTHS[bisect_right(_LENGTHS, n_words) - 1]


def bm25(idf: float, n_occurrences: float, n_words: int, mean_words: float) -> float:
    """One word's share of a score, as Lucene and bm25s (method "lucene") count it."""
    if n_occurrences <= 0:
        return 0.0
    return idf * n_occurrences / (n_occurrences + K1 * (1 - B + B * n_words / max(mean_words, 1e-9)))


class Means:
    """Mean lengths of a field: the one that Tantivy uses, and the true one."""

    def __init__(self, searcher: tantivy.Searcher, field: str, n_live: int) -> None:
        self._searcher = searcher
        self._field = field
        self._n_live = n_live
        self._tantivy: float | None = None
        self._true: float | None = None

    @property
    def true(self) -> float:
        """Mean over the passages that are there."""
        if self._true is None:
            asked = {"n": {"sum": {"field": length_field(self._field)}}}
            found = self._searcher.aggregate(Query.all_query(), asked)
            self._true = float(found["n"]["value"] or 0.0) / max(1, self._n_live)
        return self._true

    def of_tantivy(self, word: str) -> float:
        """The mean that Tantivy divides by, from its own explanation of one score."""
        if self._tantivy is None:
            query = Query.term_query(layout.schema(), self._field, word, "freq")
            hits = self._searcher.search(query, 1, count=False).hits
            told = json.loads(query.explain(self._searcher, hits[0][1]).to_json()) if hits else {}
            self._tantivy = _find(told, "avgdl") or 1.0
        return self._tantivy


def length_field(field: str) -> str:
    """The fast field that holds a text field's true length."""
    return f"n_{field}"


def among_ids(name: str, ids: Sequence[int]) -> Query:
    """A query that meets documents by a number and adds nothing to their score.

    One term query for each: ten times faster than the library's query for a set of terms, which builds an automaton.
    """
    schema = layout.schema()
    return Query.const_score_query(
        Query.boolean_query([(Occur.Should, Query.term_query(schema, name, number, "basic")) for number in ids]), 0.0
    )


def occurrences(
    searcher: tantivy.Searcher,
    field: str,
    words: Mapping[str, float],
    passages: Sequence[int],
    means: Means,
) -> dict[str, dict[int, tuple[int, int]]]:
    """Return for each word the passages that hold it: how often, and their true length.

    `words` come with the rarity that Tantivy gives them.
    """
    schema = layout.schema()
    among = (Occur.Must, among_ids("passage", passages))
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for word, rarity in words.items():
        query = Query.boolean_query([(Occur.Must, Query.term_query(schema, field, word, "freq")), among])
        hits = searcher.search(query, len(passages), count=False).hits
        if not hits:
            found[word] = {}
            continue
        addresses = [address for _, address in hits]
        ids = searcher.fast_field_values("passage", addresses)
        lengths = searcher.fast_field_values(length_field(field), addresses)
        whole = rarity * (K1 + 1)
        mean = means.of_tantivy(word)
        rows: dict[int, tuple[int, int]] = {}
        for (score, _), passage, length in zip(hits, ids, lengths, strict=True):
            n_words = int(length or 0)
            norm = K1 * (1 - B + B * rounded_length(n_words) / mean)
            rows[int(passage or 0)] = (max(1, round(score * norm / max(whole - score, 1e-9))), n_words)
        found[word] = rows
    return found


def _find(told: Mapping[str, object], name: str) -> float | None:
    """A figure in an explanation, by how its description begins."""
    if str(told.get("description", "")).startswith(name):
        return float(str(told["value"]))
    details = told.get("details")
    for part in details if isinstance(details, list) else ():
        value = _find(part, name)
        if value is not None:
            return value
    return None
