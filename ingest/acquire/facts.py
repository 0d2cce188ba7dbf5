"""A paper's record and facts out of its works and what was stated of it before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from corpus.texts import storable
from ingest.best import BestFields, best_fields
from ingest.merge import MergedPaper
from ingest.records import PaperRecord
from ingest.work import Location, Related, Work

ANCHOR = "corpus"
"""The source name of what the corpus itself says of a paper; never a real source."""
_BOOKS = {"book", "monograph", "edited-book", "reference-book"}
_CHOSEN = ("title", "abstract", "authors", "year", "venue")


@dataclass(frozen=True, slots=True)
class Stored:
    """A paper as the database has it."""

    paper_pk: int
    paper_id: str
    kind: str
    title: str | None
    abstract: str | None
    authors: list[str]
    year: int | None
    venue: str | None
    url: str | None
    raw: dict[str, Any]
    provenance: dict[str, str]
    mark: str | None
    nodes: list[str]


def work_from_json(value: Mapping[str, Any]) -> Work:
    """The work that was stored; fields that a later version added keep their defaults."""
    known = {name: value[name] for name in Work.__dataclass_fields__ if name in value}
    known["locations"] = [Location(**place) for place in value.get("locations") or ()]
    known["related"] = [Related(**link) for link in value.get("related") or ()]
    return Work(**known)


def anchors(paper: Stored) -> list[Work]:
    """What the corpus says of a paper, as works that hold every identifier; they tie it together and state no more."""
    rows: list[dict[str, str]] = []
    for node in paper.nodes or [paper.paper_id]:
        kind, _, value = node.partition(":")
        row = next((row for row in rows if kind not in row), None)
        if row is None:
            rows.append(row := {})
        row[kind] = value
    return [
        Work(ANCHOR, str(paper.paper_pk), row, title=paper.title, authors=list(paper.authors), year=paper.year)
        for row in rows
    ]


def velocity(best: BestFields, today: date) -> float | None:
    """Citations a year since publication, from the counts of single years where there are any.

    A running year counts by the share of it that is over; less than one year counts as one.
    """
    if best.n_citations is None and not best.n_citations_by_year:
        return None
    begun = _day(best.published_on) or (date(best.year, 1, 1) if best.year and 1 <= best.year <= 9999 else None)
    total = best.n_citations or 0
    if years := sorted(int(year) for year in best.n_citations_by_year if year.isdigit()):
        # The tables reach back ten years or so; what came before stands in none of them.
        total = sum(best.n_citations_by_year.values())
        begun = max(begun or date.min, date(years[0], 1, 1))
    if begun is None:
        return None
    return round(total / max(1.0, (today - begun).days / 365.25), 3)


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def best_of(works: Sequence[Work]) -> BestFields:
    """The fields that sources give; the corpus's own anchors have no say."""
    return best_fields([work for work in works if work.source != ANCHOR])


def make_record(
    merged: MergedPaper, best: BestFields, key: str, stored: Sequence[Stored]
) -> tuple[PaperRecord, dict[str, str]]:
    """The record to be written and where its fields come from.

    What was stated by hand, and has no provenance therefore, stays; `stored` are the papers that become this one, the
    one that keeps its key first.
    """
    provenance: dict[str, str] = dict(best.provenance)
    chosen: dict[str, Any] = {}
    for name in _CHOSEN:
        value, source = getattr(best, name) or None, best.provenance.get(name)
        for paper in stored:
            had = getattr(paper, name) or None
            if had is not None and (value is None or name not in paper.provenance):
                value, source = had, paper.provenance.get(name)
                break
        chosen[name] = _clean(value)
        provenance.pop(name, None)
        if source is not None and value is not None:
            provenance[name] = source
    for paper in stored:
        provenance = {**{k: v for k, v in paper.provenance.items() if k not in _CHOSEN}, **provenance}
    first = stored[0] if stored else None
    raw = {**{k: v for paper in reversed(stored) for k, v in paper.raw.items()}, **_corrections(merged)}
    kind = first.kind if first else "book" if best.kind in _BOOKS else "paper"
    record = PaperRecord(
        paper_id=key, kind=kind, title=chosen["title"], abstract=chosen["abstract"], authors=tuple(chosen["authors"] or ()),
        year=chosen["year"] if chosen["year"] and 1000 <= chosen["year"] <= 2999 else None, venue=chosen["venue"],
        url=next((p.url for p in stored if p.url), None) or _url(merged.identifiers), identifiers=merged.identifiers, raw=raw,
    )  # fmt: skip
    return record, dict(sorted(provenance.items()))


def _corrections(merged: MergedPaper) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for work in merged.works:
        for link in work.related:
            if link.relation in {"corrected-by", "retracted-by"}:
                found.setdefault(link.relation.replace("-", "_"), []).append(link.identifier)
    return {name: sorted(set(values)) for name, values in found.items()}


def make_facts(best: BestFields, today: date, provenance: Mapping[str, str]) -> dict[str, Any]:
    """What is written beside the record."""
    return {
        "published_on": _day(best.published_on), "n_citations": best.n_citations, "velocity": velocity(best, today),
        "tldr": _clean(best.tldr), "licence": _clean(best.licence), "is_retracted": bool(best.is_retracted),
        "provenance": json.dumps(provenance, ensure_ascii=False),
    }  # fmt: skip


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)[0]
    return [storable(each)[0] for each in value] if isinstance(value, list | tuple) else value


def _url(identifiers: Mapping[str, str]) -> str | None:
    forms = {
        "arxiv": "https://arxiv.org/abs/{}", "doi": "https://doi.org/{}", "acl": "https://aclanthology.org/{}/",
        "pmcid": "https://pmc.ncbi.nlm.nih.gov/articles/{}/", "pmid": "https://pubmed.ncbi.nlm.nih.gov/{}/",
        "openreview": "https://openreview.net/forum?id={}", "openalex": "https://openalex.org/{}",
        "s2": "https://www.semanticscholar.org/paper/{}",
    }  # fmt: skip
    return next((form.format(identifiers[kind]) for kind, form in forms.items() if identifiers.get(kind)), None)
