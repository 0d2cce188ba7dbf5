"""Landing pages with Highwire's `citation_*` meta tags as works."""

from __future__ import annotations

from ingest.sources import fields as f
from ingest.sources.common import each_once
from ingest.sources.markup import Element, metas
from ingest.sources.words import abstract_of, plain
from ingest.work import Location, Work


def work_of_page(source: str, page: Element, url: str = "", **ids: object) -> Work | None:
    """Read a landing page by its meta tags, or None where it names no title. `ids` are known from elsewhere."""
    tags = metas(page)

    def first(*names: str) -> str | None:
        return next((tags[name][0] for name in names if tags.get(name)), None)

    title = first("citation_title", "dc.title", "og:title")
    if not title or not ("citation_title" in tags or "dc.title" in tags):
        return None
    found = f.identifiers(
        doi=first("citation_doi", "dc.identifier.doi", "prism.doi"),
        arxiv=first("citation_arxiv_id"),
        pmid=first("citation_pmid"),
        pmcid=first("citation_pmcid"),
        **ids,
    )
    said = first("citation_publication_date", "citation_date", "citation_year", "dc.issued", "dc.date")
    pdfs = [
        Location(link, "pdf", is_open=True) for value in tags.get("citation_pdf_url", []) if (link := f.link(value))
    ]
    here = f.link(first("citation_abstract_html_url", "og:url")) or f.link(url)
    return Work(
        source=source,
        source_id=next(iter(found.values()), None),
        identifiers=found,
        title=plain(title) or None,
        abstract=abstract_of(first("citation_abstract", "dc.description.abstract", "dc.description", "description")),
        authors=f.people(f.person(None, None, n) for n in tags.get("citation_author", tags.get("dc.creator", []))),
        year=f.year(said),
        published_on=f.day(said),
        venue=first(
            "citation_journal_title", "citation_conference_title", "citation_inbook_title", "citation_book_title"
        ),
        locations=each_once([*pdfs, Location(here) if here else None]),
    )
