"""Semantic Scholar's graph: papers, batches, citations and references, bulk search, snippets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request, json_body
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Related, Work

_HOST = "api.semanticscholar.org"
_GRAPH = f"https://{_HOST}/graph/v1"
_FIELDS = (
    "externalIds,title,abstract,authors,year,publicationDate,venue,publicationVenue,journal,citationCount,"
    "openAccessPdf,isOpenAccess,publicationTypes"
)
_MORE = f"{_FIELDS},tldr,references.externalIds,references.title"
_IDS = {"doi": "DOI:", "arxiv": "ARXIV:", "pmid": "PMID:", "pmcid": "PMCID:", "acl": "ACL:", "corpus": "CorpusId:"}


class SemanticScholar(Reader):
    """Search, look-up one or 500 at a time, citing works; without a key the shared pool mostly answers 429."""

    name = "semantic-scholar"
    hosts = (
        HostRule(
            _HOST, 1, 1.1, 1,
            "1 request/s with a key; without one a pool that everybody shares, 429 being the normal case "
            "(suppakoko/research_helper docs/02 @ 73cb666a6849; NLeSC/litstudy PR 105)",
        ),
    )  # fmt: skip

    def lacks(self) -> tuple[str, ...]:
        """Without a key most calls are throttled."""
        if self.access.api_key:
            return ()
        return ("is mostly throttled without a key: set BRAIN_SEMANTIC_SCHOLAR_API_KEY",)

    def _ask(self, path: str, *params: tuple[str, str], body: object = None) -> Request:
        headers = (("x-api-key", self.access.api_key),) if self.access.api_key else ()
        if body is None:
            return Request(f"{_GRAPH}/{path}", params, headers=headers)
        headers += (("Content-Type", "application/json"),)
        return Request(f"{_GRAPH}/{path}", params, "POST", headers, json_body(body))

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search by relevance, the first 1,000; a hyphenated word matches nothing here, so hyphens become spaces."""
        offset = int(cursor) if cursor and cursor.isdigit() else 0
        if offset >= 1000:
            return None
        size = min(limit, 100, 1000 - offset)
        params = [("query", re.sub(r"[-‐‑]", " ", query)), ("fields", _FIELDS), ("offset", str(offset))]
        params.append(("limit", str(size)))
        if since:
            params.append(("publicationDateOrYear", f"{since.isoformat()}:"))
        return self._ask("paper/search", *params)

    def search_bulk(self, query: str, *, since: date | None = None, cursor: str | None = None) -> Request:
        """Search for all that fits, 1,000 a page, unranked; the query may hold + | - "" * ()."""
        params = [("query", query), ("fields", _FIELDS)]
        if since:
            params.append(("publicationDateOrYear", f"{since.isoformat()}:"))
        if cursor:
            params.append(("token", cursor))
        return self._ask("paper/search/bulk", *params)

    def snippets(self, query: str, *, limit: int = 10) -> Request:
        """Ask for passages that fit some words; their papers are what is read."""
        return self._ask("snippet/search", ("query", query), ("limit", str(limit)))

    def match(self, title: str) -> Request:
        """Ask for the one paper whose title fits best."""
        return self._ask("paper/search/match", ("query", title), ("fields", _FIELDS))

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a paper up by any identifier but OpenAlex's."""
        name = paper_name(identifiers)
        return self._ask(f"paper/{quote(name, safe=':/')}", ("fields", _MORE)) if name else None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 500 papers up at once."""
        names = [name for paper in papers if (name := paper_name(paper))][:500]
        return self._ask("paper/batch", ("fields", f"{_FIELDS},tldr"), body={"ids": names}) if names else None

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for citing papers, 1,000 a page."""
        return self._links(identifiers, "citations", cursor)

    def references(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for cited papers, 1,000 a page."""
        return self._links(identifiers, "references", cursor)

    def _links(self, identifiers: Identifiers, what: str, cursor: str | None) -> Request | None:
        name = paper_name(identifiers)
        if not name:
            return None
        params = (("fields", _FIELDS), ("offset", cursor or "0"), ("limit", "1000"))
        return self._ask(f"paper/{quote(name, safe=':/')}/{what}", *params)

    def read(self, answer: Answer) -> Parsed:
        """Read a paper, a batch, a page of a search, of citations, of references, or of snippets."""
        value = parse_json(self.name, answer)
        if isinstance(value, list):  # a batch: unknown ids are null
            return Parsed(works_of(f.objects(value), self._work))
        record = f.mapping(value)
        data = record.get("data", record.get("recommendedPapers"))
        if data is None and not record.get("paperId"):
            if f.number(record.get("total")) == 0 or "total" in record or "offset" in record:
                return Parsed([], None, f.number(record.get("total")))
            raise nonsense(self.name, "a JSON object that is neither paper nor page", answer)
        if data is None:
            work = self._work(record)
            return Parsed([work] if work else [])
        about = _paper_of(answer.url)
        works = works_of(f.objects(data), lambda item: self._linked(item, about))
        if not works and any(isinstance(item, dict) and item for item in f.listed(data)):
            raise nonsense(self.name, "a page of things that are no papers", answer)
        cursor = f.text(record.get("token")) or f.text(record.get("next"))
        return Parsed(works, cursor if f.listed(data) else None, f.number(record.get("total")))

    def _linked(self, item: f.Json, about: str | None) -> Work | None:
        """Read an item of a page: a paper, or an edge to or from the paper that was asked about."""
        if isinstance(item.get("citingPaper"), dict):
            return self._work(item["citingPaper"], references=[about] if about else [])
        if isinstance(item.get("citedPaper"), dict):
            return self._work(item["citedPaper"], related=[Related("is-cited-by", about)] if about else [])
        if "snippet" in item and isinstance(item.get("paper"), dict):
            return self._work(item["paper"])
        return self._work(item)

    def _work(self, record: f.Json, **more: Any) -> Work | None:
        ids = {key.lower(): value for key, value in f.mapping(record.get("externalIds")).items()}
        found = f.identifiers(
            s2=record.get("paperId"),
            doi=ids.get("doi"),
            arxiv=ids.get("arxiv"),
            pmid=ids.get("pubmed"),
            pmcid=f"PMC{str(pmc).upper().removeprefix('PMC')}" if (pmc := ids.get("pubmedcentral")) else None,
            acl=ids.get("acl"),
            dblp=ids.get("dblp"),
            mag=ids.get("mag"),
            corpus=ids.get("corpusid") or record.get("corpusId"),
        )
        title = title_of(record.get("title"))
        if not found and not title:
            return None
        names = (item if isinstance(item, str) else f.get(item, "name") for item in f.listed(record.get("authors")))
        venue = (
            f.text(f.get(record.get("publicationVenue"), "name"))
            or f.text(record.get("venue"))
            or f.text(f.get(record.get("journal"), "name"))
        )
        access = f.mapping(record.get("openAccessPdf") or record.get("openAccessInfo"))
        cited = [_reference(item) for item in f.objects(record.get("references"))]
        more.setdefault("references", [ref for ref in cited if ref])
        return Work(
            source=self.name,
            source_id=found.get("s2") or (f"CorpusId:{found['corpus']}" if "corpus" in found else None),
            identifiers=found,
            title=title,
            abstract=abstract_of(record.get("abstract")),
            authors=f.people(f.text(name) for name in names),
            year=f.year(record.get("year"), record.get("publicationDate")),
            published_on=f.day(record.get("publicationDate")),
            venue=plain(venue) or None,
            locations=_locations(access),
            n_citations=f.number(record.get("citationCount")),
            kind=f.text(record.get("publicationTypes")),
            licence=licence_word(access.get("license")),
            tldr=plain(f.get(record.get("tldr"), "text")) or None,
            **more,
        )


def paper_name(identifiers: Identifiers) -> str | None:
    """Give the name by which the service knows a paper: its own id, else the first of the known kinds."""
    if s2 := identifiers.get("s2"):
        return s2
    for kind, prefix in _IDS.items():
        if value := identifiers.get(kind):
            return f"{prefix}{value.removeprefix('PMC') if kind == 'pmcid' else value}"
    return None


def _paper_of(url: str) -> str | None:
    """Give the paper that a citations or references address asks about, as `kind:value`."""
    found = re.search(r"/paper/(.+)/(?:citations|references)$", urlsplit(url).path)
    if not found:
        return None
    name = unquote(found[1])
    kind, _, value = name.partition(":")
    if kind.lower() == "corpusid":
        return f"corpus:{value}"
    return f.named(name) or f.named(value) or f"s2:{name}"


def _reference(item: f.Json) -> str | None:
    ids = f.mapping(item.get("externalIds"))
    return f.reference(ids.get("DOI"), item.get("title"), arxiv=ids.get("ArXiv"), s2=item.get("paperId"))


def _locations(access: f.Json) -> list[Location]:
    """Read `openAccessPdf`: its address may be a page or an empty string, with the true one in the disclaimer."""
    licence = licence_word(access.get("license"))
    status = (f.text(access.get("status")) or "").upper()
    host = {"GREEN": "repository", "GOLD": "publisher", "HYBRID": "publisher", "BRONZE": "publisher"}.get(status)
    places: list[Location | None] = []
    url = f.link(access.get("url"))
    if url:
        places.append(Location(url, kind_of_address(url), None, licence, host, is_open=status != "CLOSED" or None))
    for other in re.findall(r"https?://[^\s,<>\"]+", f.text(access.get("disclaimer")) or ""):
        address = f.link(other.rstrip(".,;)"))
        hidden = parse_qs(urlsplit(address or "").query).get("email")
        if address and not hidden and "unpaywall.org" not in address and address != url:
            places.append(Location(address, kind_of_address(address), None, licence))
    return each_once(places)
