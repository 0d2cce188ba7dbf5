"""DOAJ: articles of open-access journals; links lead to pages in practice."""

from __future__ import annotations

from datetime import date
from urllib.parse import quote

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Work

_HOST = "doaj.org"
_MAX_RECORDS = 1000


class Doaj(Reader):
    """Search and look-up by DOI; no key."""

    name = "doaj"
    hosts = (
        HostRule(
            _HOST, 2, 1.0, 1,
            "two requests/s, bursts of five queued; the first 1,000 records of a query "
            "(DOAJ/doaj settings.py and api v4 docs @ c2b70bc5a992)",
        ),
    )  # fmt: skip

    def _ask(self, query: str, page: int, size: int) -> Request:
        # The query is a piece of the path, so that also its slashes are encoded.
        return Request(
            f"https://{_HOST}/api/v4/search/articles/{quote(query, safe='')}",
            (("page", str(page)), ("pageSize", str(size))),
        )

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search articles, at most 100 a page, the first 1,000; dates are years here."""
        page, size = int(cursor) if cursor and cursor.isdigit() else 1, min(limit, 100)
        if (page - 1) * size >= _MAX_RECORDS:
            return None
        asked = f"({query}) AND bibjson.year:[{since.year} TO 3000]" if since else query
        return self._ask(asked, page, size)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Search for a DOI."""
        doi = identifiers.get("doi")
        return self._ask('doi:"{}"'.format(doi.replace('"', "")), 1, 10) if doi else None

    def read(self, answer: Answer) -> Parsed:
        """Read a search or an article."""
        value = f.mapping(parse_json(self.name, answer))
        if isinstance(value.get("results"), list):
            page, size, total = (f.number(value.get(key)) for key in ("page", "pageSize", "total"))
            more = value["results"] and page and size and f.link(value.get("next")) and page * size < _MAX_RECORDS
            works = works_of(f.objects(value["results"]), self._work)
            return Parsed(works, str((page or 0) + 1) if more else None, total)
        work = self._work(value)
        if work is None:
            raise nonsense(self.name, "JSON that is neither page nor article", answer)
        return Parsed([work])

    def _work(self, record: f.Json) -> Work | None:
        body = f.mapping(record.get("bibjson"))
        if not body:
            return None
        ids = {(f.text(i.get("type")) or "").lower(): i.get("id") for i in f.objects(body.get("identifier"))}
        found = f.identifiers(doi=ids.get("doi"), pmid=ids.get("pmid"))
        journal = f.mapping(body.get("journal"))
        licences = f.objects(body.get("license")) + f.objects(journal.get("license"))
        licence = next(
            (word for item in licences if (word := licence_word(item.get("type") or item.get("title")))), None
        )
        return Work(
            source=self.name,
            source_id=f.text(record.get("id")),
            identifiers=found,
            title=title_of(body.get("title")),
            abstract=abstract_of(body.get("abstract")),
            authors=f.people(f.text(a.get("name")) for a in f.objects(body.get("author"))),
            year=f.year(body.get("year")),
            published_on=f.day_of(body.get("year"), body.get("month"), body.get("day")),
            venue=plain(f.text(journal.get("title"))) or None,
            locations=_locations(body, licence),
            kind="article",
            licence=licence,
            updated_on=f.day(record.get("last_updated")),
        )


def _locations(body: f.Json, licence: str | None) -> list[Location]:
    places: list[Location | None] = []
    for item in f.objects(body.get("link")):
        url = f.link(item.get("url"))
        if not url or f.text(item.get("type")) not in {"fulltext", None}:
            continue
        said = (f.text(item.get("content_type")) or "").upper()
        kind = {"PDF": "pdf", "XML": "xml"}.get(said) or kind_of_address(url)
        places.append(Location(url, kind, "published", licence, "publisher", is_open=True))
    return each_once(places)
