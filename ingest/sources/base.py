"""The one Protocol of all sources, and the plain values that pass between a source and the HTTP stack.

A source never touches the network: it builds requests and reads answers. Whoever holds an HTTP stack does
`source.parse(await fetch(request))`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol
from urllib.parse import quote, urlencode, urlsplit

from ingest.work import Work

Identifiers = Mapping[str, str]
"""Kinds of identifier to values in their one form, as in `Work.identifiers`."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a plain value. `params` are not yet encoded; `body` goes out as JSON where it is given."""

    url: str
    params: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @property
    def full_url(self) -> str:
        """The address with its query, spaces as %20 (DOAJ and others read `+` as a plus sign)."""
        if not self.params:
            return self.url
        return f"{self.url}{'&' if '?' in self.url else '?'}{urlencode(self.params, quote_via=quote)}"

    @property
    def host(self) -> str:
        """The host that is asked, in lower case: limits are kept by it."""
        return (urlsplit(self.url).hostname or "").lower()


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as received. `status` is None where only the payload was kept; header names in any case."""

    body: bytes
    status: int | None = None
    content_type: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str | None:
        """Find the value of a header, whatever the case of its name."""
        wanted = name.lower()
        return next((value for key, value in self.headers.items() if key.lower() == wanted), None)

    @property
    def retry_after_s(self) -> float | None:
        """Seconds that the Retry-After header asks to wait; a date is counted from the answer's own Date, else from now."""
        value = (self.header("retry-after") or "").strip()
        if not value:
            return None
        if value.replace(".", "", 1).isdigit() and value.isascii():
            return float(value)
        try:
            until = _instant(value)
        except (TypeError, ValueError):
            return None
        try:
            now = _instant(self.header("date") or "")
        except (TypeError, ValueError):
            now = datetime.now(UTC)
        return max(0.0, (until - now).total_seconds())


def _instant(text: str) -> datetime:
    """Read a date of HTTP; one without a zone is in UTC (RFC 9110, 5.6.7)."""
    found = parsedate_to_datetime(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one answer holds: works, where the next page is (None: there is none), and how many there are in all."""

    works: list[Work] = field(default_factory=list)
    cursor: str | None = None
    n_total: int | None = None


@dataclass(frozen=True, slots=True)
class HostRule:
    """How often one host may be asked: `n_requests` in `per_s` seconds, at most `concurrency` at once.

    `rule` quotes where the limit is set. `shared_with` names a host whose allowance this one is counted against.
    """

    host: str
    n_requests: int
    per_s: float
    concurrency: int
    rule: str
    shared_with: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """What the user gives to a source: an address to be reached at, and a key where the source has one."""

    contact_email: str | None = None
    api_key: str | None = None


class Source(Protocol):
    """One provider of scholarly records.

    Builders give None where the source cannot do that (or not without a key: see `lacks`). They are pure; the answer
    to each of their requests goes to `parse`.
    """

    @property
    def name(self) -> str:
        """The source's name, as in `brain source parse NAME`."""
        ...

    @property
    def hosts(self) -> tuple[HostRule, ...]:
        """Limits of every host that its requests go to; a host may have several."""
        ...

    def lacks(self) -> tuple[str, ...]:
        """Say what the source cannot do as it is set up, one sentence each, with the setting that would mend it."""
        ...

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Ask for works that fit some words, from a date on, one page a call; `cursor` as in `Parsed`."""
        ...

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Ask for the work that an identifier names."""
        ...

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Ask for several works at once; answers come in any order and without those that are unknown."""
        ...

    def locations(self, identifiers: Identifiers) -> Request | None:
        """Ask where full texts of a work lie."""
        ...

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for the works that cite a work."""
        ...

    def parse(self, answer: Answer) -> Parsed:
        """Read an answer.

        Raises SourceAbsent, SourceThrottled, SourceDown, SourceRefused or SourceNonsense, never anything else.
        """
        ...


def json_body(value: object) -> bytes:
    """Write a request's body as JSON."""
    return json.dumps(value, ensure_ascii=False).encode()
