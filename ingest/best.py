"""One paper's fields out of several works: the written rule, field by field, with the source of each value.

Records of the published article come before those of its preprint; among them the order of `TRUST`: registries and
publishers that the authors' own data goes to, then archives, then aggregators that read other people's pages.

- title: the first by that order that is not all in capitals.
- abstract: the first that is not cut off and not less than half as long as the longest.
- authors: the first of the lists that are complete (as long as the longest), full names before initials.
- year, published_on, venue, kind, licence: the first that states it.
- n_citations: the largest count (services miss citations, they do not invent them); by year from the fullest table.
- is_retracted: whoever says so is believed.
- tldr: the first; nothing is made up.
- locations: all, each address once. references: the list with the most identifiers, then those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from corpus.ids import parse_identifier
from ingest.preprints import is_preprint_doi
from ingest.work import Location, Work

TRUST: Final = (
    "crossref", "acl-anthology", "plos", "europe-pmc", "ncbi-pmc", "doaj", "openreview", "arxiv", "biorxiv", "inspire-hep",
    "hal", "datacite", "dblp", "openalex", "semantic-scholar", "zenodo", "core", "unpaywall",
)  # fmt: skip
_RANK = {name: n for n, name in enumerate(TRUST)}
_PREPRINT_SOURCES = {"arxiv", "biorxiv"}


@dataclass(frozen=True, slots=True)
class BestFields:
    """The fields of a paper; `provenance` names the source that each value came from."""

    title: str | None = None
    abstract: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    published_on: str | None = None
    venue: str | None = None
    kind: str | None = None
    licence: str | None = None
    tldr: str | None = None
    n_citations: int | None = None
    n_citations_by_year: dict[str, int] = field(default_factory=dict)
    is_retracted: bool | None = None
    arxiv_version: int | None = None
    locations: tuple[Location, ...] = ()
    references: tuple[str, ...] = ()
    provenance: dict[str, str] = field(default_factory=dict)


def is_preprint(work: Work) -> bool:
    """Whether a work is the record of a preprint and not of the published article."""
    doi = work.identifiers.get("doi")
    if doi:
        return is_preprint_doi(doi)
    return (
        work.kind == "preprint" or work.source in _PREPRINT_SOURCES or (not work.venue and "arxiv" in work.identifiers)
    )


def trust_key(work: Work) -> tuple[bool, int, str, str, str]:
    """Order works, the most trusted first; total, so that nothing depends on the order of arrival."""
    return (is_preprint(work), _RANK.get(work.source, len(TRUST)), work.source, work.source_id or "", repr(work))


def best_fields(works: Sequence[Work]) -> BestFields:
    """Choose each field by the rule above."""
    ordered = sorted(works, key=trust_key)
    values: dict[str, Any] = {}
    provenance: dict[str, str] = {}

    def choose(name: str, key: Callable[[Work], Any] | None = None) -> None:
        stated = [work for work in ordered if getattr(work, name) not in (None, "", [], {})]
        if stated:
            best = min(stated, key=key) if key else stated[0]
            values[name], provenance[name] = getattr(best, name), best.source

    longest = max((len(work.abstract or "") for work in ordered), default=0)
    most = max((len(work.authors) for work in ordered), default=0)
    choose("title", lambda work: (work.title or "").isupper())
    choose("abstract", lambda work: _is_cut(work.abstract, longest))
    choose("authors", lambda work: (len(work.authors) < most, _share_of_initials(work.authors)))
    for name in ("year", "published_on", "venue", "kind", "licence", "tldr"):
        choose(name)
    # A date and its year are one statement: the year is not taken from elsewhere.
    if "published_on" in values and provenance["published_on"] == provenance.get("year"):
        values["year"] = int(values["published_on"][:4])
    choose("n_citations", lambda work: -(work.n_citations or 0))
    choose("n_citations_by_year", lambda work: -sum(work.n_citations_by_year.values()))
    choose("arxiv_version", lambda work: -(work.arxiv_version or 0))
    retracted = [work for work in ordered if work.is_retracted is not None]
    if retracted:
        believed = next((work for work in retracted if work.is_retracted), retracted[0])
        values["is_retracted"], provenance["is_retracted"] = believed.is_retracted, believed.source
    values["authors"] = tuple(values.get("authors", ()))
    return BestFields(
        **values,
        locations=_locations(ordered),
        references=_references(ordered),
        provenance=dict(sorted(provenance.items())),
    )


def _is_cut(abstract: str | None, longest: int) -> bool:
    text = (abstract or "").rstrip()
    return text.endswith(("...", "…")) or len(text) * 2 < longest


def _share_of_initials(authors: Sequence[str]) -> float:
    """Give the share of names whose given name is initials alone, in steps: small differences do not count."""
    short = sum(all(len(part.strip(".")) <= 2 for part in name.replace(",", " ").split()[:-1]) for name in authors)
    return round(short / len(authors), 1) if authors else 1.0


def _locations(ordered: Sequence[Work]) -> tuple[Location, ...]:
    found: dict[str, Location] = {}
    for work in ordered:
        for place in work.locations:
            known = found.setdefault(place.url, place)
            if known.version is None and known.licence is None and (place.version or place.licence):
                found[place.url] = place
    return tuple(found.values())


def _references(ordered: Sequence[Work]) -> tuple[str, ...]:
    lists = [work.references for work in ordered if work.references]
    if not lists:
        return ()
    fullest = max(lists, key=lambda references: sum(parse_identifier(r) is not None for r in references))
    known = list(dict.fromkeys(fullest))
    others = {r for references in lists for r in references if parse_identifier(r) is not None} - set(known)
    return (*known, *sorted(others))
