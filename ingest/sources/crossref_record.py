"""Crossref's record of a work, which other services hand out too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.sources.common import each_once, kind_of_address, version_word
from ingest.sources.fields import (
    Json,
    day_of,
    get,
    identifiers,
    link,
    listed,
    mapping,
    number,
    objects,
    people,
    person,
    reference,
    text,
    year,
)  # fmt: skip
from ingest.sources.licences import is_free, licence_word
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Related, Work

_DATES = ("issued", "published", "published-online", "published-print", "published-other", "posted", "approved")
_RELATIONS = {
    "is-preprint-of", "has-preprint", "is-version-of", "has-version", "is-identical-to", "is-same-as",
    "is-manuscript-of", "has-manuscript", "is-correction-of", "has-correction", "is-retraction-of", "has-retraction",
}  # fmt: skip
_UPDATES = {
    "retraction": "retract", "removal": "retract", "withdrawal": "retract", "retracted": "retract",
    "correction": "correct", "erratum": "correct", "corrigendum": "correct", "addendum": "correct",
}  # fmt: skip


def _dates(record: Json) -> Iterator[list[object]]:
    for name in _DATES:
        parts = listed(get(mapping(record.get(name)), "date-parts"))
        first = parts[0] if parts and isinstance(parts[0], list) else parts
        if first and first[0] is not None:
            yield first


def _licence(record: Json, version: str | None) -> str | None:
    """Give the licence of a version; one for text mining only, or one that begins later, says nothing of reading."""
    usable = [
        item
        for item in objects(record.get("license"))
        if item.get("content-version") != "tdm" and not number(item.get("delay-in-days"))
    ]
    best = [item for item in usable if version_word(item.get("content-version")) == version] or usable
    return licence_word(best[0].get("URL")) if best else None


def _locations(record: Json, doi: str | None) -> list[Location]:
    places: list[Location | None] = []
    for item in objects(record.get("link")):
        url = link(item.get("URL"))
        if not url or item.get("intended-application") == "similarity-checking":
            continue
        version = version_word(item.get("content-version"))
        licence = _licence(record, version)
        kind = kind_of_address(url, text(item.get("content-type")) or "")
        # A link for text mining is the publisher's, and open only where the licence says so.
        places.append(Location(url, kind, version, licence, "publisher", is_open=is_free(licence) or None))
    page = link(get(mapping(get(record, "resource", "primary")), "URL")) or link(record.get("URL"))
    if page or doi:
        licence = _licence(record, "published")
        places.append(Location(page or f"https://doi.org/{doi}", "landing", None, licence, "publisher"))
    return each_once(places)


def _related(record: Json) -> list[Related]:
    found = [
        Related(relation, named)
        for relation, items in mapping(record.get("relation")).items()
        for item in objects(items)
        if relation in _RELATIONS and (named := reference(**{_id_type(item): item.get("id")}))
    ]
    for field, form in (("update-to", "{}s"), ("updated-by", "{}ed-by")):
        for item in objects(record.get(field)):
            word = _UPDATES.get((text(item.get("type")) or "").lower())
            if word and (named := reference(doi=item.get("DOI"))):
                found.append(Related(form.format(word), named))
    return list(dict.fromkeys(found))


def _id_type(item: Json) -> str:
    kind = (text(item.get("id-type")) or "doi").lower()
    return {"doi": "doi", "arxiv": "arxiv", "pmid": "pmid", "pmcid": "pmcid", "pmc": "pmcid"}.get(kind, kind)


def _reference(item: Json) -> str | None:
    words = text(item.get("unstructured"))
    if not words:
        names = ("author", "article-title", "volume-title", "journal-title", "series-title", "year")
        words = ". ".join(found for name in names if (found := text(item.get(name)))) or None
    return reference(item.get("DOI"), plain(words) if words else None)


def work_of_crossref(source: str, record: Json) -> Work | None:
    """Read a Crossref record as a work of `source`, or None where there is nothing to hold on to."""
    found = identifiers(doi=record.get("DOI"))
    title = title_of(text(record.get("title")) or text(record.get("original-title")))
    if not found and not title:
        return None
    dates = list(_dates(record))
    whole = next((iso for parts in dates if len(parts) >= 3 and (iso := day_of(*parts[:3]))), None)
    first_year = year(*(parts[0] for parts in dates))
    related = _related(record)
    said = " ".join((title or "").split()[:2])
    is_retracted = True if any(link.relation == "retracted-by" for link in related) else None
    if re.match(r"(?:RETRACTED|WITHDRAWN)\b", said):
        is_retracted = True
    preprint = record.get("subtype") == "preprint" or record.get("type") == "posted-content"
    venue = text(record.get("container-title")) or text(get(mapping(record.get("institution")), "name"))
    return Work(
        source=source,
        source_id=found.get("doi"),
        identifiers=found,
        title=title,
        abstract=abstract_of(record.get("abstract")),
        authors=people(person(a.get("given"), a.get("family"), a.get("name")) for a in objects(record.get("author"))),
        year=first_year,
        published_on=whole if whole and (first_year is None or whole.startswith(str(first_year))) else None,
        venue=plain(venue or text(get(mapping(record.get("event")), "name"))) or None,
        locations=_locations(record, found.get("doi")),
        n_citations=number(record.get("is-referenced-by-count")),
        references=[ref for item in objects(record.get("reference")) if (ref := _reference(item))],
        is_retracted=is_retracted,
        kind="preprint" if preprint and text(record.get("subtype")) in {None, "preprint"} else text(record.get("type")),
        licence=_licence(record, "published"),
        related=related,
        updated_on=(text(get(mapping(record.get("indexed")), "date-time")) or "")[:10] or None,
    )
