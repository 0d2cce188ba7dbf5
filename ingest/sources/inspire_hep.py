"""INSPIRE: high-energy physics, with references and counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from urllib.parse import quote

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, works_of
from ingest.sources.licences import is_free, licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Work

_HOST = "inspirehep.net"
_API = f"https://{_HOST}/api"
_FIELDS = (
    "titles,authors.full_name,abstracts,dois,arxiv_eprints,publication_info,citation_count,earliest_date,preprint_date,"
    "imprints,documents,license,document_type,control_number,withdrawn,external_system_identifiers,collaborations"
)


class InspireHep(Reader):
    """Search, look-up by DOI, arXiv id or record, citing works; no key."""

    name = "inspire-hep"
    hosts = (
        HostRule(
            _HOST, 12, 5.0, 2,
            "15 requests in 5 s per address; blocked ones count too (inspirehep/rest-api-doc README @ a7edb9778ad0)",
        ),
    )  # fmt: skip

    def _search(self, query: str, cursor: str | None, limit: int) -> Request:
        params = (("q", query), ("size", str(min(limit, 1000))), ("page", cursor or "1"), ("fields", _FIELDS))
        return Request(f"{_API}/literature", params)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search, at most 1,000 a page, the first 10,000."""
        if cursor and cursor.isdigit() and (int(cursor) - 1) * limit >= 10000:
            return None
        return self._search(f"({query}) and de > {since.isoformat()}" if since else query, cursor, limit)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a record up."""
        if arxiv := identifiers.get("arxiv"):
            return Request(f"{_API}/arxiv/{quote(arxiv, safe='/')}")
        if doi := identifiers.get("doi"):
            return Request(f"{_API}/doi/{quote(doi, safe='/:()')}")
        own = identifiers.get("inspire")
        return Request(f"{_API}/literature/{own}") if own else None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Search for up to 25 papers at once."""
        asked = [
            f"arxiv:{paper['arxiv']}" if paper.get("arxiv") else f'doi:"{paper["doi"]}"'
            for paper in papers[:25]
            if paper.get("arxiv") or paper.get("doi")
        ]
        return self._search(" or ".join(asked), None, 100) if asked else None

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for citing works."""
        own, arxiv = identifiers.get("inspire"), identifiers.get("arxiv")
        asked = f"refersto:recid:{own}" if own else f"refersto:arxiv:{arxiv}" if arxiv else None
        return self._search(asked, cursor, 250) if asked else None

    def read(self, answer: Answer) -> Parsed:
        """Read a search, a record, or the metadata of one alone."""
        value = f.mapping(parse_json(self.name, answer))
        hits = value.get("hits")
        if isinstance(hits, dict):
            found = f.objects(hits.get("hits"))
            works = works_of(found, self._work)
            page = re.search(r"[?&]page=(\d+)", f.text(f.get(value, "links", "next")) or "")
            return Parsed(works, page[1] if page and found else None, f.number(hits.get("total")))
        work = self._work(value)
        if work is None:
            raise nonsense(self.name, "JSON that is neither page nor record", answer)
        return Parsed([work])

    def _work(self, record: f.Json) -> Work | None:
        data = f.mapping(record.get("metadata")) or record
        own = f.text(data.get("control_number")) or f.text(record.get("id"))
        dois = f.objects(data.get("dois"))
        article = next((d for d in dois if f.text(d.get("material")) in {"publication", None}), f.mapping(dois))
        eprint = f.mapping(data.get("arxiv_eprints")).get("value")
        title = title_of(f.mapping(data.get("titles")).get("title"))
        found = f.identifiers(doi=article.get("value"), arxiv=eprint, inspire=own)
        if not title and not {"doi", "arxiv"} & found.keys():
            return None
        public = f.mapping(data.get("publication_info"))
        day = next(
            (d for v in (
                f.mapping(data.get("imprints")).get("date"), data.get("preprint_date"), data.get("earliest_date"),
            ) if (d := f.day(v))),
            None,
        )  # fmt: skip
        year = f.year(public.get("year"), f.mapping(data.get("imprints")).get("date"), data.get("earliest_date"),
                      data.get("preprint_date"))  # fmt: skip
        return Work(
            source=self.name,
            source_id=own,
            identifiers=found,
            title=title,
            abstract=next((a for i in f.objects(data.get("abstracts")) if (a := abstract_of(i.get("value")))), None),
            authors=f.people(
                f.person(a.get("first_name"), a.get("last_name"), a.get("full_name"))
                for a in f.objects(data.get("authors"))
            )
            or f.people(f.text(c.get("value")) for c in f.objects(data.get("collaborations"))),
            year=year,
            published_on=day if day and (not year or day.startswith(str(year))) else None,
            venue=plain(f.text(public.get("journal_title")) or f.text(public.get("pubinfo_freetext"))) or None,
            locations=_locations(data, found),
            n_citations=f.number(data.get("citation_count")),
            references=[ref for item in f.objects(data.get("references")) if (ref := _reference(item))],
            is_retracted=True if f.flag(data.get("withdrawn")) else None,
            arxiv_version=f.version_of(eprint),
            kind=f.text(data.get("document_type")),
            licence=_licence(data, "publication"),
            updated_on=f.day(record.get("updated")),
        )


def _licence(data: f.Json, material: str) -> str | None:
    for item in f.objects(data.get("license")):
        if f.text(item.get("material")) in {material, None}:
            return licence_word(item.get("url")) or licence_word(item.get("license"))
    return None


def _locations(data: f.Json, found: dict[str, str]) -> list[Location]:
    places: list[Location | None] = []
    published, preprint = _licence(data, "publication"), _licence(data, "preprint")
    for item in f.objects(data.get("documents")):
        url = f.link(item.get("url"))
        hidden = f.flag(item.get("hidden"))
        if not url or hidden:
            continue
        named = f"{f.text(item.get('filename')) or ''} {f.text(item.get('source')) or ''}".lower()
        is_preprint = "arxiv" in named
        name = (f.text(item.get("filename")) or "").lower()
        kind = "xml" if name.endswith(".xml") else "pdf"
        licence = preprint if is_preprint else published
        version = "submitted" if is_preprint else "published" if "scoap3" in named else None
        places.append(Location(url, kind, version, licence, "repository", is_open=True))
    if doi := found.get("doi"):
        is_open = is_free(published) or None
        places.append(
            Location(f"https://doi.org/{doi}", "landing", "published", published, "publisher", is_open=is_open)
        )
    if arxiv := found.get("arxiv"):
        address = f"https://arxiv.org/abs/{arxiv}"
        places.append(Location(address, "landing", "submitted", preprint, "repository", is_open=True))
    return each_once(places)


def _reference(item: f.Json) -> str | None:
    cited = f.mapping(item.get("reference"))
    record = re.search(r"/literature/(\d+)$", f.text(f.get(item.get("record"), "$ref")) or "")
    words = f.text(f.get(cited.get("title"), "title")) or ", ".join(f.texts(cited.get("misc"))) or None
    public = f.mapping(cited.get("publication_info"))
    if not words and public:
        parts = (public.get(key) for key in ("journal_title", "journal_volume", "artid", "page_start", "year"))
        words = " ".join(part for value in parts if (part := f.text(value)))
    return f.reference(
        f.text(cited.get("dois")), words, arxiv=cited.get("arxiv_eprint"), inspire=record[1] if record else None
    )
