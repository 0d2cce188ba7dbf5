"""The default fusion: candidates of all lists scored again by exact cosine and exact BM25, mixed as the question suggests.

Ranks forget how far the first entry is ahead; scores know it. Every candidate gets both scores whatever list brought it,
scaled over the candidates. How much words and meaning weigh follows the question: how sharply each side separates its
top, how rare the words are, how far the two sides agree. The coefficients were learnt on ten judged collections and
checked on each while it was left out (docs/decisions/008-fusion.md). Pure: numbers in, numbers out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from search_server.blend_weights import COEFFICIENTS

Array = np.ndarray
_DEPTH = 20
_OUT = 40.0  # the rank that stands for "not among the first twenty of this side"


@dataclass(frozen=True, slots=True)
class Blended:
    """Scores of the candidates in their order, and the two shares that each is made of."""

    scores: Array
    meaning: Array
    words: Array
    meaning_weight: float


def blend(
    cosines: Array, bm25: Array, *, idfs: Sequence[float], n_words: int, meaning: float = 1.0, words: float = 1.0
) -> Blended:
    """Score candidates. `cosines` may hold NaN (no embedding yet), `bm25` 0 (none of the words).

    `idfs` are the rarities of the question's words that the index knows, `n_words` counts all its words with a subject;
    `meaning` and `words` are the caller's weights of the two sides, relative to their defaults. Scores lie above 0.
    """
    n = len(bm25)
    known = ~np.isnan(cosines)
    if not known.any():
        share = words * _scaled(bm25)
        return Blended(share + 1e-6, np.zeros(n), share, 0.0)
    # What has no embedding yet is neither better nor worse than the others by meaning.
    cos = np.where(known, cosines, np.mean(cosines[known]))
    if not (bm25 > 0).any():
        share = meaning * _scaled(cos)
        return Blended(share + 1e-6, share, np.zeros(n), 1.0)
    ideal = float(sum(idfs)) + 1e-6
    features = _candidate_features(cos, bm25, ideal)
    question = _question_features(cos, bm25, idfs, n_words, ideal)
    # Softplus: no side ever counts against a candidate for being better.
    factors = np.logaddexp(0.0, question @ COEFFICIENTS)
    shares = features * factors
    of_meaning = meaning * shares[:, 0::2].sum(axis=1)
    of_words = words * shares[:, 1::2].sum(axis=1)
    # A question's own constant moves no place; it keeps scores above zero, where boosts multiply them.
    low_meaning, low_words = float(of_meaning.min()), float(of_words.min())
    of_meaning, of_words = of_meaning - low_meaning, of_words - low_words
    spread = float(np.ptp(of_meaning)), float(np.ptp(of_words))
    scale = max(1e-9, spread[0] + spread[1])
    of_meaning, of_words = of_meaning / scale, of_words / scale
    return Blended(of_meaning + of_words + 1e-6, of_meaning, of_words, spread[0] / scale)


def _scaled(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _ranks(values: Array, is_in: Array) -> Array:
    """Ranks from 0 of the first twenty; all others stand far behind."""
    order = np.argsort(-values, kind="stable")
    ranks = np.full(len(values), _OUT)
    for rank, place in enumerate(order[:_DEPTH]):
        if is_in[place]:
            ranks[place] = rank
    return ranks


def _candidate_features(cos: Array, bm25: Array, ideal: float) -> Array:
    every = np.ones(len(cos), dtype=bool)
    return np.stack(
        [
            _scaled(cos),
            _scaled(bm25),
            (cos - cos.max()) * 4,
            (bm25 - bm25.max()) / ideal * 3,
            20 / (20 + _ranks(cos, every)),
            20 / (20 + _ranks(bm25, bm25 > 0)),
        ],
        axis=1,
    )


def _question_features(cos: Array, bm25: Array, idfs: Sequence[float], n_words: int, ideal: float) -> Array:
    by_cos = np.argsort(-cos, kind="stable")[:_DEPTH]
    by_words = np.argsort(-bm25, kind="stable")[:_DEPTH]
    by_words = by_words[bm25[by_words] > 0]
    a, b = cos[by_cos], bm25[by_words]
    a_gap, b_gap = a[0] - _at(a, 1), b[0] - _at(b, 1)
    agreement = len(set(by_cos[:10].tolist()) & set(by_words[:10].tolist())) / 10
    rarity = np.asarray(idfs) if len(idfs) else np.zeros(1)
    return np.array(
        [
            1.0,
            (a[0] - 0.6) * 4,
            a_gap * 10,
            (a[0] - _at(a, 9)) * 5,
            b_gap / ideal * 10,
            (b[0] - _at(b, 9)) / ideal * 5,
            (b[0] / ideal - 0.5) * 3,
            agreement * 2 - 0.6,
            float(rarity.mean()) / 3 - 1.5,
            float(rarity.max()) / 4 - 1.8,
            np.log1p(n_words) - 2,
            float(_scaled(bm25)[by_cos[:3]].mean()) * 2 - 1,
            float(_scaled(cos)[by_words[:3]].mean()) * 2 - 1,
            b_gap / (b[0] + 1e-6) * 3,
            a_gap / (a[0] - a[-1] + 1e-6) * 2 - 0.5,
            b_gap / (b[0] - b[-1] + 1e-6) * 2 - 0.5,
        ]
    )


def _at(values: Array, place: int) -> float:
    return float(values[min(place, len(values) - 1)])
