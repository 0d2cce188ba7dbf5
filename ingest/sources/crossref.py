"""Crossref: the registry of journals' and preprint servers' DOIs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from urllib.parse import quote

from corpus.errors import SourceAbsent
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bibtex import is_bibtex, works_of_bibtex
from ingest.sources.bodies import decoded, parse_json
from ingest.sources.common import Reader, works_of
from ingest.sources.crossref_record import work_of_crossref
from ingest.sources.fields import get, identifiers, mapping, number, objects, text
from ingest.sources.outcomes import failure, nonsense
from ingest.work import Work

_HOST = "api.crossref.org"
_RULE = (
    "polite pool: 3 list calls a second, concurrency 3; public pool: 1 and 1 "
    "(measured after 2025-12-01: suppakoko/research_helper docs/02 @ 73cb666a6849; answers carry x-rate-limit-limit)"
)


class Crossref(Reader):
    """Search by words, look-up by DOI, no citing works, publishers' links only."""

    name = "crossref"

    @property
    def hosts(self) -> tuple[HostRule, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The polite pool is for those who leave an address."""
        if self.access.contact_email:
            return (HostRule(_HOST, 3, 1.0, 3, _RULE),)
        return (HostRule(_HOST, 1, 1.0, 1, _RULE),)

    def lacks(self) -> tuple[str, ...]:
        """Without an address the slower public pool answers."""
        if self.access.contact_email:
            return ()
        return ("answers from the slower public pool: set BRAIN_CONTACT_EMAIL",)

    def _ask(self, path: str, *params: tuple[str, str]) -> Request:
        mail = self.access.contact_email
        return Request(f"https://{_HOST}/{path}", params + ((("mailto", mail),) if mail else ()))

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search bibliographic fields, at most 1,000 a page, by cursor."""
        params = [("query", query), ("rows", str(min(limit, 1000))), ("cursor", cursor or "*")]
        if since:
            params.append(("filter", f"from-pub-date:{since.isoformat()}"))
        return self._ask("works", *params)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a DOI up; DataCite's are unknown here."""
        doi = identifiers.get("doi")
        if not doi or doi.startswith("10.48550/"):
            return None
        return self._ask(f"works/{quote(doi, safe='')}")

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 100 DOIs up by filter."""
        dois = [doi for paper in papers if (doi := paper.get("doi")) and not doi.startswith("10.48550/")][:100]
        if not dois:
            return None
        return self._ask("works", ("filter", ",".join(f"doi:{doi}" for doi in dois)), ("rows", str(len(dois))))

    def read(self, answer: Answer) -> Parsed:
        """Read a work, a list of works, the agency of a DOI, or BibTeX."""
        body = decoded(answer)
        if is_bibtex(body):
            return Parsed(works_of_bibtex(self.name, body))
        value = mapping(parse_json(self.name, answer))
        message = value.get("message")
        kind = text(value.get("message-type")) or ""
        if kind == "work-agency":
            return Parsed([self._of_agency(mapping(message), answer)])
        items = get(message, "items")
        if items is None and get(message, "DOI"):
            items = [message]
        elif items is None and value.get("DOI"):
            items = [value]
        if not isinstance(items, list) or kind not in {"", "work", "work-list"}:
            raise nonsense(self.name, f"a {kind or 'JSON object'} without works", answer)
        works = works_of(objects(items), lambda record: work_of_crossref(self.name, record))
        if items and not works:
            raise nonsense(self.name, "works without DOI and title", answer)
        cursor = text(get(message, "next-cursor")) if items and kind != "work" else None
        return Parsed(works, cursor, number(get(message, "total-results")))

    def _of_agency(self, message: object, answer: Answer) -> Work:
        found = identifiers(doi=get(message, "DOI"))
        if not found:
            raise failure(self.name, SourceAbsent, "no agency has registered this DOI", answer)
        return Work(self.name, found["doi"], found)
