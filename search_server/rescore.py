"""Candidates of the three lists with their exact scores, made into one fused order by the blend. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from search_server.blend import blend
from search_server.fusion import LISTS, Entry, Fused, ListName, order
from search_server.words.search import WordHit


@dataclass(slots=True)
class Candidate:
    """One paper that a list brought: the passages that may carry it, with their BM25, and its places in the lists."""

    paper_pk: int
    passages: dict[int, float] = field(default_factory=dict)
    places: dict[tuple[ListName, int], Entry] = field(default_factory=dict)


def gather(lists: Mapping[ListName, Sequence[Entry]], by_words: Sequence[WordHit]) -> dict[int, Candidate]:
    """Collect candidates: passages of the lists, and each paper's best passage by its words."""
    found: dict[int, Candidate] = {}
    for name in LISTS:
        for entry in lists.get(name, ()):
            candidate = found.setdefault(entry.paper_pk, Candidate(entry.paper_pk))
            candidate.places.setdefault((name, entry.passage_id), entry)
            if entry.passage_id:
                candidate.passages.setdefault(entry.passage_id, 0.0)
    has_best: set[int] = set()
    for hit in by_words:
        candidate = found.get(hit.paper_pk)
        if candidate is None:
            continue
        if hit.paper_pk not in has_best or hit.passage_id in candidate.passages:
            candidate.passages[hit.passage_id] = hit.score
            has_best.add(hit.paper_pk)
    return found


def fuse(
    candidates: Mapping[int, Candidate],
    near: Mapping[int, float],
    near_papers: Mapping[int, float],
    weights: Mapping[ListName, float],
    *,
    idfs: Sequence[float],
    n_words: int,
) -> list[Fused]:
    """Blend and order.

    The two vector lists are one side: their cosines are averaged by their weights, so that a paper whose only text is
    its abstract is not counted twice.
    """
    rows = list(candidates.values())
    if not rows:
        return []
    passage_weight, paper_weight = weights.get("passage_vector", 0.0), weights.get("paper_vector", 0.0)
    cosines = np.array([_cosine(row, near, near_papers, passage_weight, paper_weight) for row in rows])
    bm25 = np.array([max(row.passages.values(), default=0.0) for row in rows])
    top_bm25 = float(bm25.max())
    blended = blend(
        cosines, bm25, idfs=idfs, n_words=n_words,
        meaning=(passage_weight + paper_weight) * 1.5, words=weights.get("passage_bm25", 0.0) * 3,
    )  # fmt: skip
    scored = zip(rows, blended.scores.tolist(), blended.meaning.tolist(), blended.words.tolist(), strict=True)
    fused: list[Fused] = []
    for row, score, meaning, words in scored:
        passage = _carrier(row, near, top_bm25, blended.meaning_weight)
        places: dict[ListName, Entry] = {name: e for (name, of), e in row.places.items() if of in {passage, 0}}
        shares = {"meaning": meaning, "words": words}
        exact = {"bm25": row.passages.get(passage, 0.0)}
        if passage in near:
            exact["passage_cosine"] = near[passage]
        if row.paper_pk in near_papers:
            exact["paper_cosine"] = near_papers[row.paper_pk]
        fused.append(Fused(row.paper_pk, passage, score, places, shares, exact=exact))
    return order(fused)


def _cosine(
    row: Candidate,
    near: Mapping[int, float],
    near_papers: Mapping[int, float],
    passage_weight: float,
    paper_weight: float,
) -> float:
    best = max((near[p] for p in row.passages if p in near), default=math.nan)
    paper = near_papers.get(row.paper_pk, math.nan)
    if math.isnan(best) or passage_weight <= 0:
        return paper
    if math.isnan(paper) or paper_weight <= 0:
        return best
    return (passage_weight * best + paper_weight * paper) / (passage_weight + paper_weight)


def _carrier(row: Candidate, near: Mapping[int, float], top_bm25: float, meaning_weight: float) -> int:
    """The passage that answers best by both sides; 0 where no list brought one."""
    if len(row.passages) < 2:
        return next(iter(row.passages), 0)
    cosines = [near[p] for p in row.passages if p in near]
    floor = min(cosines, default=0.0) - 0.05

    def worth(item: tuple[int, float]) -> tuple[float, int]:
        passage, bm25 = item
        meaning = near.get(passage, floor)
        return (meaning_weight * meaning * 2 + (1 - meaning_weight) * bm25 / max(top_bm25, 1e-9), -passage)

    return max(row.passages.items(), key=worth)[0]
