"""The desk that asks sources: keeps each raw answer before it is read, counts outcomes by day, lets a failing source rest."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import structlog
from psycopg import Connection

from corpus.errors import SourceError, SourceNonsense, SourceThrottled
from ingest.http.clock import Clock, SystemClock
from ingest.http.fetcher import Fetcher
from ingest.sources.base import Parsed, Request, Source
from sql import files

SQL = files.queries("works")
OUTCOMES = ("absent", "throttled", "down", "refused", "nonsense")
_log = structlog.get_logger("source")
_SECRET = {"email", "mailto", "api_key", "apikey", "key", "token", "access_token"}
_REST_S = 60.0
_N_TRIES = 3
P = ParamSpec("P")
T = TypeVar("T")

_asking: ContextVar[str | None] = ContextVar("asking", default=None)


class Tally:
    """Attempts that failed and were made again, by source; the fetcher tells it of each attempt."""

    def __init__(self) -> None:
        self.n: Counter[tuple[str, str]] = Counter()

    def note(self, host: str, outcome: str) -> None:  # noqa: ARG002 - the fetcher's signature
        """Count an attempt of the source that is being asked."""
        if (name := _asking.get()) and outcome in {"throttled", "down"}:
            self.n[name, outcome] += 1


class Books:
    """The database for async code: one connection, one statement or transaction at a time, in a thread."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def do(self, work: Callable[Concatenate[Connection[Any], P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of a connection; it makes its own transaction."""
        async with self._turn:
            return await asyncio.to_thread(work, self._connection, *args, **kwargs)


class _Hidden(Exception):
    """A source asks to wait, or says that it does not work, inside a success."""

    def __init__(self, error: SourceError) -> None:
        self.error = error
        super().__init__(str(error))


class Desk:
    """Asks the sources of one run, each answer kept and counted. `fetcher` sends, `books` remember."""

    def __init__(
        self, fetcher: Fetcher, sources: Mapping[str, Source], books: Books, tally: Tally, *, clock: Clock | None = None
    ) -> None:
        self.fetcher = fetcher
        self.sources = sources
        self.books = books
        self.clock = clock or SystemClock()
        self.told: Counter[tuple[str, str]] = Counter()
        self._rests: dict[str, tuple[float, SourceError]] = {}
        self._attempts = tally.n

    def rest_of(self, name: str) -> float:
        """Seconds that a source is left alone from now on; 0 when it may be asked."""
        until = self._rests.get(name, (0.0, None))[0]
        return max(0.0, until - self.clock.now())

    async def ask(self, source: Source, request: Request) -> tuple[Parsed, int]:
        """Give what an answer holds, and the number under which the answer is kept. Raises one of the five outcomes.

        A source that was throttled or down rests: until then the same outcome is given without asking.
        """
        if self.rest_of(source.name):
            error = self._rests[source.name][1]
            raise type(error)(error.what, retry_after_s=self.rest_of(source.name))
        token = _asking.set(source.name)
        try:
            parsed, answer_id = await self._ask(source, request)
        except SourceError as error:
            if error.transient:
                pause = max(error.retry_after_s or 0.0, _REST_S if error.retry_after_s is None else 1.0)
                self._rests[source.name] = (self.clock.now() + pause, error)
            await self._count(source.name, error.outcome, error.what)
            raise
        finally:
            _asking.reset(token)
        await self._count(source.name, None, f"ok: {len(parsed.works)} works", n_found=len(parsed.works))
        return parsed, answer_id

    async def _ask(self, source: Source, request: Request) -> tuple[Parsed, int]:
        for attempt in range(1, _N_TRIES):
            try:
                return await self._once(source, request, fresh=attempt > 1)
            except SourceNonsense:
                await self.clock.sleep(2.0**attempt)  # half an answer, or a page of somebody in between
            except _Hidden as hidden:
                wait_s = hidden.error.retry_after_s
                if (wait_s or 0.0) > self.fetcher.settings.patience.total_seconds():
                    raise hidden.error from hidden
                await self.clock.sleep(max(wait_s or 0.0, 2.0**attempt))
        try:
            return await self._once(source, request, fresh=True)
        except _Hidden as hidden:
            raise hidden.error from hidden

    async def _once(self, source: Source, request: Request, *, fresh: bool) -> tuple[Parsed, int]:
        answer = await self.fetcher.ask(request, fresh=fresh)
        answer_id = await self.books.do(_keep, source.name, request, answer)
        try:
            return source.parse(answer), answer_id
        except SourceError as error:
            await self.fetcher.forget(request)
            if not error.transient or (answer.status is not None and answer.status >= 400):
                raise
            # The status said 200 and the words say otherwise: the fetcher could not know, and has not waited.
            self._attempts[source.name, error.outcome] += 1
            if isinstance(error, SourceThrottled):
                self.fetcher.limits.note_throttled(request.host, error.retry_after_s)
            raise _Hidden(error) from error

    async def count_new(self, n_new: Mapping[str, int]) -> None:
        """Count papers that the corpus did not have before, by the source that gave them."""
        for name, n in n_new.items():
            if n:
                await self.books.do(_count, {**_counts(name), "new": n})

    async def _count(self, name: str, outcome: str | None, said: str, *, n_found: int = 0) -> None:
        values = _counts(name)
        values |= {"asked": 1, "found": n_found, "last_answer": (f"{outcome}: {said}" if outcome else said)[:500]}
        for kind in ("throttled", "down"):
            values[kind] = self._attempts.pop((name, kind), 0)
        if outcome and not (outcome in {"throttled", "down"} and values[outcome]):
            values[outcome] = 1
        if outcome:
            self.told[name, outcome] += 1
        _log.info("asked", source=name, outcome=outcome or "ok", n_works=n_found)
        await self.books.do(_count, values)


def _counts(name: str) -> dict[str, Any]:
    return {"source": name, "last_answer": None, **dict.fromkeys(("asked", "found", "new", *OUTCOMES), 0)}


def _count(connection: Connection[Any], values: dict[str, Any]) -> None:
    connection.execute(SQL["count_day"], values)


def _keep(connection: Connection[Any], name: str, request: Request, answer: Any) -> int:
    named = b" ".join([request.method.encode(), request.full_url.encode(), request.body or b""])
    row = connection.execute(
        SQL["keep_answer"],
        {
            "request_key": hashlib.sha256(named).hexdigest(), "source": name, "url": nameless(request.full_url),
            "status": answer.status, "content_type": answer.content_type[:200], "body": zlib.compress(answer.body, 6),
        },
    ).fetchone()  # fmt: skip
    assert row is not None
    return row[0]


def nameless(url: str) -> str:
    """An address without the keys and e-mail addresses in its query."""
    parts = urlsplit(url)
    kept = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k.lower() not in _SECRET]
    return parts._replace(query=urlencode(kept)).geturl().replace("\x00", "")
