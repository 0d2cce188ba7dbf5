"""PLOS: all articles of the Public Library of Science, a Solr index; everything CC BY."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from urllib.parse import parse_qs, quote, urlsplit

from corpus.errors import SourceRefused
from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import decoded, is_html, parse_json
from ingest.sources.common import Reader, works_of
from ingest.sources.markup import parse_xml
from ingest.sources.outcomes import failure, nonsense
from ingest.sources.solr import is_solr, of_solr
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Work

_HOST = "api.plos.org"
_FIELDS = "id,title_display,abstract,author_display,publication_date,journal,article_type,counter_total_all"
_RULE = "7,200 requests a day, 300 an hour, 10 a minute, then the address is locked out (api.plos.org/solr/faq)"
_JOURNALS = {
    "pone": "plosone", "pbio": "plosbiology", "pmed": "plosmedicine", "pcbi": "ploscompbiol", "pgen": "plosgenetics",
    "ppat": "plospathogens", "pntd": "plosntds", "pclm": "climate", "pdig": "digitalhealth",
    "pgph": "globalpublichealth", "pstr": "sustainabilitytransformation", "pwat": "water", "pmen": "mentalhealth",
    "pcsy": "complexsystems", "pctr": "plosclinicaltrials",
}  # fmt: skip


class Plos(Reader):
    """Search and look-up by DOI; no key."""

    name = "plos"
    hosts = (
        HostRule(_HOST, 10, 60.0, 1, _RULE),
        HostRule(_HOST, 300, 3600.0, 1, _RULE),
        HostRule(_HOST, 7200, 86400.0, 1, _RULE),
        HostRule("journals.plos.org", 1, 2.0, 1, "no published limit; one in two seconds is courtesy"),
    )  # fmt: skip

    def _ask(self, query: str, start: int, size: int, *more: tuple[str, str]) -> Request:
        params = (
            ("q", query), ("fq", "doc_type:full"), ("fl", _FIELDS), ("start", str(start)), ("rows", str(size)),
            ("wt", "json"),
        )  # fmt: skip
        return Request(f"https://{_HOST}/search", params + more)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search whole articles (`doc_type:full`: without it parts of articles are hits too)."""
        start = int(cursor) if cursor and cursor.isdigit() else 0
        more = (("fq", f"publication_date:[{since.isoformat()}T00:00:00Z TO *]"),) if since else ()
        return self._ask(query, start, min(limit, 500), *more)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look an article of PLOS up; other publishers' DOIs are not asked for."""
        return self.lookup_many([identifiers])

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 50 articles up."""
        dois = [doi for paper in papers if (doi := paper.get("doi") or "").startswith("10.1371/")][:50]
        return self._ask(" OR ".join(f'id:"{doi}"' for doi in dois), 0, len(dois)) if dois else None

    def read(self, answer: Answer) -> Parsed:
        """Read a search; Solr may add an error to an answer that looks whole."""
        body = decoded(answer)
        if body.lstrip().startswith("<") and not is_html(body):
            root = parse_xml(self.name, answer)
            value: f.Json = of_solr(root) if is_solr(root) else {}
        else:
            value = f.mapping(parse_json(self.name, answer))
        if error := value.get("error"):
            raise failure(self.name, SourceRefused, f.text(f.get(error, "msg")) or "an error", answer)
        response = value.get("response")
        docs = f.get(response, "docs")
        if not isinstance(docs, list):
            raise nonsense(self.name, "JSON without documents", answer)
        total, start = f.number(f.get(response, "numFound")), f.number(f.get(response, "start")) or 0
        end = start + len(docs)
        asked = _asked_doi(answer.url) if len(docs) == 1 else None
        works = works_of(f.objects(docs), lambda record: self._work(record, asked))
        return Parsed(works, str(end) if docs and total and end < total else None, total)

    def _work(self, record: f.Json, asked: str | None) -> Work | None:
        own = f.text(record.get("id")) or asked
        if own and re.fullmatch(r"10\.1371/[\w.]+/[\w-]+", own):  # a part of an article, such as its body
            return None
        found = f.identifiers(doi=own)
        title = title_of(f.text(record.get("title_display")) or f.text(record.get("title")))
        said = [text for item in f.listed(record.get("abstract")) if (text := abstract_of(item))]
        if not found and not title and not said:
            return None
        day = record.get("publication_date")
        return Work(
            source=self.name,
            source_id=found.get("doi"),
            identifiers=found,
            title=title,
            abstract=" ".join(f.once(said)) or None,
            authors=f.people(f.text(name) for name in f.listed(record.get("author_display") or record.get("author"))),
            year=f.year(day),
            published_on=f.day(day),
            venue=plain(f.text(record.get("journal")) or f.text(record.get("cross_published_journal_name"))) or None,
            locations=_locations(found.get("doi")),
            kind=f.text(record.get("article_type")),
            licence="cc-by" if found else None,
        )


def _asked_doi(url: str) -> str | None:
    """Give the DOI that the request asked for: an answer with `fl=abstract` does not repeat it."""
    query = (parse_qs(urlsplit(url).query).get("q") or [""])[0]
    asked = re.fullmatch(r'id:"?(10\.1371/[\w.]+)"?', query)
    return asked[1] if asked else None


def _locations(doi: str | None) -> list[Location]:
    code = re.match(r"10\.1371/journal\.(p[a-z]{3})\.", doi or "")
    journal = _JOURNALS.get(code[1]) if code else None
    if not journal or not doi:
        return []
    base = f"https://journals.plos.org/{journal}/article"
    named = quote(doi, safe="/")
    return [
        Location(f"{base}/file?id={named}&type=printable", "pdf", "published", "cc-by", "publisher", is_open=True),
        Location(f"{base}/file?id={named}&type=manuscript", "xml", "published", "cc-by", "publisher", is_open=True),
        Location(f"{base}?id={named}", "landing", "published", "cc-by", "publisher", is_open=True),
    ]
