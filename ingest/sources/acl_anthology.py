"""ACL Anthology: computational linguistics; data files of whole collections, landing pages, no search."""

from __future__ import annotations

import re
from dataclasses import replace

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bibtex import is_bibtex, works_of_bibtex
from ingest.sources.bodies import decoded, is_html, raise_unreadable
from ingest.sources.common import Reader, each_once
from ingest.sources.markup import (
    Element,
    attribute,
    child,
    children,
    descend,
    inner,
    local,
    parse_html,
    parse_xml,
    raw,
    words,
)
from ingest.sources.outcomes import nonsense
from ingest.sources.pages import work_of_page
from ingest.sources.words import abstract_of
from ingest.work import Location, Work

_HOST = "aclanthology.org"


class AclAnthology(Reader):
    """Look-up by Anthology id, and whole collections out of its repository."""

    name = "acl-anthology"
    hosts = (
        HostRule(_HOST, 1, 2.0, 1, "a static host: about 30 requests a minute (rpatrik96/bibtexupdater 0.5.0)"),
        HostRule("raw.githubusercontent.com", 1, 2.0, 1, "no published limit; one in two seconds is courtesy"),
    )

    def lacks(self) -> tuple[str, ...]:
        """There is no search."""
        return ("has no search: its papers are found by id, or through other sources",)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Ask for the landing page of a paper."""
        acl = identifiers.get("acl")
        return Request(f"https://{_HOST}/{acl}/") if acl else None

    def collection(self, name: str) -> Request:
        """Ask for the data file of a collection, such as `2022.naloma` or `J89`."""
        return Request(f"https://raw.githubusercontent.com/acl-org/acl-anthology/master/data/xml/{name}.xml")

    def read(self, answer: Answer) -> Parsed:
        """Read a collection, a landing page, or BibTeX."""
        body = decoded(answer)
        if is_html(body):
            return Parsed([self._page(answer)])
        if is_bibtex(body):
            return Parsed(works_of_bibtex(self.name, body))
        root = parse_xml(self.name, answer)
        collections = [root] if local(root) == "collection" else list(descend(root, "collection"))
        if not collections:
            raise nonsense(self.name, f"XML of another kind: <{local(root)}>", answer)
        works = [
            self._paper(attribute(collection, "id") or "", volume, paper)
            for collection in collections
            for volume in children(collection, "volume")
            for paper in children(volume, "paper")
        ]
        return Parsed(works)

    def _page(self, answer: Answer) -> Work:
        page = parse_html(answer)
        work = work_of_page(self.name, page, answer.url) if page is not None else None
        if page is None or work is None:
            raise_unreadable(self.name, answer, "a page of a paper")
        pdf = next((place.url for place in work.locations if place.kind == "pdf"), "")
        doi = work.identifiers.get("doi", "")
        acl = f.identifiers(acl=_id_of_address(pdf) or _id_of_address(answer.url)).get("acl") or work.identifiers.get(
            "acl"
        )
        box = next((item for item in page.iter("div") if "acl-abstract" in (item.get("class") or "").split()), None)
        span = next(descend(box, "span"), box)
        licence = _licence(work.year)
        places = [
            replace(place, version="published", licence=licence, host="publisher", is_open=True)
            for place in work.locations
        ]
        return replace(
            work,
            source_id=acl or doi or None,
            identifiers={**work.identifiers, **({"acl": acl} if acl else {})},
            abstract=abstract_of(raw(span)) or work.abstract,
            locations=places,
            licence=licence,
        )

    def _paper(self, collection: str, volume: Element, paper: Element) -> Work:
        meta = child(volume, "meta")
        address = inner(paper, "url")
        acl = f.identifiers(acl=_id_of_address(address) or address).get("acl") or _made_id(collection, volume, paper)
        found = f.identifiers(acl=acl, doi=inner(paper, "doi"))
        year = f.year(inner(paper, "year"), inner(meta, "year"))
        licence = _licence(year)
        month = inner(paper, "month") or inner(meta, "month")
        removed = child(paper, "removed") is not None
        # A paper hosted elsewhere carries its address; one without `url` has no file.
        pdf = f.link(address) or (f"https://{_HOST}/{address}.pdf" if address else None)
        places = [
            Location(pdf, "pdf", "published", licence, "publisher", is_open=True) if pdf and not removed else None,
            Location(f"https://{_HOST}/{acl}/", "landing", "published", licence, "publisher", is_open=True)
            if acl
            else None,
        ]
        return Work(
            source=self.name,
            source_id=found.get("acl") or acl,
            identifiers=found,
            title=words(paper, "title"),
            abstract=abstract_of(raw(child(paper, "abstract"))),
            authors=f.people(
                f.person(inner(a, "first"), inner(a, "last")) or inner(a) or None for a in children(paper, "author")
            ),
            year=year,
            published_on=_day(year, month),
            venue=words(meta, "booktitle") or words(meta, "journal-title"),
            locations=each_once(places),
            is_retracted=True if child(paper, "retracted") is not None else None,
            kind={"journal": "article", "proceedings": "paper"}.get(attribute(volume, "type") or ""),
            licence=licence,
        )


def _day(year: int | None, month: str) -> str | None:
    """Give the day where the month names one: `12 August`, `August 12-15`."""
    found = re.search(r"([A-Z][a-z]{2,})\.? (\d{1,2})\b", month) or re.search(r"(\d{1,2}) ([A-Z][a-z]{2,})", month)
    if not found:
        return None
    name, number = (found[1], found[2]) if found[1].isalpha() else (found[2], found[1])
    return f.day_of(year, name, number)


def _licence(year: int | None) -> str | None:
    """Give the licence that the pages' footer names: CC BY 4.0 from 2016 on, CC BY-NC-SA 3.0 before."""
    if year is None:
        return None
    return "cc-by-4.0" if year >= 2016 else "cc-by-nc-sa-3.0"


def _id_of_address(url: str) -> str | None:
    found = re.search(r"aclanthology\.org/([A-Za-z0-9.-]+?)(?:v\d+)?(?:\.pdf|/)?$", url)
    return found[1] if found else None


def _made_id(collection: str, volume: Element, paper: Element) -> str | None:
    """Give the id that collection, volume and paper make: `2022.naloma-1.3`, `J89-1001`, `W19-0102`."""
    v, p = attribute(volume, "id") or "", attribute(paper, "id") or ""
    if not collection or not v or not p:
        return None
    if not re.fullmatch(r"[A-Z]\d\d", collection):
        return f"{collection}-{v}.{p}"
    if not (v.isdigit() and p.isdigit()):
        return None
    # Workshops have two digits for the volume and two for the paper, all others one and three.
    wide = collection[0] == "W" or collection == "C69" or (collection == "D19" and int(v) >= 5)
    return f"{collection}-{int(v):02d}{int(p):02d}" if wide else f"{collection}-{int(v)}{int(p):03d}"
