"""OpenAlex: works of all fields, with open locations, references and counts by year."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from urllib.parse import quote

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, version_word, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import from_inverted_index, plain, title_of
from ingest.work import Location, Work

_HOST = "api.openalex.org"
_HOSTS = {"journal": "publisher", "conference": "publisher", "book series": "publisher", "ebook platform": "publisher",
          "publisher": "publisher", "repository": "repository"}  # fmt: skip


class OpenAlex(Reader):
    """Search, look-up by most identifiers, locations, citing works; a free key buys ten times the daily budget."""

    name = "openalex"
    hosts = (
        HostRule(
            _HOST, 10, 1.0, 4,
            "100 requests/s and a daily budget, told by X-RateLimit-* (ourresearch/openalex-help @ 5ad807039582 "
            "content/api/authentication.md); a tenth of it is plenty",
        ),
    )  # fmt: skip

    def lacks(self) -> tuple[str, ...]:
        """Without a key the day's budget is shared by all users of the address."""
        if self.access.api_key:
            return ()
        return ("has only the daily budget that all users of this address share: set BRAIN_OPENALEX_API_KEY",)

    def _ask(self, path: str, *params: tuple[str, str]) -> Request:
        key = self.access.api_key
        return Request(f"https://{_HOST}/{path}", params, headers=(("Authorization", f"Bearer {key}"),) if key else ())

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search title, abstract and full text, at most 100 a page, by cursor."""
        params = [("search", query), ("per_page", str(min(limit, 100))), ("cursor", cursor or "*")]
        if since:
            params.append(("filter", f"from_publication_date:{since.isoformat()}"))
        return self._ask("works", *params)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a work up, arXiv papers by their DataCite DOI (single works cost nothing)."""
        if work := identifiers.get("openalex"):
            return self._ask(f"works/{work}")
        doi = identifiers.get("doi") or (f"10.48550/arxiv.{arxiv}" if (arxiv := identifiers.get("arxiv")) else None)
        if doi:
            return self._ask(f"works/doi:{quote(doi, safe='/:()')}")
        for kind in ("pmid", "pmcid"):
            if value := identifiers.get(kind):
                return self._ask(f"works/{kind}:{value}")
        return None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 50 papers up by one kind of identifier, the one that most of them have."""
        dois = [
            paper.get("doi") or f"10.48550/arxiv.{paper['arxiv']}"
            for paper in papers
            if paper.get("doi") or paper.get("arxiv")
        ]
        works = [work for paper in papers if (work := paper.get("openalex"))]
        # A comma or bar in a DOI is part of the filter's own language.
        dois = [doi for doi in dois if not re.search(r"[,|]", doi)]
        kind, values = ("doi", dois) if len(dois) >= len(works) else ("openalex", works)
        if not values:
            return None
        return self._ask("works", ("filter", f"{kind}:{'|'.join(values[:50])}"), ("per_page", "100"))

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for citing works; needs the OpenAlex id."""
        work = identifiers.get("openalex")
        if not work:
            return None
        return self._ask("works", ("filter", f"cites:{work}"), ("per_page", "100"), ("cursor", cursor or "*"))

    def read(self, answer: Answer) -> Parsed:
        """Read a work or a list of works."""
        value = parse_json(self.name, answer)
        if isinstance(value, list):
            value = {"results": value}
        results = f.get(value, "results")
        if isinstance(results, list):
            meta = f.mapping(value.get("meta"))
            works = works_of(f.objects(results), self._work)
            cursor = f.text(meta.get("next_cursor")) if results else None
            if cursor is None and results and "next_cursor" not in meta:
                page, size, total = (f.number(meta.get(key)) for key in ("page", "per_page", "count"))
                cursor = f"page:{page + 1}" if page and size and total and page * size < total else None
            return Parsed(works, cursor, f.number(meta.get("count")))
        work = self._work(f.mapping(value))
        if work is None:
            raise nonsense(self.name, "a JSON value without a work", answer)
        return Parsed([work])

    def _work(self, record: f.Json) -> Work | None:
        ids = f.mapping(record.get("ids"))
        places = list(_places(record))
        found = f.identifiers(
            openalex=record.get("id") or ids.get("openalex"),
            doi=record.get("doi") or ids.get("doi"),
            pmid=ids.get("pmid"),
            pmcid=_digits("PMC", ids.get("pmcid")),
            mag=ids.get("mag"),
        )
        arxiv_page = next((url for place in places if (url := _arxiv_address(place))), None)
        found |= {kind: value for kind, value in f.identifiers(arxiv=arxiv_page).items() if kind not in found}
        title = title_of(f.text(record.get("title")) or f.text(record.get("display_name")))
        if not found and not title:
            return None
        primary = f.mapping(record.get("primary_location"))
        best = f.mapping(record.get("best_oa_location"))
        venue = (
            f.text(f.get(primary.get("source"), "display_name"))
            or f.text(primary.get("raw_source_name"))
            or f.text(f.get(record.get("host_venue"), "display_name"))
        )
        return Work(
            source=self.name,
            source_id=found.get("openalex") or found.get("doi"),
            identifiers=found,
            title=title,
            abstract=from_inverted_index(record.get("abstract_inverted_index"))
            or from_inverted_index(record.get("abstract_inverted_index_v3")),
            authors=f.people(_author(item) for item in f.objects(record.get("authorships"))),
            year=f.year(record.get("publication_year"), record.get("publication_date")),
            published_on=f.day(record.get("publication_date")),
            venue=plain(venue) or None,
            locations=_locations(record, places),
            n_citations=f.number(record.get("cited_by_count")),
            references=[
                ref for item in f.listed(record.get("referenced_works")) if (ref := f.reference(openalex=item))
            ],
            is_retracted=f.flag(record.get("is_retracted")),
            arxiv_version=f.version_of(arxiv_page),
            kind=f.text(record.get("type")),
            licence=licence_word(best.get("license") or primary.get("license")),
            n_citations_by_year={
                str(y): n
                for item in f.objects(record.get("counts_by_year"))
                if (y := f.year(item.get("year"))) and (n := f.number(item.get("cited_by_count"))) is not None
            },
            updated_on=f.day(record.get("updated_date")),
        )


