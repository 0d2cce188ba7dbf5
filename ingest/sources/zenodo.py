"""Zenodo: CERN's repository; records of the old and the new shape, files under `key` or `filename`."""

from __future__ import annotations

import re
from datetime import date

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Related, Work

_HOST = "zenodo.org"
_RELATIONS = {
    "isidenticalto": "is-identical-to", "isversionof": "is-version-of", "hasversion": "has-version",
    "isnewversionof": "is-version-of", "ispreviousversionof": "has-version", "ispreprintof": "is-preprint-of",
    "isvariantformof": "is-version-of", "ispublishedin": "is-part-of", "ispartof": "is-part-of",
    "isalternateidentifier": "is-identical-to",
}  # fmt: skip


class Zenodo(Reader):
    """Search publications, look-up by DOI or record; no key needed."""

    name = "zenodo"
    hosts = (
        HostRule(
            _HOST, 30, 60.0, 1,
            "guests 60/min and 2,000/h, search 30/min (zenodo/developers.zenodo.org rate-limit @ c00999dc3668)",
        ),
        HostRule(_HOST, 2000, 3600.0, 1, "guests 2,000/h (the same page)"),
    )  # fmt: skip

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search publications; more than 25 a page is refused to guests."""
        asked = f"({query}) AND publication_date:[{since.isoformat()} TO *]" if since else query
        size = min(limit, 100 if self.access.api_key else 25)
        params = (("q", asked), ("type", "publication"), ("size", str(size)), ("page", cursor or "1"))
        return self._ask("records", params)

    def _ask(self, path: str, params: tuple[tuple[str, str], ...] = ()) -> Request:
        key = self.access.api_key
        headers = (("Authorization", f"Bearer {key}"),) if key else ()
        return Request(f"https://{_HOST}/api/{path}", params, headers=headers)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a record of Zenodo's own up, or search for another DOI."""
        doi = identifiers.get("doi")
        if not doi:
            return None
        if own := re.fullmatch(r"10\.5281/zenodo\.(\d+)", doi):
            return self._ask(f"records/{own[1]}")
        return self._ask("records", (("q", 'doi:"{}"'.format(doi.replace('"', ""))), ("size", "10")))

    def read(self, answer: Answer) -> Parsed:
        """Read a search or a record."""
        value = parse_json(self.name, answer)
        hits = f.get(value, "hits")
        found = f.get(hits, "hits") if isinstance(hits, dict) else hits
        if isinstance(value, list):
            found = value
        if isinstance(found, list):
            total = f.get(hits, "total")
            following = f.link(f.get(value, "links", "next"))
            page = re.search(r"[?&]page=(\d+)", following or "")
            n_total = f.number(f.get(total, "value") if isinstance(total, dict) else total)
            return Parsed(works_of(f.objects(found), self._work), page[1] if page and found else None, n_total)
        work = self._work(f.mapping(value))
        if work is None:
            raise nonsense(self.name, "JSON that is neither page nor record", answer)
        return Parsed([work])

    def _work(self, record: f.Json) -> Work | None:
        data = f.mapping(record.get("metadata"))
        title = title_of(data.get("title") or record.get("title"))
        doi = record.get("doi") or data.get("doi") or f.get(record, "pids", "doi", "identifier")
        own = f.text(record.get("id")) or f.text(record.get("recid"))
        if not title and not doi:
            return None
        kind = f.mapping(data.get("resource_type"))
        licence = _licence(data)
        day = data.get("publication_date")
        return Work(
            source=self.name,
            source_id=own,
            identifiers=f.identifiers(doi=doi),
            title=title,
            abstract=abstract_of(data.get("description")),
            authors=f.people(map(_creator, f.objects(data.get("creators")))),
            year=f.year(day),
            published_on=f.day(day),
            venue=plain(
                f.text(f.get(data.get("journal"), "title"))
                or f.text(f.get(record, "custom_fields", "journal:journal", "title"))
                or f.text(f.get(data.get("meeting"), "title"))
                or f.text(data.get("publisher"))
            )
            or None,
            locations=_locations(record, data, licence, own),
            references=[ref for item in f.listed(data.get("references")) if (ref := _reference(item))],
            kind=f.text(kind.get("subtype")) or f.text(kind.get("type")) or f.text(kind.get("id")),
            licence=licence,
            related=_related(record, data),
            updated_on=f.day(record.get("modified")) or f.day(record.get("updated")),
        )


def _creator(item: f.Json) -> str | None:
    person = f.mapping(item.get("person_or_org")) or item
    return f.person(person.get("given_name"), person.get("family_name"), person.get("name"))


def _licence(data: f.Json) -> str | None:
    value = data.get("license")
    named = f.get(value, "id") if isinstance(value, dict) else value
    return licence_word(named or next((item.get("id") for item in f.objects(data.get("rights"))), None))


def _reference(item: object) -> str | None:
    return plain(f.text(f.get(item, "reference") if isinstance(item, dict) else item)) or None


def _related(record: f.Json, data: f.Json) -> list[Related]:
    found: list[Related] = []
    for item in f.objects(data.get("related_identifiers")) + f.objects(data.get("alternate_identifiers")):
        relation = (
            item.get("relation")
            or f.get(item.get("relation_type"), "id")
            or ("isalternateidentifier" if item in f.objects(data.get("alternate_identifiers")) else None)
        )
        scheme = (f.text(item.get("scheme")) or "").lower()
        value = item.get("identifier")
        named = f.reference(**{scheme: value}) if scheme in {"doi", "arxiv", "pmid", "pmcid"} else f.named(value)
        word = _RELATIONS.get((f.text(relation) or "").lower())
        if word and named:
            found.append(Related(word, named))
    concept = f.reference(record.get("conceptdoi") or f.get(record, "parent", "pids", "doi", "identifier"))
    if concept:
        found.append(Related("is-version-of", concept))
    return list(dict.fromkeys(found))


def _locations(record: f.Json, data: f.Json, licence: str | None, own: str | None) -> list[Location]:
    """Read the PDFs among a record's files, if everybody may have them, and its page."""
    access = f.text(data.get("access_right")) or f.text(f.get(record, "access", "files"))
    is_open = {"open": True, "public": True}.get(access or "", False if access else None)
    version = "submitted" if f.get(data.get("resource_type"), "subtype") == "preprint" else None
    files = record.get("files")
    if isinstance(files, dict):
        entries = files.get("entries")
        files = list(entries.values()) if isinstance(entries, dict) else entries
    places: list[Location | None] = []
    for item in f.objects(files):
        name = f.text(item.get("key")) or f.text(item.get("filename")) or ""
        links = f.mapping(item.get("links"))
        address = f.text(links.get("download")) or f.text(links.get("content")) or f.text(links.get("self")) or ""
        url = f.link(address.replace(" ", "%20"))
        if url and name.lower().endswith(".pdf"):
            places.append(Location(url, "pdf", version, licence, "repository", is_open=is_open))
    links = f.mapping(record.get("links"))
    page = (
        f.link(links.get("self_html"))
        or f.link(links.get("html"))
        or (f"https://zenodo.org/records/{own}" if own else None)
    )
    if page:
        places.append(Location(page, "landing", version, licence, "repository", is_open=is_open))
    return each_once(places)
