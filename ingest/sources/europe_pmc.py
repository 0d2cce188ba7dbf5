"""Europe PMC: life science papers and preprints, with citations, and full texts of the open subset as JATS."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import unquote, urlsplit

from corpus.errors import SourceError
from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import decoded, parse_json
from ingest.sources.common import Reader, each_once, works_of
from ingest.sources.jats import has_body, work_of_jats
from ingest.sources.licences import licence_word
from ingest.sources.markup import Element, children, descend, inner, local, parse_xml, raw
from ingest.sources.outcomes import failure, kind_of, nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Related, Work

_HOST = "www.ebi.ac.uk"
_REST = f"https://{_HOST}/europepmc/webservices/rest"
_COMMENTS = {
    "Erratum for": "corrects", "Erratum in": "corrected-by", "Retraction of": "retracts",
    "Retraction in": "retracted-by", "Preprint of": "is-preprint-of", "Preprint in": "has-preprint",
    "Partial retraction in": "corrected-by",
}  # fmt: skip


class EuropePmc(Reader):
    """Search, look-up, locations, citing works, JATS; no key."""

    name = "europe-pmc"
    hosts = (
        HostRule(
            _HOST, 5, 1.0, 2,
            "no published limit; about 10/s per address is community guidance, half of it is kept "
            "(suppakoko/research_helper docs/02 @ 73cb666a6849)",
        ),
        HostRule("europepmc.org", 1, 1.0, 1, "no published limit: one a second"),
    )  # fmt: skip

    def _search(self, query: str, cursor: str | None = None, limit: int = 100) -> Request:
        return Request(
            f"{_REST}/search",
            (
                ("query", query), ("resultType", "core"), ("format", "json"),
                ("pageSize", str(min(limit, 1000))), ("cursorMark", cursor or "*"),
            ),
        )  # fmt: skip

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search whole records, preprints among them, by cursor."""
        asked = f"({query})"
        if since:
            asked += f" AND (FIRST_PDATE:[{since.isoformat()} TO 3000-12-31])"
        return self._search(asked, cursor, limit)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a paper up by DOI, PMID or PMCID."""
        asked = _query(identifiers)
        return self._search(asked, limit=10) if asked else None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 25 papers up in one query (long ones end in 414 or 504)."""
        asked = [query for paper in papers[:25] if (query := _query(paper))]
        return self._search(" OR ".join(f"({query})" for query in asked), limit=100) if asked else None

    def full_text(self, identifiers: Identifiers) -> Request | None:
        """Ask for the JATS full text of a paper of the open subset; 404 and no body for all others."""
        pmcid = identifiers.get("pmcid")
        return Request(f"{_REST}/{pmcid}/fullTextXML") if pmcid else None

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for citing works, 1,000 a page."""
        pmid = identifiers.get("pmid")
        if not pmid:
            return None
        return Request(
            f"{_REST}/MED/{pmid}/citations", (("page", cursor or "1"), ("pageSize", "1000"), ("format", "json"))
        )

    def read(self, answer: Answer) -> Parsed:
        """Read a search (JSON or XML), a record, citations or references, or a JATS full text."""
        if decoded(answer).lstrip()[:1] == "<":
            root = parse_xml(self.name, answer)
            if local(root) == "article" or any(True for _ in descend(root, "article")):
                articles = [root] if local(root) == "article" else list(descend(root, "article"))
                return Parsed(works_of(articles, self._article))
            if local(root) not in {"responseWrapper", "result", "resultList"}:
                raise nonsense(self.name, f"XML of another kind: <{local(root)}>", answer)
            value: Any = _of_xml(root)
        else:
            value = parse_json(self.name, answer)
        return self._page(value if isinstance(value, dict) else {"resultList": {"result": value}}, answer)

    def _page(self, value: f.Json, answer: Answer) -> Parsed:
        if isinstance(value.get("full"), dict):  # a record as some clients store it
            value = value["full"]
        if message := f.text(value.get("errMsg")):
            raise self._error(message, answer)
        about = _paper_of(answer.url)
        for holder, items in (
            ("resultList", "result"),
            ("citationList", "citation"),
            ("referenceList", "reference"),
        ):
            if holder in value:
                found = f.objects(f.get(value[holder], items))
                works = works_of(found, lambda item, of=holder: self._work(item, of, about))
                total = f.number(value.get("hitCount"))
                return Parsed(works, _cursor(value, bool(found)), total)
        if isinstance(value.get("result"), dict | list):  # /article/{source}/{id}
            return Parsed(works_of(f.objects(value["result"]), lambda item: self._work(item, "resultList", None)))
        if value.get("id") or value.get("pmid") or value.get("title"):
            work = self._work(value, "resultList", None)
            return Parsed([work] if work else [])
        if f.number(value.get("hitCount")) == 0:
            return Parsed([], None, 0)
        raise nonsense(self.name, "JSON without a list of results", answer)

    def _error(self, message: str, answer: Answer) -> SourceError:
        return failure(self.name, kind_of(None, message), message, answer)

    def _article(self, article: Element) -> Work | None:
        bare = work_of_jats(self.name, article)
        pmcid = bare.identifiers.get("pmcid") if bare else None
        if not pmcid or not has_body(article):
            return bare
        place = Location(f"{_REST}/{pmcid}/fullTextXML", "xml", None, None, "repository", is_open=True)
        return work_of_jats(self.name, article, [place])

    def _work(self, record: f.Json, holder: str, about: str | None) -> Work | None:
        origin = f.text(record.get("source")) or ""
        own = f.text(record.get("id"))
        pmcid = f.text(record.get("pmcid")) or (own if origin == "PMC" else None)
        found = f.identifiers(
            pmid=record.get("pmid") or (own if origin == "MED" else None), pmcid=pmcid, doi=record.get("doi")
        )
        title = title_of(record.get("title"))
        if not found and not own and not title:
            return None
        journal = f.get(record.get("journalInfo"), "journal")
        venue = (
            f.text(f.get(journal, "title"))
            or f.text(record.get("journalTitle"))
            or f.text(record.get("journalAbbreviation"))
            or f.text(f.get(record.get("bookOrReportDetails"), "publisher"))
        )
        kinds = _kinds(record)
        related = _related(record)
        if about and holder == "referenceList":
            related.append(Related("is-cited-by", about))
        licence = licence_word(record.get("license"))
        return Work(
            source=self.name,
            source_id=f"{origin}:{own}" if origin and own else own or found.get("doi"),
            identifiers=found,
            title=title,
            abstract=abstract_of(record.get("abstractText")),
            authors=_authors(record),
            year=f.year(record.get("pubYear"), f.get(record.get("journalInfo"), "yearOfPublication")),
            published_on=f.day(record.get("firstPublicationDate")) or f.day(record.get("electronicPublicationDate")),
            venue=plain(venue) or None,
            locations=_locations(record, found.get("pmcid"), licence, origin),
            n_citations=f.number(record.get("citedByCount")),
            references=[about] if about and holder == "citationList" else [],
            is_retracted=_is_retracted(kinds, related),
            kind="preprint" if origin == "PPR" else (kinds[0] if kinds else None),
            licence=licence,
            related=related,
            updated_on=f.day(record.get("dateOfRevision")),
        )


def _query(identifiers: Identifiers) -> str | None:
    if doi := identifiers.get("doi"):
        quoted = doi.replace('"', "")
        return f'DOI:"{quoted}"'
    if pmcid := identifiers.get("pmcid"):
        return f"PMCID:{pmcid}"
    if pmid := identifiers.get("pmid"):
        return f"EXT_ID:{pmid} AND SRC:MED"
    return None


def _cursor(value: f.Json, has_results: bool) -> str | None:
    """Give the next mark, unless it repeats the one sent (which is echoed percent-encoded) or the page is empty."""
    mark = f.text(value.get("nextCursorMark"))
    sent = unquote(f.text(f.get(value.get("request"), "cursorMark")) or "")
    return mark if mark and has_results and mark != sent else None


def _paper_of(url: str) -> str | None:
    found = re.search(r"/rest/([A-Z]+)/(\w+)/(?:citations|references)", urlsplit(url).path)
    if not found:
        return None
    kind = {"MED": "pmid", "PMC": "pmcid"}.get(found[1])
    return f.reference(**{kind: found[2]}) if kind else f"europe-pmc:{found[1]}:{found[2]}"


def _kinds(record: f.Json) -> list[str]:
    listed = f.texts(f.get(record.get("pubTypeList"), "pubType"))
    return listed or [part.strip() for part in (f.text(record.get("pubType")) or "").split(";") if part.strip()]


def _is_retracted(kinds: list[str], related: list[Related]) -> bool | None:
    if any(kind.lower() == "retracted publication" for kind in kinds):
        return True
    if any(item.relation == "retracted-by" for item in related):
        return True
    return False if kinds else None


def _related(record: f.Json) -> list[Related]:
    found: list[Related] = []
    for item in f.objects(f.get(record.get("commentCorrectionList"), "commentCorrection")):
        relation = _COMMENTS.get((f.text(item.get("type")) or "").strip())
        kind = {"MED": "pmid", "PMC": "pmcid"}.get(f.text(item.get("source")) or "")
        doi = re.search(r"(?i)\bdoi:\s*(10\.\S+)", f.text(item.get("reference")) or "")
        named = f.reference(**{kind: item.get("id")}) if kind else f.reference(doi[1] if doi else None)
        if relation and named:
            found.append(Related(relation, named))
    return list(dict.fromkeys(found))


def _authors(record: f.Json) -> list[str]:
    listed = f.objects(f.get(record.get("authorList"), "author"))
    if listed:
        return f.people(
            f.person(a.get("firstName") or a.get("initials"), a.get("lastName"))
            or f.text(a.get("fullName"))
            or f.text(a.get("collectiveName"))
            for a in listed
        )
    said = f.text(record.get("authorString")) or ""
    return f.people(part.strip() or None for part in re.sub(r"\.$", "", said).split(","))


def _locations(record: f.Json, pmcid: str | None, licence: str | None, origin: str) -> list[Location]:
    version = "submitted" if origin == "PPR" else None
    if version is None and f.flag(record.get("authMan")):
        version = "accepted"
    places: list[Location | None] = []
    for item in f.objects(f.get(record.get("fullTextUrlList"), "fullTextUrl")):
        url = f.link(item.get("url"))
        if not url:
            continue
        code = (f.text(item.get("availabilityCode")) or "").upper()
        style = (f.text(item.get("documentStyle")) or "").lower()
        host = "repository" if "europe" in (f.text(item.get("site")) or "").lower() else "publisher"
        is_open = True if code in {"OA", "F"} else False if code == "S" else None
        kind = {"pdf": "pdf", "html": "html", "xml": "xml"}.get(style, "landing")
        places.append(
            Location(url, kind, version if host == "repository" else None, licence if is_open else None, host, is_open)
        )
    if pmcid and f.flag(record.get("inEPMC")):
        if f.flag(record.get("isOpenAccess")):
            places.append(Location(f"{_REST}/{pmcid}/fullTextXML", "xml", version, licence, "repository", is_open=True))
        if f.flag(record.get("hasPDF")):
            address = f"https://europepmc.org/articles/{pmcid}?pdf=render"
            places.append(Location(address, "pdf", version, licence, "repository", is_open=True))
    return each_once(places)


def _of_xml(element: Element) -> Any:
    """Turn the service's XML form into what its JSON form holds; repeated elements become lists."""
    below = [item for item in element if local(item)]
    if not below:
        return inner(element)
    if all(local(item) in {"i", "b", "sub", "sup", "h4", "u", "p"} for item in below):
        return raw(element)
    value: dict[str, Any] = {}
    for item in below:
        name = local(item)
        if len(children(element, name)) > 1 or name in {"result", "citation", "reference", "fullTextUrl", "author"}:
            value.setdefault(name, []).append(_of_xml(item))
        else:
            value[name] = _of_xml(item)
    return value
