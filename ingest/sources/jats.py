"""JATS articles, as PMC and Europe PMC hand them out: the front matter as a work."""

from __future__ import annotations

import re

from ingest.sources import fields as f
from ingest.sources.common import version_word
from ingest.sources.licences import licence_word
from ingest.sources.markup import Element, attribute, child, children, descend, inner, local, raw, words
from ingest.sources.words import abstract_of, tidy
from ingest.work import Location, Related, Work

_RELATED = {
    "corrected-article": "corrects", "correction-forward": "corrected-by", "retracted-article": "retracts",
    "retraction-forward": "retracted-by", "preprint": "has-preprint", "retracted-article-forward": "retracted-by",
    "article-of-preprint": "is-preprint-of",
}  # fmt: skip


def has_body(article: Element) -> bool:
    """Tell whether an article comes with its text: PMC answers 200 without one where the publisher forbids it."""
    body = child(article, "body")
    return body is not None and len(tidy(raw(body))) > 0


def work_of_jats(source: str, article: Element, locations: list[Location] | None = None) -> Work | None:
    """Read an `<article>` as a work, or None where it has neither identifier nor title."""
    meta = child(article, "front", "article-meta")
    if meta is None:
        meta = child(article, "front-stub")
    found = _identifiers(meta)
    dates = _dates(meta)
    kind = attribute(article, "article-type")
    licence = _licence(meta)
    title = words(meta, "title-group", "article-title")
    if not found and not title:
        return None
    related = _related(meta)
    is_retracted = any(item.relation == "retracted-by" for item in related) or bool(
        re.match(r"(?:RETRACTED|WITHDRAWN)\b", title or "")
    )
    journal = child(article, "front", "journal-meta")
    venue = words(journal, "journal-title-group", "journal-title") or words(journal, "journal-title")
    if not venue:
        venue = next((inner(item) for item in children(journal, "journal-id")), None)
    version = next((word for item in descend(meta, "article-version") if (word := version_word(_version(item)))), None)
    return Work(
        source=source,
        source_id=found.get("pmcid") or found.get("doi") or found.get("pmid"),
        identifiers=found,
        title=title,
        abstract=_abstract(meta),
        authors=_authors(meta),
        year=min((year for year, _ in dates), default=None),
        published_on=next((day for _, day in dates if day), None),
        venue=venue or None,
        locations=[
            Location(place.url, place.kind, place.version or version, licence, place.host, is_open=place.is_open)
            for place in locations or []
        ],
        references=_references(article),
        is_retracted=is_retracted or None,
        kind=kind,
        licence=licence,
        related=related,
    )


def _identifiers(meta: Element | None) -> dict[str, str]:
    values: dict[str, str] = {}
    for item in children(meta, "article-id"):
        kind = {
            "pmc": "pmcid",
            "pmcid": "pmcid",
            "pmcaid": "pmcid",
            "pmid": "pmid",
            "doi": "doi",
            "arxiv": "arxiv",
        }.get((attribute(item, "pub-id-type") or "").lower())
        if kind:
            values.setdefault(kind, inner(item))
    return f.identifiers(**values)


def _version(item: Element) -> str:
    return attribute(item, "article-version-type") or inner(item)


def _dates(meta: Element | None) -> list[tuple[int, str | None]]:
    """Give years and whole dates of publication, the electronic one first; the day that PMC got it is none."""
    found: list[tuple[int, int, str | None]] = []
    for item in children(meta, "pub-date"):
        kind = f"{attribute(item, 'pub-type') or ''} {attribute(item, 'date-type') or ''}".strip().lower()
        if "pmc" in kind or "nihms" in kind:
            continue
        parts = [inner(item, name) for name in ("year", "month", "day")]
        iso = attribute(item, "iso-8601-date")
        year = f.year(parts[0], iso)
        if year:
            rank = 0 if "epub" in kind or attribute(item, "publication-format") == "electronic" else 1
            rank += 2 if "collection" in kind else 0
            found.append((rank, year, f.day_of(*parts) or f.day(iso)))
    return [(year, day) for _, year, day in sorted(found, key=lambda entry: entry[0])]


def _abstract(meta: Element | None) -> str | None:
    abstracts = children(meta, "abstract")
    plain_ones = [item for item in abstracts if not attribute(item, "abstract-type")]
    for item in plain_ones or abstracts or children(meta, "trans-abstract"):
        if found := abstract_of(raw(item, headings=True)):
            return found
    return None


def _authors(meta: Element | None) -> list[str]:
    names: list[str | None] = []
    for group in children(meta, "contrib-group"):
        for item in children(group, "contrib"):
            if (attribute(item, "contrib-type") or "author") != "author":
                continue
            name = child(item, "name")
            if name is None:
                name = child(item, "name-alternatives", "name")
            if name is None:
                name = child(item, "string-name")
            collab = inner(item, "collab")
            names.append(f.person(inner(name, "given-names"), inner(name, "surname")) or collab or inner(name) or None)
    return f.people(names)


def _licence(meta: Element | None) -> str | None:
    for item in descend(child(meta, "permissions"), "license_ref"):
        if found := licence_word(inner(item)):
            return found
    for item in descend(child(meta, "permissions"), "license"):
        address = attribute(item, "xlink:href") or attribute(item, "license-type")
        links = (attribute(link, "xlink:href") for link in descend(item, "ext-link"))
        named = next((link for link in links if link and "creativecommons" in link), None)
        if found := licence_word(named) or licence_word(address):
            return found
    return None


def _related(meta: Element | None) -> list[Related]:
    found: list[Related] = []
    for item in descend(meta, "related-article", "related-object"):
        kind = attribute(item, "related-article-type") or attribute(item, "document-type") or ""
        href = attribute(item, "xlink:href") or attribute(item, "object-id")
        named = f.reference(href) or f.named(href)
        if kind in _RELATED and named:
            found.append(Related(_RELATED[kind], named))
    return list(dict.fromkeys(found))


def _references(article: Element) -> list[str]:
    found: list[str | None] = []
    for item in descend(child(article, "back"), "ref"):
        ids = {attribute(i, "pub-id-type") or "": inner(i) for i in descend(item, "pub-id")}
        cited = next(descend(item, "mixed-citation", "element-citation", "citation", "nlm-citation"), None)
        text = tidy(" ".join(part for part in (_citation(cited),) if part)) if cited is not None else inner(item)
        found.append(f.reference(ids.get("doi"), text, pmid=ids.get("pmid"), pmcid=ids.get("pmcid") or ids.get("pmc")))
    return [ref for ref in found if ref]


def _citation(cited: Element) -> str:
    """Give the words of a citation; element citations have no punctuation of their own."""
    if local(cited) == "mixed-citation":
        return raw(cited)
    return ". ".join(word for part in cited if (word := inner(part)))
