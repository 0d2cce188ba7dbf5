"""arXiv: the query API (Atom), OAI-PMH, and papers as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from corpus.errors import SourceDown
from ingest.sources import fields as f
from ingest.sources.arxiv_pages import page_of_paper, work_of_item
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import decoded, is_html
from ingest.sources.common import Reader, works_of
from ingest.sources.markup import (
    Element,
    attribute,
    child,
    children,
    descend,
    inner,
    local,
    parse_xml,
    raw,
    words,
)
from ingest.sources.oai import is_oai, is_withdrawn, locations_of_arxiv, page_of, work_of_record
from ingest.sources.outcomes import failure, kind_of, nonsense
from ingest.sources.words import abstract_of
from ingest.work import Location, Work

_QUERY = "export.arxiv.org"
_OAI = "oaipmh.arxiv.org"
_RULE = (
    "one request every three seconds and one connection at a time over all machines, for query API, OAI-PMH and RSS "
    "together (arXiv/arxiv-docs @ 8332d7e6c9cb source/help/api/tou.md)"
)
_MAX_START = 30000
_FIELD = r"\b(?:ti|au|abs|co|jr|cat|rn|id|all):"
_OPERATORS = re.compile(rf"{_FIELD}|\b(?:AND|OR|ANDNOT)\b")


class Arxiv(Reader):
    """Search, look-up, harvest by day; metadata are CC0, papers are not."""

    name = "arxiv"
    hosts = (
        HostRule(_QUERY, 1, 3.0, 1, _RULE),
        HostRule(_OAI, 1, 3.0, 1, _RULE, shared_with=_QUERY),
        HostRule("arxiv.org", 1, 3.0, 1, f"papers and pages are kept to the same pace: {_RULE}"),
    )

    def _ask(self, *params: tuple[str, str]) -> Request:
        return Request(f"https://{_QUERY}/api/query", params)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search all fields (or the API's own syntax, `ti:` and so on), newest first, the first 30,000."""
        start = int(cursor) if cursor and cursor.isdigit() else 0
        if start >= _MAX_START:
            return None
        asked = query if re.search(_FIELD, query) else _all_words(query)
        if since:
            asked = f"({asked}) AND submittedDate:[{since.strftime('%Y%m%d')}0000 TO 300001010000]"
        return self._ask(
            ("search_query", asked), ("start", str(start)), ("max_results", str(min(limit, 2000, _MAX_START - start))),
            ("sortBy", "submittedDate" if since else "relevance"), ("sortOrder", "descending"),
        )  # fmt: skip

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a paper up by its id; an unknown one gives an empty feed."""
        return self.lookup_many([identifiers])

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 100 papers up; unknown ids are silently left out of the answer."""
        ids = [arxiv for paper in papers if (arxiv := paper.get("arxiv"))][:100]
        return self._ask(("id_list", ",".join(ids)), ("max_results", str(len(ids)))) if ids else None

    def record(self, identifiers: Identifiers) -> Request | None:
        """Ask for the OAI-PMH record of a paper: the only one that names the licence."""
        arxiv = identifiers.get("arxiv")
        if not arxiv:
            return None
        return Request(
            f"https://{_OAI}/oai",
            (("verb", "GetRecord"), ("identifier", f"oai:arXiv.org:{arxiv}"), ("metadataPrefix", "arXiv")),
        )

    def harvest(self, since: date, *, group: str | None = None, cursor: str | None = None) -> Request:
        """Ask for records changed since a day (`group` such as `cs:cs:AI`); `until` is left out on purpose."""
        if cursor:
            return Request(f"https://{_OAI}/oai", (("verb", "ListRecords"), ("resumptionToken", cursor)))
        params = [("verb", "ListRecords"), ("metadataPrefix", "arXiv"), ("from", since.isoformat())]
        if group:
            params.append(("set", group))
        return Request(f"https://{_OAI}/oai", tuple(params))

    def locations(self, identifiers: Identifiers) -> Request | None:
        """Ask for the record: PDF and pages follow from the id."""
        return self.lookup(identifiers)

    def read(self, answer: Answer) -> Parsed:
        """Read an Atom feed, an OAI-PMH answer or record, or a page in HTML."""
        if is_html(decoded(answer)):
            return Parsed([page_of_paper(self.name, answer)])
        root = parse_xml(self.name, answer)
        if is_oai(root):
            page = page_of(self.name, root, answer)
            return Parsed(works_of(page.records, lambda r: work_of_record(self.name, r)), page.token, page.n_total)
        if local(root) in {"rss", "RDF"}:
            return Parsed(works_of(descend(root, "item"), lambda item: work_of_item(self.name, item)))
        if local(root) not in {"feed", "entry"}:
            raise nonsense(self.name, f"XML of another kind: <{local(root)}>", answer)
        return self._feed(root, answer)

    def _feed(self, feed: Element, answer: Answer) -> Parsed:
        entries = [feed] if local(feed) == "entry" else children(feed, "entry")
        for entry in entries:  # the status is 400 today and was 200 in older times
            if "api/errors" in inner(entry, "id") or (inner(entry, "title") == "Error" and not _arxiv_id(entry)):
                said = inner(entry, "summary") or "an error without words"
                raise failure(self.name, kind_of(400, said), said, answer)
        total, start = f.number(inner(feed, "totalResults")), f.number(inner(feed, "startIndex")) or 0
        size = f.number(inner(feed, "itemsPerPage"))
        if not entries and total and start < total and size != 0:
            # A known fault of the service (lukasschwab/arxiv.py issues 43, 83, 175): asking again helps.
            raise failure(self.name, SourceDown, f"an empty page at {start} although there are {total} in all", answer)
        end = start + len(entries)
        more = bool(entries and total and end < min(total, _MAX_START))
        return Parsed(works_of(entries, self._entry), str(end) if more else None, total)

    def _entry(self, entry: Element) -> Work | None:
        own = _arxiv_id(entry)
        if not own:
            return None
        found = f.identifiers(arxiv=own, doi=(inner(entry, "doi").split() or [""])[0])
        version = f.version_of(own)
        published = f.day(inner(entry, "published"))
        comment = inner(entry, "comment") or None
        abstract = abstract_of(raw(child(entry, "summary")))
        places: list[Location] = []
        for link in children(entry, "link"):
            address = f.link(attribute(link, "href"))
            kind = attribute(link, "title") or ""
            if not address or kind == "doi":
                continue
            is_pdf = kind == "pdf" or "pdf" in (attribute(link, "type") or "")
            places.append(
                Location(address, "pdf" if is_pdf else "landing", "submitted", None, "repository", is_open=True)
            )
        places.sort(key=lambda place: place.kind != "pdf")
        return Work(
            source=self.name,
            source_id=found.get("arxiv") or own,
            identifiers=found,
            title=words(entry, "title"),
            abstract=abstract,
            authors=f.people(_name(author) for author in children(entry, "author")),
            year=f.year(published),
            published_on=published,
            venue=inner(entry, "journal_ref") or None,
            locations=places or locations_of_arxiv(found.get("arxiv"), version, None),
            is_retracted=is_withdrawn(comment, (abstract or "")[:200]),
            arxiv_version=version,
            kind="preprint",
            updated_on=f.day(inner(entry, "updated")),
        )


def without_operators(query: str) -> str:
    """A query's words: what of it is the API's query language gives way to a space."""
    return _OPERATORS.sub(" ", query)


def _all_words(query: str) -> str:
    """Make the API's query of plain words: each must occur somewhere."""
    found = re.findall(r"\w[\w'-]*", query)
    return " AND ".join(f"all:{word}" for word in found) or "all:*"


def _arxiv_id(entry: Element) -> str | None:
    found = re.search(r"/abs/(.+?)/?$", inner(entry, "id"))
    own = found[1] if found else inner(entry, "id")
    return own if f.identifiers(arxiv=own) else None


def _name(author: Element) -> str | None:
    return inner(author, "name") or None
