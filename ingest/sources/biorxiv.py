"""bioRxiv and medRxiv: preprints by day or DOI, one row a version; no search by words (Europe PMC has that)."""

from __future__ import annotations

import re
from datetime import date
from urllib.parse import quote

from corpus.errors import SourceDown
from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import decoded, parse_json
from ingest.sources.common import Reader, works_of
from ingest.sources.crossref_record import work_of_crossref
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import failure, kind_of, nonsense
from ingest.sources.words import abstract_of, title_of
from ingest.work import Location, Related, Work

_HOST = "api.biorxiv.org"
_NONE = ("", "na", "none", "null")


class Biorxiv(Reader):
    """Look-up by DOI, harvest by day, the articles that preprints became."""

    name = "biorxiv"
    hosts = (
        HostRule(_HOST, 1, 1.0, 1, "no published limit: one a second"),
        HostRule("www.biorxiv.org", 1, 2.0, 1, "no published limit: one in two seconds"),
        HostRule("www.medrxiv.org", 1, 2.0, 1, "no published limit: one in two seconds"),
    )

    def lacks(self) -> tuple[str, ...]:
        """Words cannot be searched for."""
        return ("cannot search by words: europe-pmc searches its preprints",)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a preprint up at its own server; the other one's answer is empty. medRxiv's numbers have eight digits."""
        doi = identifiers.get("doi") or ""
        if not doi.startswith(("10.1101/", "10.64898/")):
            return None
        server = "medrxiv" if re.search(r"[/.]\d{8}$", doi) else "biorxiv"
        return Request(f"https://{_HOST}/details/{server}/{quote(doi, safe='/')}/na/json")

    def harvest(self, since: date, until: date, *, server: str = "biorxiv", cursor: str | None = None) -> Request:
        """Ask for all versions posted between two days; the cursor is a record's number."""
        return Request(f"https://{_HOST}/details/{server}/{since.isoformat()}/{until.isoformat()}/{cursor or '0'}/json")

    def published(self, since: date, until: date, *, server: str = "biorxiv", cursor: str | None = None) -> Request:
        """Ask which preprints became articles between two days."""
        return Request(f"https://{_HOST}/pubs/{server}/{since.isoformat()}/{until.isoformat()}/{cursor or '0'}/json")

    def read(self, answer: Answer) -> Parsed:
        """Read details, preprint-to-article maps, or Crossref's record of a preprint."""
        if not decoded(answer).strip():
            # 200 without a body was the whole service's state for a day: a failure, and no "nothing found".
            raise failure(self.name, SourceDown, "a success without a body", answer)
        value = f.mapping(parse_json(self.name, answer))
        message = value.get("message")
        if value.get("message-type") or f.get(message, "DOI"):
            records = f.objects(f.get(message, "items") or message)
            return Parsed(works_of(records, lambda record: work_of_crossref(self.name, record)))
        said = f.mapping(value.get("messages"))
        rows = value.get("collection")
        status = (f.text(said.get("status")) or "").strip()
        if status.lower() not in {"ok", ""}:
            if "no posts found" in status.lower() and not _asks_for_one(answer.url, said):
                return Parsed([], None, 0)
            raise failure(self.name, kind_of(None, status), status, answer)
        if not isinstance(rows, list):
            raise nonsense(self.name, "JSON without a collection", answer)
        total, start, count = (f.number(said.get(key)) for key in ("total", "cursor", "count"))
        # Pages are 100 or 30 long by year and endpoint: the step is what the answer says it holds.
        end = (start or 0) + (count or len(rows))
        more = bool(rows and total and end < total)
        return Parsed(works_of(f.objects(rows), self._work), str(end) if more else None, total)

    def _work(self, row: f.Json) -> Work | None:
        if row.get("preprint_doi"):
            return self._published(row)
        found = f.identifiers(doi=row.get("doi"))
        title = title_of(row.get("title") or row.get("preprint_title"))
        if not found:
            return None
        version = f.number(row.get("version"))
        server = f.text(row.get("server")) or "bioRxiv"
        licence = licence_word((f.text(row.get("license")) or "").replace("_", "-") or None)
        article = _article(row.get("published"))
        day = f.day(row.get("date"))
        return Work(
            source=self.name,
            source_id=f"{found['doi']}v{version}" if version else found["doi"],
            identifiers=found,
            title=title,
            abstract=abstract_of(row.get("abstract")),
            authors=_authors(row.get("authors")),
            year=f.year(day),
            published_on=day,
            venue=server,
            locations=_locations(found["doi"], version, server, licence, f.link(row.get("jatsxml"))),
            is_retracted=True if "withdrawn" in (f.text(row.get("type")) or "").lower() else None,
            kind="preprint",
            licence=licence,
            related=[Related("is-preprint-of", article)] if article else [],
        )

    def _published(self, row: f.Json) -> Work | None:
        found = f.identifiers(doi=row.get("preprint_doi"))
        article = _article(row.get("published_doi"))
        day = f.day(row.get("preprint_date"))
        if not found:
            return None
        return Work(
            source=self.name,
            source_id=found["doi"],
            identifiers=found,
            title=title_of(row.get("preprint_title")),
            abstract=abstract_of(row.get("preprint_abstract")),
            authors=_authors(row.get("preprint_authors")),
            year=f.year(day),
            published_on=day,
            venue=f.text(row.get("preprint_platform")),
            kind="preprint",
            related=[Related("is-preprint-of", article)] if article else [],
        )


def _asks_for_one(url: str, said: f.Json) -> bool:
    """Tell whether the request named a DOI; then "no posts found" is absence, else an empty interval."""
    return "/10." in url or ("interval" not in said and not url)


def _article(value: object) -> str | None:
    word = f.text(value) or ""
    return None if word.lower() in _NONE else f.reference(word)


def _authors(value: object) -> list[str]:
    return f.people(f.person(None, None, part) for part in (f.text(value) or "").split(";"))


def _locations(doi: str, version: int | None, server: str, licence: str | None, xml: str | None) -> list[Location]:
    host = "www.medrxiv.org" if server.lower() == "medrxiv" else "www.biorxiv.org"
    base = f"https://{host}/content/{quote(doi, safe='/')}v{version or 1}"
    places = [
        Location(f"{base}.full.pdf", "pdf", "submitted", licence, "repository", is_open=True),
        Location(base, "landing", "submitted", licence, "repository", is_open=True),
    ]
    if xml:
        places.insert(1, Location(xml, "xml", "submitted", licence, "repository", is_open=True))
    return places
