"""Weighted reciprocal rank fusion of the three lists: pure, one row per paper, every share shown.

Each entry gives weight / (60 + rank) (Cormack, Clarke and Büttcher 2009, k = 60). Only when the same passage stands in
both passage lists do its shares add up. A paper's score is its best passage's sum plus its share from the list of papers.
Equal scores are ordered by the better single rank, then by paper id.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

ListName = Literal["passage_vector", "passage_bm25", "paper_vector"]
LISTS: tuple[ListName, ...] = get_args(ListName)
RRF_K = 60
EQUAL_WEIGHTS: Mapping[ListName, float] = dict.fromkeys(LISTS, 1 / 3)
BOOST_RANGE = (0.8, 1.25)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a list: which paper, which passage (0 in the list of papers), its place from 1, its score."""

    paper_pk: int
    passage_id: int
    rank: int
    score: float


@dataclass(slots=True)
class Fused:
    """One paper of the fused order: `places` are its entries that counted, `shares` what each gave."""

    paper_pk: int
    passage_id: int
    score: float
    places: dict[ListName, Entry] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    boosts: dict[str, float] = field(default_factory=dict)
    rank_before: int | None = None
    paper_id: str = ""
    exact: dict[str, float] = field(default_factory=dict)

    @property
    def best_rank(self) -> int:
        """The better single rank, for equal scores."""
        return min((place.rank for place in self.places.values()), default=10**9)


def entries(rows: Iterable[tuple[int, int, float]]) -> list[Entry]:
    """Number (paper, passage, score) rows from 1."""
    return [Entry(paper, passage, rank, score) for rank, (paper, passage, score) in enumerate(rows, 1)]


def share(weight: float, rank: int) -> float:
    """What one place gives."""
    return weight / (RRF_K + rank)


def fuse_rrf(lists: Mapping[ListName, list[Entry]], weights: Mapping[ListName, float]) -> list[Fused]:
    """Fuse by rank. Lists of weight 0 count for nothing and do not bring papers in."""
    passages: dict[int, dict[ListName, Entry]] = {}
    papers: dict[int, Entry] = {}
    for name in LISTS:
        if weights.get(name, 0.0) <= 0:
            continue
        for entry in lists.get(name, ()):
            if name == "paper_vector":
                papers.setdefault(entry.paper_pk, entry)
            else:
                passages.setdefault(entry.passage_id, {}).setdefault(name, entry)
    best: dict[int, Fused] = {}
    for passage_id, places in passages.items():
        shares: dict[str, float] = {name: share(weights[name], place.rank) for name, place in places.items()}
        found = Fused(
            next(iter(places.values())).paper_pk, passage_id, math.fsum(shares.values()), dict(places), shares
        )
        known = best.get(found.paper_pk)
        if known is None or _passage_order(found) < _passage_order(known):
            best[found.paper_pk] = found
    for paper_pk, entry in papers.items():
        found = best.setdefault(paper_pk, Fused(paper_pk, 0, 0.0))
        found.places["paper_vector"] = entry
        found.shares["paper_vector"] = share(weights["paper_vector"], entry.rank)
        found.score = math.fsum(found.shares.values())
    return order(best.values())


def order(fused: Iterable[Fused]) -> list[Fused]:
    """Sort by score; equal ones by the better single rank, then by paper id (or its number while that is unknown)."""
    rows = sorted(fused, key=lambda f: -f.score)
    if all(a.score != b.score for a, b in pairwise(rows)):
        return rows
    return sorted(rows, key=lambda f: (-f.score, f.best_rank, f.paper_id, f.paper_pk))


def apply_boosts(fused: list[Fused], factors: Mapping[int, Mapping[str, float]]) -> list[Fused]:
    """Multiply afterwards, each factor within bounds, and remember the place without them."""
    low, high = BOOST_RANGE
    for place, row in enumerate(fused, 1):
        row.rank_before = place
        row.boosts = {name: min(high, max(low, factor)) for name, factor in factors.get(row.paper_pk, {}).items()}
        row.score *= math.prod(row.boosts.values())
    return order(fused)


def put_first(fused: list[Fused], pinned: Mapping[int, str]) -> list[Fused]:
    """Lift papers that the question names (identifier or exact title) above all others; `pinned` says why.

    The lift is the same for all of them and is shown as a share, so that they keep their order among themselves.
    """
    if not pinned:
        return fused
    known = {row.paper_pk: row for row in fused}
    top = max((row.score for row in fused), default=0.0)
    lift = top * 1.01 or 1.0
    for paper_pk, why in pinned.items():
        row = known.setdefault(paper_pk, Fused(paper_pk, 0, 0.0))
        row.shares[why] = lift
        row.score += lift
    return order(known.values())


def _passage_order(fused: Fused) -> tuple[float, int, int]:
    return (-fused.score, fused.best_rank, fused.passage_id)
