"""From a page about a paper to its file, by the tags that Google Scholar asks publishers for."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin, urlsplit

from ingest.text.trees import parse_html
from ingest.work import Location

_MOST = 2
_TAGS = {"citation_pdf_url": "pdf", "bepress_citation_pdf_url": "pdf", "citation_fulltext_html_url": "html"}


def find_links(path: Path, page_url: str, page: Location) -> list[Location]:
    """Give the files that a page names in `citation_pdf_url` and its kin (scholar.google.com/intl/en/scholar/inclusion).

    They are taken to be what the page is about: same version and licence. What they hold is checked all the same.
    """
    import lxml.etree

    try:
        root = parse_html(path.read_bytes()).root
    except (lxml.etree.LxmlError, ValueError):
        return []
    if root is None:
        return []
    found: dict[str, Location] = {}
    for element in root.iter("meta", "link"):
        name = str(element.get("name") or element.get("property") or "").lower()
        kind = _TAGS.get(name)
        target = element.get("content")
        if element.tag == "link" and str(element.get("type") or "").lower() == "application/pdf":
            kind, target = "pdf", element.get("href")
        if not kind or not target:
            continue
        try:
            url = urljoin(page_url, target.strip())
        except ValueError:
            continue
        if urlsplit(url).scheme in {"http", "https"} and url != page_url:
            found.setdefault(url, Location(url, kind, page.version, page.licence, page.host, is_open=page.is_open))
    return sorted(found.values(), key=lambda place: place.kind != "pdf")[:_MOST]