def _digits(prefix: str, value: object) -> str | None:
    """Give `PMC123` from an address that may leave the letters out."""
    found = re.search(r"(\d+)/?$", f.text(value) or "")
    return f"{prefix}{found[1]}" if found else None


def _author(item: f.Json) -> str | None:
    return f.text(f.get(item.get("author"), "display_name")) or f.text(item.get("raw_author_name"))


def _places(record: f.Json) -> Iterator[f.Json]:
    for name in ("best_oa_location", "primary_location"):
        if place := f.mapping(record.get(name)):
            yield place
    yield from f.objects(record.get("locations"))
    yield from f.objects(record.get("oa_locations"))


def _arxiv_address(place: f.Json) -> str | None:
    urls = (f.link(place.get("landing_page_url")), f.link(place.get("pdf_url")))
    return next((url for url in urls if url and re.search(r"(?i)//(?:www\.|export\.)?arxiv\.org/", url)), None)


def _locations(record: f.Json, places: list[f.Json]) -> list[Location]:
    found: list[Location | None] = []
    for place in places:
        version = version_word(place.get("version"))
        licence = licence_word(place.get("license"))
        host = _HOSTS.get(f.text(f.get(place.get("source"), "type")) or "")
        is_open = f.flag(place.get("is_oa"))
        for name, kind in (("pdf_url", "pdf"), ("landing_page_url", "landing")):
            if url := f.link(place.get(name)):
                found.append(Location(url, kind, version, licence, host, is_open=is_open))
    access = f.mapping(record.get("open_access"))
    known = {location.url for location in found if location}
    if (url := f.link(access.get("oa_url"))) and url not in known:
        found.append(Location(url, kind_of_address(url), is_open=True))
    return each_once(found)
