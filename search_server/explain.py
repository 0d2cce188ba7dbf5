"""Why each hit stands where it stands: lists side by side, shares of every score, words that counted, boosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_server.fusion import LISTS, Entry, Fused, ListName
from search_server.words.search import Asked, Reader

_TOP = 20


def explain_hit(row: Fused, place: int, words: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """What one hit's score is made of."""
    return {
        "shares": {name: round(value, 8) for name, value in row.shares.items()},
        "exact": {name: round(value, 6) for name, value in row.exact.items()},
        "boosts": {name: round(factor, 6) for name, factor in row.boosts.items()},
        "rank_without_boosts": row.rank_before if row.rank_before is not None else place,
        "words": [{"word": word, "score": round(score, 6)} for word, score in words],
    }


def explain_answer(
    *,
    fusion: str,
    weights: Mapping[ListName, float],
    per_list: int,
    lists: Mapping[ListName, Sequence[Entry]],
    names: Mapping[int, str],
    asked: Asked | None,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """What holds for the whole answer: the rule, the weights, the tops of the lists."""
    return {
        "fusion": fusion,
        "weights": {name: weights.get(name, 0.0) for name in LISTS},
        "per_list": per_list,
        "words": [word for word, _ in asked.words] if asked else [],
        "words_left_out": asked.n_dropped if asked else 0,
        "settings": dict(settings),
        "lists": {
            name: [
                {
                    "rank": e.rank,
                    "paper_id": names.get(e.paper_pk),
                    "passage_id": e.passage_id,
                    "score": round(e.score, 6),
                }
                for e in lists.get(name, ())[:_TOP]
            ]
            for name in LISTS
        },
    }


def words_of_hits(reader: Reader, asked: Asked, rows: Sequence[Fused]) -> dict[int, list[tuple[str, float]]]:
    """For each hit's passage, the words of the question that it holds and what each gave; as the person wrote them."""
    written = dict(asked.written)
    return {
        row.paper_pk: [(written.get(word, word), score) for word, score in reader.words_of(asked, row.passage_id)]
        for row in rows
        if row.passage_id
    }
