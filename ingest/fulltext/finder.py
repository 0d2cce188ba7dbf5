"""The full-text finder: places in order, each file checked, the first right one stored, the others put aside."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from corpus.errors import BrainError, SourceError
from ingest.fulltext.landing import find_links
from ingest.fulltext.rank import HostRecord, ranked
from ingest.fulltext.verify import verify
from ingest.fulltext.wanted import Wanted
from ingest.http.body import Downloaded
from ingest.store import Store
from ingest.text.result import Extraction
from ingest.work import Location

_log = structlog.get_logger("fulltext")
_ACCEPT = {
    "pdf": "application/pdf, */*;q=0.5",
    "xml": "application/xml, text/xml, */*;q=0.5",
    "html": "text/html, application/xhtml+xml, */*;q=0.5",
    "landing": "application/pdf, text/html;q=0.9, */*;q=0.5",
}
Extract = Callable[[Path], Extraction]


class Downloader(Protocol):
    """What files come through: the HTTP stack, or something that stands before it."""

    async def download(
        self, url: str, to_dir: str | Path, max_bytes: int | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Downloaded:
        """As `Fetcher.download`."""
        ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one place.

    `outcome` is `stored`, `quarantined` (a file came and is not the paper's full text), `led_on` (a page that named
    files), or that of the error: absent, throttled, down, refused, nonsense, failed.
    """

    location: Location
    outcome: str
    reason: str
    sha256: str | None = None
    is_transient: bool = False


@dataclass(frozen=True, slots=True)
class FullText:
    """A stored file that has been checked to be the paper's."""

    sha256: str
    location: Location
    final_url: str
    content_type: str
    n_bytes: int
    extraction: Extraction
    known_by: str


@dataclass(slots=True)
class Search:
    """How a search went; without a full text, `is_later` says that some place has to be asked again."""

    found: FullText | None = None
    attempts: list[Attempt] = field(default_factory=list)
    retry_after_s: float | None = None

    @property
    def is_later(self) -> bool:
        """Whether a place that did not answer this time may still have the file."""
        return self.found is None and any(attempt.is_transient for attempt in self.attempts)


class FullTextFinder:
    """Finds full texts; one for a whole run.

    `extract` reads a file in a child process and may block; downloads go to `folder` and leave it when they are judged.
    With `quarantine` the refused files are kept there, by hash, for a person to look at.
    """

    def __init__(
        self,
        fetcher: Downloader,
        store: Store,
        extract: Extract,
        folder: Path,
        *,
        quarantine: Store | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._store = store
        self._extract = extract
        self._folder = folder
        self._quarantine = quarantine
        self._max_bytes = max_bytes

    async def find(
        self,
        wanted: Wanted,
        locations: Iterable[Location],
        *,
        skip: Collection[str] = (),
        refused: Collection[str] = (),
        record: HostRecord | None = None,
    ) -> Search:
        """Try places, best first, until a file is the paper's.

        `skip` holds addresses that were tried to the end before, `refused` hashes of files that were put aside for
        this paper. Never raises for a place; what happened at each is in the attempts.
        """
        search = Search()
        waiting = deque(ranked(locations, record))
        tried = set(skip)
        while waiting and search.found is None:
            place = waiting.popleft()
            if place.url in tried:
                continue
            tried.add(place.url)
            links = await self._try(place, wanted, search, set(refused))
            waiting.extendleft(reversed(links))
        return search

    async def _try(self, place: Location, wanted: Wanted, search: Search, refused: set[str]) -> Sequence[Location]:
        got: Downloaded | None = None
        links: Sequence[Location] = ()
        try:
            headers = {"Accept": _ACCEPT.get(place.kind, _ACCEPT["landing"])}
            got = await self._fetcher.download(place.url, self._folder, self._max_bytes, headers=headers)
            if got.sha256 in refused:
                attempt = Attempt(place, "quarantined", "the same file was put aside before", got.sha256)
            else:
                attempt, links = await self._judge(place, got, wanted, search)
        except (BrainError, OSError) as error:
            outcome = error.outcome if isinstance(error, BrainError) else "failed"
            is_transient = isinstance(error, BrainError) and error.transient
            attempt = Attempt(place, outcome, str(error), got.sha256 if got else None, is_transient)
            if isinstance(error, SourceError) and is_transient and error.retry_after_s is not None:
                search.retry_after_s = min(search.retry_after_s or error.retry_after_s, error.retry_after_s)
        finally:
            if got is not None:
                got.path.unlink(missing_ok=True)
        search.attempts.append(attempt)
        _log.info(
            "tried",
            host=place.url.partition("://")[2].partition("/")[0],
            outcome=attempt.outcome,
            reason=attempt.reason,
        )
        return links

    async def _judge(
        self, place: Location, got: Downloaded, wanted: Wanted, search: Search
    ) -> tuple[Attempt, Sequence[Location]]:
        extraction = await asyncio.to_thread(self._extract, got.path)
        found = await asyncio.to_thread(verify, got.path, extraction, wanted)
        if found.is_right:
            await asyncio.to_thread(self._store.put_file, got.path)
            search.found = FullText(
                got.sha256, place, got.final_url, got.content_type, got.n_bytes, extraction, found.reason
            )
            return Attempt(place, "stored", found.reason, got.sha256), ()
        links = (
            await asyncio.to_thread(find_links, got.path, got.final_url, place) if got.path.suffix == ".html" else []
        )
        if links and place.kind == "landing":
            return Attempt(place, "led_on", f"a page that names {len(links)} files", None), links
        if self._quarantine is not None and got.n_bytes:
            await asyncio.to_thread(self._quarantine.put_file, got.path)
        return Attempt(place, "quarantined", found.reason, got.sha256), links
