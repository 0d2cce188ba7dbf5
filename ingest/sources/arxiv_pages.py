"""arXiv's pages: abstract pages, papers in HTML (LaTeXML), and the daily RSS."""

from __future__ import annotations

import re

from ingest.sources import fields as f
from ingest.sources.base import Answer
from ingest.sources.bodies import raise_unreadable
from ingest.sources.licences import licence_word
from ingest.sources.markup import Element, children, descend, inner, metas, parse_html, raw, words
from ingest.sources.oai import locations_of_arxiv
from ingest.sources.words import abstract_of, plain
from ingest.work import Location, Work


def work_of_item(source: str, item: Element) -> Work | None:
    """Read an entry of the daily RSS: its description carries id, kind of announcement and abstract."""
    said = inner(item, "description")
    own = inner(item, "guid").removeprefix("oai:arXiv.org:")
    own = own if f.identifiers(arxiv=own) else inner(item, "link")
    found = f.identifiers(arxiv=own)
    if not found:
        return None
    version = f.version_of(own)
    licence = inner(item, "rights") or None
    names = (name.strip() or None for creator in children(item, "creator") for name in inner(creator).split(","))
    return Work(
        source=source,
        source_id=found["arxiv"],
        identifiers=found,
        title=words(item, "title"),
        abstract=abstract_of(re.sub(r"^arXiv:\S+ Announce Type: \S+\s*(?:Abstract:)?", "", said)),
        authors=f.people(names),
        locations=locations_of_arxiv(found["arxiv"], version, licence),
        arxiv_version=version,
        kind="preprint",
        licence=licence_word(licence),
    )


def page_of_paper(source: str, answer: Answer) -> Work:
    """Read an abstract page by its meta tags, or a paper in HTML (LaTeXML) by its marks."""
    page = parse_html(answer)
    if page is None:
        raise_unreadable(source, answer, "a page of a paper")
    tags = metas(page)
    document = _by_class(page, "ltx_document")
    own = next(iter(tags.get("citation_arxiv_id", [])), "") or f.text(answer.url) or ""
    if not f.identifiers(arxiv=own):
        own = _own_id(page, document)
    if document is None and "citation_title" not in tags:
        raise_unreadable(source, answer, "a page of a paper")
    found = f.identifiers(arxiv=own, doi=next(iter(tags.get("citation_doi", [])), None))
    arxiv, version = found.get("arxiv"), f.version_of(own) or f.version_of(answer.url)
    name = f"{arxiv}v{version}" if version else arxiv
    places = locations_of_arxiv(arxiv, version, None)
    if document is not None and arxiv:
        places.append(Location(f"https://arxiv.org/html/{name}", "html", "submitted", None, "repository", is_open=True))
    abstract = next(iter(tags.get("citation_abstract", [])), None)
    if document is not None:
        abstract = raw(_by_class(document, "ltx_abstract")) or abstract
    day = f.day(next(iter(tags.get("citation_date", [])), None))
    title = next(iter(tags.get("citation_title", [])), None) or raw(_by_class(document, "ltx_title_document"))
    return Work(
        source=source,
        source_id=arxiv,
        identifiers=found,
        title=plain(title) or None,
        abstract=abstract_of(re.sub(r"^\s*Abstract\b[\s.:—–-]*", "", abstract or "")),
        authors=f.people(f.person(None, None, name) for name in tags.get("citation_author", []))
        or _ltx_authors(document),
        year=f.year(day),
        published_on=day,
        locations=places,
        arxiv_version=version,
        kind="preprint",
    )


def _own_id(page: Element, document: Element | None) -> str:
    """Find the id of the paper that a page shows: outside the paper itself, whose reference list links to others."""
    inside = set(document.iter()) if document is not None else set()
    for item in page.iter("base", "link", "a", "div"):
        if item in inside:
            continue
        said = item.get("href") or (raw(item) if (item.get("id") or "").startswith("watermark") else "")
        said = re.sub(r"^/(?:html|abs|pdf)/", "https://arxiv.org/abs/", said.strip()).rstrip("/")
        named = re.match(r"arXiv:\S+", said)
        if f.identifiers(arxiv=named[0] if named else said):
            return named[0] if named else said
    return ""


def _by_class(element: Element | None, name: str) -> Element | None:
    return next((item for item in descend(element, *_HTML) if name in (item.get("class") or "").split()), None)


_HTML = ("article", "div", "section", "h1", "h2", "span", "p")


def _ltx_authors(document: Element | None) -> list[str]:
    names = [item for item in descend(document, "span") if "ltx_personname" in (item.get("class") or "").split()]
    return f.people(plain(re.split(r"\n|\\\\", raw(item).strip())[0]) or None for item in names)
