"""OpenReview: submissions and papers of conferences; API v2, and the bare fields of v1."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bibtex import bibtex_fields
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import abstract_of, plain, title_of
from ingest.work import Location, Work

_HOST = "api2.openreview.net"
_RULE = (
    "98 requests in some minutes were too many (openreview/openreview issue 437); anonymous calls are met with a "
    "challenge since 2026 (ktwu01/benchmark-radar issue 81)"
)


class OpenReview(Reader):
    """Search and look-up by note; in practice only with a bearer token."""

    name = "openreview"
    hosts = (
        HostRule(_HOST, 1, 2.0, 1, _RULE),
        HostRule("api.openreview.net", 1, 2.0, 1, _RULE, shared_with=_HOST),
        HostRule("openreview.net", 1, 2.0, 1, _RULE, shared_with=_HOST),
    )

    def lacks(self) -> tuple[str, ...]:
        """Anonymous calls are refused."""
        if self.access.api_key:
            return ()
        return ("meets anonymous calls with a challenge: set BRAIN_OPENREVIEW_API_KEY to a bearer token",)

    def _ask(self, path: str, *params: tuple[str, str]) -> Request:
        key = self.access.api_key
        headers = (("Authorization", f"Bearer {key}"),) if key else ()
        return Request(f"https://{_HOST}/{path}", params, headers=headers)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search notes; there is no filter by date."""
        del since
        params = (("term", query), ("source", "forum"), ("limit", str(min(limit, 1000))), ("offset", cursor or "0"))
        return self._ask("notes/search", *params)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a note up."""
        own = identifiers.get("openreview")
        return self._ask("notes", ("id", own)) if own else None

    def read(self, answer: Answer) -> Parsed:
        """Read notes; reviews, comments and decisions are no papers and are left out."""
        value = f.mapping(parse_json(self.name, answer))
        notes = value.get("notes")
        if not isinstance(notes, list):
            if not isinstance(value.get("content"), dict):
                raise nonsense(self.name, "JSON without notes", answer)
            notes = [value]
        total = f.number(value.get("count"))
        start = re.search(r"[?&]offset=(\d+)", answer.url)
        end = (int(start[1]) if start else 0) + len(notes)
        more = bool(notes and total and end < total)
        return Parsed(works_of(f.objects(notes), self._work), str(end) if more else None, total)

    def _work(self, note: f.Json) -> Work | None:
        own, forum = f.text(note.get("id")), f.text(note.get("forum"))
        content = {key: _value(value) for key, value in f.mapping(note.get("content")).items()}
        title = title_of(f.text(content.get("title")))
        if not title or (f.text(note.get("replyto")) and own != forum):
            return None
        ids: dict[str, object] = {"openreview": own}
        for named in map(f.named, f.texts(note.get("externalIds"))):
            kind, _, value = (named or "").partition(":")
            ids.setdefault(kind, value) if value else None
        ids["doi"] = ids.get("doi") or content.get("doi")
        bibtex = bibtex_fields(f.text(content.get("_bibtex")) or "")
        venue = f.text(content.get("venue"))
        day = f.day_of_ms(note.get("pdate"))
        year = f.year(day, bibtex.get("year")) or _year_of(venue, f.text(content.get("venueid")))
        licence = licence_word(note.get("license") or content.get("license"))
        return Work(
            source=self.name,
            source_id=own,
            identifiers=f.identifiers(**ids),
            title=title,
            abstract=abstract_of(f.text(content.get("abstract"))),
            authors=f.people(map(_author, f.listed(content.get("authors")))),
            year=year or f.year(f.day_of_ms(note.get("cdate"))),
            published_on=day,
            venue=plain(venue) or None,
            locations=_locations(content, own, licence),
            kind="submission" if _version(content) == "submitted" else "paper",
            licence=licence,
            tldr=plain(f.text(content.get("TLDR")) or f.text(content.get("TL;DR"))) or None,
            updated_on=f.day_of_ms(note.get("tmdate")) or f.day_of_ms(note.get("mdate")),
        )


def _value(field: Any) -> Any:
    """Unwrap a field of v2; those of v1 are bare."""
    return field["value"] if isinstance(field, dict) and "value" in field else field


def _author(item: object) -> str | None:
    if isinstance(item, dict):
        return f.text(item.get("fullname")) or f.text(item.get("name"))
    return f.text(item)


def _year_of(*names: str | None) -> int | None:
    found = (re.search(r"\b(?:19|20)\d\d\b", name) for name in names if name)
    return next((int(year[0]) for year in found if year), None)


def _version(content: f.Json) -> str | None:
    """Tell accepted from submitted papers: by the venue's id, else by its name."""
    said = f.text(content.get("venueid")) or f.text(content.get("venue"))
    if not said:
        return None
    return "submitted" if re.search(r"(?i)submission|submitted|rejected|withdrawn|under review", said) else "published"


def _locations(content: f.Json, own: str | None, licence: str | None) -> list[Location]:
    version = _version(content)
    places: list[Location | None] = []
    pdf = f.text(content.get("pdf"))
    if pdf:
        outside = f.link(pdf)
        url = outside or f"https://openreview.net/{pdf.lstrip('/')}"
        host = "publisher" if outside and "openreview.net" not in outside else "repository"
        places.append(Location(url, "pdf", version, licence, host, is_open=True))
    if html := f.link(content.get("html")):
        places.append(Location(html, kind_of_address(html), None, licence))
    if own:
        places.append(
            Location(f"https://openreview.net/forum?id={own}", "landing", version, licence, "repository", is_open=True)
        )
    return each_once(places)
