"""DataCite: the registry of DOIs of arXiv, Zenodo, Dryad and other repositories; and doi.org's word on agencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from urllib.parse import parse_qs, quote, urlsplit

from corpus.errors import SourceAbsent
from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bibtex import is_bibtex, works_of_bibtex
from ingest.sources.bodies import decoded, parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.crossref_record import work_of_crossref
from ingest.sources.licences import is_free, licence_word
from ingest.sources.outcomes import failure, nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Related, Work

_HOST = "api.datacite.org"
_RULE = (
    "3,000 requests in 5 minutes with a login, 1,000 with an address, fewer without "
    "(api-evangelist datacite rate-limits, 2026-06)"
)
_RELATIONS = {
    "IsVersionOf": "is-version-of", "HasVersion": "has-version", "IsIdenticalTo": "is-identical-to",
    "IsPreprintOf": "is-preprint-of", "HasPreprint": "has-preprint", "IsPublishedIn": "is-part-of",
    "IsNewVersionOf": "is-version-of", "IsPreviousVersionOf": "has-version", "IsVariantFormOf": "is-version-of",
    "IsOriginalFormOf": "has-version", "IsPartOf": "is-part-of",
}  # fmt: skip


class DataCite(Reader):
    """Search, look-up by DOI, references and versions; landing pages rather than files."""

    name = "datacite"

    @property
    def hosts(self) -> tuple[HostRule, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """An address buys more calls."""
        rate = 3 if self.access.contact_email else 1
        return (
            HostRule(_HOST, rate, 1.0, 2, _RULE),
            HostRule("doi.org", 1, 1.0, 1, "no published limit; one a second is courtesy"),
        )

    def _ask(self, path: str, *params: tuple[str, str]) -> Request:
        mail = self.access.contact_email
        return Request(f"https://{_HOST}/{path}", params + ((("mailto", mail),) if mail else ()))

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search preprints and articles; the cursor is the address of the next page."""
        if cursor:
            address = urlsplit(cursor)
            params = tuple((key, value) for key, values in parse_qs(address.query).items() for value in values)
            return Request(f"https://{_HOST}{address.path}", params)
        asked = query
        if since:
            asked = f"({query}) AND registered:[{since.isoformat()} TO *]"
        kinds = ("resource-type-id", "preprint,journal-article,conference-paper,text,report,dissertation")
        return self._ask("dois", ("query", asked), kinds, ("page[size]", str(min(limit, 1000))), ("page[cursor]", "1"))

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a DOI up; an arXiv paper by the DOI that DataCite gave it."""
        doi = identifiers.get("doi")
        if arxiv := identifiers.get("arxiv"):
            doi = f"10.48550/arxiv.{arxiv}"
        return self._ask(f"dois/{quote(doi, safe='/:()')}") if doi else None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Look up to 50 DOIs up."""
        dois = [p.get("doi") or (f"10.48550/arxiv.{p['arxiv']}" if p.get("arxiv") else None) for p in papers]
        quoted = [doi.replace('"', "") for doi in dois if doi][:50]
        if not quoted:
            return None
        asked = " OR ".join(f'doi:"{doi}"' for doi in quoted)
        return self._ask("dois", ("query", asked), ("page[size]", str(len(quoted))))

    def agency(self, doi: str) -> Request:
        """Ask doi.org which agency has registered a DOI's prefix."""
        return Request(f"https://doi.org/ra/{quote(doi, safe='/')}")

    def read(self, answer: Answer) -> Parsed:
        """Read a DOI, a list of DOIs, doi.org's word on a prefix, or BibTeX by content negotiation."""
        body = decoded(answer)
        if is_bibtex(body):
            return Parsed(works_of_bibtex(self.name, body))
        value = parse_json(self.name, answer)
        if isinstance(value, list):
            return Parsed(works_of(f.objects(value), lambda item: self._agency(item, answer)))
        data = f.get(value, "data")
        if isinstance(data, dict):
            work = self._work(data)
            if work is None:
                raise nonsense(self.name, "a DOI without attributes", answer)
            return Parsed([work])
        if isinstance(data, list):
            following = f.link(f.get(value, "links", "next"))
            total = f.number(f.get(value, "meta", "total"))
            return Parsed(works_of(f.objects(data), self._work), following if data else None, total)
        record = f.mapping(value)
        # By content negotiation: DataCite's own JSON, or citation JSON as Crossref has it.
        work = self._work({"attributes": record}) or work_of_crossref(self.name, record)
        if work is None:
            raise nonsense(self.name, "JSON without data", answer)
        return Parsed([work])

    def _agency(self, item: f.Json, answer: Answer) -> Work | None:
        asked = f.text(item.get("DOI"))
        if not f.text(item.get("RA")):
            said = f.text(item.get("status")) or "no agency"
            raise failure(self.name, SourceAbsent, f"{asked}: {said}", answer)
        return Work(self.name, asked, f.identifiers(doi=asked)) if asked else None

    def _work(self, data: f.Json) -> Work | None:
        record = f.mapping(data.get("attributes"))
        found = f.identifiers(doi=record.get("doi") or data.get("id"), **_alternates(record))
        if not found:
            return None
        titles = f.objects(record.get("titles"))
        main = next((t for t in titles if not t.get("titleType")), f.mapping(titles))
        licence = next(
            (word for item in f.objects(record.get("rightsList"))
             if (word := licence_word(item.get("rightsIdentifier")) or licence_word(item.get("rightsUri")))
             and not word.startswith("info:")),
            None,
        )  # fmt: skip
        dates = {
            f.text(item.get("dateType")): item.get("date")
            for item in reversed(f.objects(record.get("dates")))
            if item.get("date")
        }
        whole = next(
            (day for kind in ("Issued", "Available", "Submitted", "Created") if (day := f.day(dates.get(kind)))), None
        )
        first = f.year(record.get("publicationYear"), dates.get("Issued"), record.get("published"))
        publisher = record.get("publisher")
        return Work(
            source=self.name,
            source_id=found.get("doi") or f.text(data.get("id")),
            identifiers=found,
            title=title_of(main.get("title")),
            abstract=_abstract(record),
            authors=f.people(_creator(item) for item in f.objects(record.get("creators"))),
            year=first or f.year(whole),
            published_on=whole if whole and (not first or whole.startswith(str(first))) else None,
            venue=plain(
                f.text(f.get(record.get("container"), "title"))
                or (f.text(publisher.get("name")) if isinstance(publisher, dict) else f.text(publisher))
            )
            or None,
            locations=_locations(record, licence),
            n_citations=f.number(record.get("citationCount")),
            references=_references(record, f.mapping(data.get("relationships"))),
            kind=f.text(f.get(record.get("types"), "resourceTypeGeneral")),
            licence=licence,
            related=_related(record),
            updated_on=f.day(record.get("updated")),
            n_citations_by_year={
                str(y): n
                for item in f.objects(record.get("citationsOverTime"))
                if (y := f.year(item.get("year"))) and (n := f.number(item.get("total"))) is not None
            },
        )


