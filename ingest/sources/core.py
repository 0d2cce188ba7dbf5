"""CORE: full texts of repositories all over the world; API v3, and stored answers of the retired v2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Work

_HOST = "api.core.ac.uk"
_RULE = (
    "without a key 10 a minute and 100 a day, with a personal one 25 and 1,000 (reference page of CORE v3, 2026; "
    "zhangyee/fastpaper-cli docs/sources @ e32e6cddba5d 12_core)"
)


class Core(Reader):
    """Search, look-up and files; in practice only with a key."""

    name = "core"

    @property
    def hosts(self) -> tuple[HostRule, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A key buys more than twice the pace."""
        a_minute, a_day = (25, 1000) if self.access.api_key else (10, 100)
        return (
            HostRule(_HOST, a_minute, 60.0, 1, _RULE),
            HostRule(_HOST, a_day, 86400.0, 1, _RULE),
            HostRule("core.ac.uk", a_minute, 60.0, 1, _RULE, shared_with=_HOST),
        )

    def lacks(self) -> tuple[str, ...]:
        """Anonymous calls were all throttled in 2026."""
        if self.access.api_key:
            return ()
        return ("answers 429 at once without a key: set BRAIN_CORE_API_KEY",)

    def _ask(self, path: str, *params: tuple[str, str]) -> Request:
        key = self.access.api_key
        headers = (("Authorization", f"Bearer {key}"),) if key else ()
        return Request(f"https://{_HOST}/v3/{path}", params, headers=headers)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search works, at most 100 a page, the first 10,000; the path ends in a slash on purpose."""
        start = int(cursor) if cursor and cursor.isdigit() else 0
        if start >= 10000:
            return None
        asked = f"({query}) AND publishedDate>={since.isoformat()}" if since else query
        return self._ask("search/works/", ("q", asked), ("limit", str(min(limit, 100))), ("offset", str(start)))

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Search for a DOI or an arXiv id."""
        asked = _query(identifiers)
        return self._ask("search/works/", ("q", asked), ("limit", "10")) if asked else None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Search for up to 20 papers at once."""
        asked = [query for paper in papers[:20] if (query := _query(paper))]
        return self._ask("search/works/", ("q", " OR ".join(asked)), ("limit", "100")) if asked else None

    def read(self, answer: Answer) -> Parsed:
        """Read a search of v3 or v2, or a single work."""
        value = parse_json(self.name, answer)
        pages = f.objects(value)
        if not pages:
            if value == []:
                return Parsed()
            raise nonsense(self.name, "JSON without an object", answer)
        page = pages[0]
        if "results" in page or "data" in page or "totalHits" in page:
            items: list[Any] = []
            for other in pages:
                found = other.get("results", other.get("data"))
                items += f.listed(found)
            works = works_of((_source(item) for item in f.objects(items)), self._work)
            total, start = f.number(page.get("totalHits")), f.number(page.get("offset"))
            end = (start or 0) + len(items)
            more = start is not None and items and total and end < min(total, 10000)
            return Parsed(works, str(end) if more else None, total)
        works = works_of(map(_source, pages), self._work)
        if not works:
            raise nonsense(self.name, "JSON that is neither page nor work", answer)
        return Parsed(works)

    def _work(self, record: f.Json) -> Work | None:
        ids = _identifiers(record)
        own = f.text(record.get("id"))
        title = title_of(record.get("title"))
        if not title and not ids and not own:
            return None
        names = (a if isinstance(a, str) else f.get(a, "name") for a in f.listed(record.get("authors")))
        venue = next((t for j in f.objects(record.get("journals")) if (t := f.text(j.get("title")))), None)
        publisher = (f.text(record.get("publisher")) or "").strip("'\" ")
        day = f.day(record.get("publishedDate")) or f.day(record.get("datePublished"))
        year = f.year(record.get("yearPublished"), record.get("year"), day)
        return Work(
            source=self.name,
            source_id=own,
            identifiers=ids,
            title=title,
            abstract=_abstract(record.get("abstract") or record.get("description")),
            authors=f.people(f.person(None, None, name) for name in names),
            year=year,
            published_on=day if day and (not year or day.startswith(str(year))) else None,
            venue=plain(venue or publisher) or None,
            locations=_locations(record),
            n_citations=f.number(record.get("citationCount")),
            references=[ref for item in f.listed(record.get("references")) if (ref := _reference(item))],
            kind=f.text(record.get("documentType")),
            licence=licence_word(record.get("license")),
            updated_on=f.day(record.get("updatedDate")),
        )


def _query(identifiers: Identifiers) -> str | None:
    if doi := identifiers.get("doi"):
        quoted = doi.replace('"', "")
        return f'doi:"{quoted}"'
    if arxiv := identifiers.get("arxiv"):
        return f'arxivId:"{arxiv}"'
    return None


def _source(item: f.Json) -> f.Json:
    return f.mapping(item.get("_source")) or item


def _identifiers(record: f.Json) -> dict[str, str]:
    values: dict[str, object] = {
        "doi": record.get("doi"), "arxiv": record.get("arxivId"), "pmid": record.get("pubmedId"),
    }  # fmt: skip
    for item in f.listed(record.get("identifiers")):
        kind = str(f.get(item, "type") or "").upper()
        value = f.text(f.get(item, "identifier")) or (item if isinstance(item, str) else "")
        if kind in {"DOI", "ARXIV_ID", "PUBMED_ID"}:
            name = {"DOI": "doi", "ARXIV_ID": "arxiv", "PUBMED_ID": "pmid"}[kind]
            values[name] = values[name] or value
        elif re.match(r"(?i)oai:arxiv\.org:", value):
            values["arxiv"] = values["arxiv"] or value
    return f.identifiers(**values)


def _abstract(value: object) -> str | None:
    """Read an abstract without the authors' comment to arXiv, which CORE glues to its end."""
    said = f.listed(value)[0] if isinstance(value, list) and value else value
    if not isinstance(said, str):
        return None
    return abstract_of(re.sub(r"(?<=[.!?)\]…])\s*Comment: .{0,600}\Z", "", said, flags=re.DOTALL))


def _reference(item: object) -> str | None:
    if isinstance(item, dict):
        return f.reference(item.get("doi"), item.get("raw") or item.get("title"))
    return f.text(item)


def _locations(record: f.Json) -> list[Location]:
    licence = licence_word(record.get("license"))
    urls = [record.get("downloadUrl"), record.get("fullTextIdentifier"), *f.listed(record.get("sourceFulltextUrls"))]
    places: list[Location | None] = [
        Location(url, kind_of_address(url), None, licence, "repository", is_open=True)
        for value in urls
        if (url := f.link(value))
    ]
    for item in f.objects(record.get("links")):
        kind = f.text(item.get("type")) or ""
        url = f.link(item.get("url"))
        if url and "thumbnail" not in kind:
            guessed = kind_of_address(url) if kind == "download" else "landing"
            places.append(Location(url, guessed, None, licence, "repository", is_open=kind == "download" or None))
    places += [
        Location(url, kind_of_address(url), None, licence, "repository")
        for value in f.listed(record.get("urls"))
        if (url := f.link(value))
    ]
    return each_once(places)
