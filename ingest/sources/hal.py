"""HAL: the French open archive, a Solr index, and its landing pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bibtex import is_bibtex, works_of_bibtex
from ingest.sources.bodies import decoded, is_html, parse_json, raise_if_json_error, raise_unreadable
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.licences import licence_word
from ingest.sources.markup import parse_html, parse_xml
from ingest.sources.outcomes import nonsense
from ingest.sources.pages import work_of_page
from ingest.sources.solr import is_solr, of_solr
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Work

_HOST = "api.archives-ouvertes.fr"
_FIELDS = (  # fl=* would expose the authors' e-mail domains
    "docid,halId_s,version_i,doiId_s,arxivId_s,pubmedId_s,pubmedcentralId_s,title_s,abstract_s,authFullName_s,"
    "publicationDate_s,publicationDateY_i,producedDate_s,docType_s,submitType_s,openAccess_bool,fileMain_s,files_s,"
    "licence_s,journalTitle_s,conferenceTitle_s,bookTitle_s,uri_s,modifiedDate_s"
)
_ID = re.compile(r"(?<![\w-])([a-z]+(?:[-_][a-z]+)*-\d{5,9})(?:v(\d+))?(?![\w-])")


class Hal(Reader):
    """Search and look-up by DOI, arXiv id or HAL id; no key."""

    name = "hal"
    hosts = (
        HostRule(_HOST, 2, 1.0, 1, "no published limit; two a second is courtesy"),
        HostRule("hal.science", 1, 1.0, 1, "no published limit; one a second is courtesy"),
    )

    def _ask(self, query: str, start: int, size: int, *more: tuple[str, str]) -> Request:
        params = (("q", query), ("fl", _FIELDS), ("rows", str(size)), ("start", str(start)), ("wt", "json"))
        return Request(f"https://{_HOST}/search/", params + more)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search, at most 10,000 a page."""
        start = int(cursor) if cursor and cursor.isdigit() else 0
        more = (("fq", f"publicationDate_tdate:[{since.isoformat()}T00:00:00Z TO *]"),) if since else ()
        return self._ask(query, start, min(limit, 10000), *more)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Search for one identifier; HAL ids go without version."""
        asked = _query(identifiers)
        return self._ask(asked, 0, 10) if asked else None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Search for up to 30 papers at once."""
        asked = [query for paper in papers[:30] if (query := _query(paper))]
        return self._ask(" OR ".join(asked), 0, 100) if asked else None

    def read(self, answer: Answer) -> Parsed:
        """Read a search, a landing page, or BibTeX."""
        body = decoded(answer)
        if is_html(body):
            return Parsed([self._page(answer)])
        if is_bibtex(body):
            return Parsed(works_of_bibtex(self.name, body))
        if body.lstrip().startswith("<"):
            root = parse_xml(self.name, answer)
            value = of_solr(root) if is_solr(root) else {}
            raise_if_json_error(self.name, value, answer)
        else:
            value = parse_json(self.name, answer)
        response = f.get(value, "response")
        docs = f.get(response, "docs")
        if not isinstance(docs, list):
            raise nonsense(self.name, "JSON without documents", answer)
        total, start = f.number(response.get("numFound")), f.number(response.get("start")) or 0
        end = start + len(docs)
        return Parsed(
            works_of(f.objects(docs), self._work), str(end) if docs and total and end < total else None, total
        )

    def _page(self, answer: Answer) -> Work:
        page = parse_html(answer)
        work = work_of_page(self.name, page, answer.url) if page is not None else None
        if page is None or work is None:
            raise_unreadable(self.name, answer, "a page of a paper")
        places = [item.url for item in work.locations]
        said = next((found for text in (answer.url, *places) if (found := _ID.search(text))), None)
        if said is None:
            return work
        ids = {**work.identifiers, "hal": said[1]}
        locations = [replace(item, host="repository") for item in work.locations]
        return replace(work, source_id=said[1], identifiers=ids, locations=locations)

    def _work(self, record: f.Json) -> Work | None:
        uri = f.link(f.text(record.get("uri_s")))
        said = _ID.search(f.text(record.get("halId_s")) or uri or "")
        own = said[1] if said else f.text(record.get("halId_s"))
        found = f.identifiers(
            doi=record.get("doiId_s") or _doi_of_label(record),
            arxiv=record.get("arxivId_s"),
            pmid=record.get("pubmedId_s"),
            pmcid=record.get("pubmedcentralId_s"),
            hal=own,
        )
        title = title_of(_language(record, "title_s"))
        if not found and not title and not uri:
            return None
        licence = licence_word(record.get("licence_s"))
        venue = next(
            (v for key in ("journalTitle_s", "conferenceTitle_s", "bookTitle_s", "source_s") if (v := f.text(record.get(key)))),
            None,
        )  # fmt: skip
        days = [record.get(key) for key in ("publicationDate_s", "producedDate_s")]
        year = f.year(record.get("publicationDateY_i"), *days, record.get("producedDateY_i"))
        kind = f.text(record.get("docType_s"))
        return Work(
            source=self.name,
            source_id=own or f.text(record.get("docid")),
            identifiers=found,
            title=title,
            abstract=abstract_of(_language(record, "abstract_s")),
            authors=f.people(f.text(name) for name in f.listed(record.get("authFullName_s"))),
            year=year,
            published_on=next((day for value in days if (day := f.day(value))), None),
            venue=plain(venue) or None,
            locations=_locations(record, uri, licence, kind),
            arxiv_version=f.version_of(record.get("arxivId_s")),
            kind="preprint" if kind == "UNDEFINED" else kind,
            licence=licence,
            updated_on=f.day(record.get("modifiedDate_s")),
        )


def _doi_of_label(record: f.Json) -> str | None:
    """Give the DOI that the citation shows between ⟨ and ⟩; answers with the default fields have no other."""
    found = re.search(r"⟨(10\.[^⟨⟩\s]+)⟩", plain(record.get("label_s")))
    return found[1] if found else None


def _language(record: f.Json, name: str) -> str | None:
    """Give a text in the record's own order of languages, else the English one."""
    return f.text(record.get(name)) or f.text(record.get(f"en_{name}")) or f.text(record.get(f"fr_{name}"))


def _query(identifiers: Identifiers) -> str | None:
    for kind, field in (("hal", "halId_s"), ("doi", "doiId_s"), ("arxiv", "arxivId_s"), ("pmid", "pubmedId_s")):
        if value := identifiers.get(kind):
            quoted = value.replace('"', "")
            return f'{field}:"{quoted}"'
    return None


def _locations(record: f.Json, uri: str | None, licence: str | None, kind: str | None) -> list[Location]:
    is_open = f.flag(record.get("openAccess_bool"))
    version = "submitted" if kind == "UNDEFINED" else None
    files = [url for key in ("fileMain_s", "files_s") for value in f.listed(record.get(key)) if (url := f.link(value))]
    places: list[Location | None] = [
        Location(
            url, kind_of_address(url), version, licence, "repository", is_open=True if is_open is None else is_open
        )
        for url in files
    ]
    if uri:
        places.append(Location(uri, "landing", version, licence, "repository", is_open=is_open))
    return each_once(places)