def _alternates(record: f.Json) -> dict[str, object]:
    """Give what the record says to be its other names: `identifiers` of type arXiv, PMID and so on."""
    found: dict[str, object] = {}
    for name in ("identifiers", "alternateIdentifiers"):
        for item in f.objects(record.get(name)):
            kind = (f.text(item.get("identifierType") or item.get("alternateIdentifierType")) or "").lower()
            if kind in {"arxiv", "pmid", "pmcid"}:
                found.setdefault(kind, item.get("identifier") or item.get("alternateIdentifier"))
    return found


def _abstract(record: f.Json) -> str | None:
    texts = f.objects(record.get("descriptions"))
    said = [item.get("description") for item in texts if item.get("descriptionType") == "Abstract"]
    return next((found for text in said if (found := abstract_of(text))), None)


def _creator(item: f.Json) -> str | None:
    if item.get("nameType") == "Organizational":
        return f.text(item.get("name"))
    return f.person(item.get("givenName"), item.get("familyName"), item.get("name"))


def _locations(record: f.Json, licence: str | None) -> list[Location]:
    is_open = is_free(licence) or None
    version = "submitted" if f.get(record.get("types"), "resourceTypeGeneral") == "Preprint" else None
    urls = [(url, kind_of_address(url)) for url in map(f.link, f.listed(record.get("contentUrl"))) if url]
    if page := f.link(record.get("url")):
        urls.append((page, kind_of_address(page)))
    return each_once(Location(url, kind, version, licence, "repository", is_open=is_open) for url, kind in urls)


def _named(item: f.Json) -> str | None:
    kind = (f.text(item.get("relatedIdentifierType")) or "").lower()
    value = item.get("relatedIdentifier")
    return f.reference(**{kind: value}) if kind in {"doi", "arxiv", "pmid", "pmcid"} else f.named(value)


def _related(record: f.Json) -> list[Related]:
    found = [
        Related(_RELATIONS[relation], named)
        for item in f.objects(record.get("relatedIdentifiers"))
        if (relation := f.text(item.get("relationType")) or "") in _RELATIONS and (named := _named(item))
    ]
    return list(dict.fromkeys(found))


def _references(record: f.Json, relationships: f.Json) -> list[str]:
    cited = [
        _named(item)
        for item in f.objects(record.get("relatedIdentifiers"))
        if f.text(item.get("relationType")) in {"Cites", "References"}
    ]
    cited += [f.reference(item.get("id")) for item in f.objects(f.get(relationships.get("references"), "data"))]
    return f.once(ref for ref in cited if ref and re.match(r"[a-z0-9]+:", ref))
