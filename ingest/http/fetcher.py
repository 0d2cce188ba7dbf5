"""The one HTTP stack of every source and every download.

    Fetcher: retries, redirects, size and time limits, outcomes
    └── AnswerCache (sources' answers alone; hishel)
        └── PoliteTransport: limits and breaker of each original host
            └── GuardedTransport: judges addresses, rewrites for replay
                └── connections pinned to judged addresses

An API key may stand in an address or a header: neither is logged nor kept in the cache.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx2
import structlog
import tenacity

from corpus.errors import BrainError, SourceError, SourceNonsense, SourceThrottled
from ingest.http.addresses import Resolver, check_url
from ingest.http.body import Body, BodyLimits, Downloaded, FileSink, MemorySink, Sink, read_body
from ingest.http.cache import AnswerCache, cache_key
from ingest.http.clock import Clock, SystemClock
from ingest.http.ledger import FileLedger
from ingest.http.limits import HostLimits
from ingest.http.network import GuardedTransport
from ingest.http.outcomes import error_of, translated
from ingest.http.polite import PoliteTransport
from ingest.http.redirects import Hop, next_hop
from ingest.http.settings import HttpSettings
from ingest.sources.base import Answer, Request

_log = structlog.get_logger("fetch")
_LONGEST_BACKOFF_S = 30.0
_LEDGER = "limits-1.sqlite"
T = TypeVar("T")


class Fetcher:
    """Asks sources and fetches files; an async context manager, one for the whole process.

    `transport` replaces the network, `resolver` the name service and `clock` time, all for tests. `on_outcome` is
    called with (host, outcome) after each attempt: `ok`, `cached`, or the outcome of the error.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        clock: Clock | None = None,
        resolver: Resolver | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        random_source: random.Random | None = None,
        on_outcome: Callable[[str, str], None] | None = None,
    ) -> None:
        self.settings = settings
        self.counts: Counter[tuple[str, str]] = Counter()
        self._clock = clock or SystemClock()
        self._random = random_source or random.Random()  # noqa: S311 (jitter, no secret)
        self._on_outcome = on_outcome
        folder = settings.state_dir
        self.limits = HostLimits(
            settings.rules,
            self._clock,
            patience_s=settings.patience.total_seconds(),
            default=settings.default_rule,
            ledger=FileLedger(settings.cache_dir / _LEDGER, self._clock)
            if settings.cache_dir and clock is None
            else None,
            random_source=self._random,
        )
        guarded = GuardedTransport(base_url=settings.base_url, resolver=resolver, inner=transport)
        polite = PoliteTransport(guarded, self.limits, settings.head_timeout.total_seconds())
        self._cache = AnswerCache(polite, folder, settings.cache_for) if folder else None
        self._files = self._client(polite)
        self._answers = self._client(self._cache) if self._cache else self._files

    def _client(self, transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": self.settings.user_agent, "Accept-Encoding": "gzip"},
            timeout=httpx2.Timeout(
                self.settings.read_timeout.total_seconds(),
                connect=self.settings.connect_timeout.total_seconds(),
                pool=None,  # a full pool is no failure of the host
            ),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._answers.aclose()
        await self._files.aclose()

    async def ask(self, request: Request, *, fresh: bool = False) -> Answer:
        """Send a source's request and give the answer, whatever its status: the source reads it.

        429 and 5xx are asked for again, with waits, before they are given. `fresh` replaces what the cache holds.
        Raises SourceDown, SourceThrottled, SourceNonsense (there is no answer to be read) and AddressRefused.
        """
        last: Answer | None = None

        async def attempt() -> Answer:
            nonlocal last
            last = None
            last, error = await self._exchange(request, fresh=fresh)
            if error is not None and error.transient:
                raise error
            return last

        try:
            return await self._with_retries(attempt)
        except SourceError:
            if last is None:
                raise
            return last

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, fresh: bool = False) -> Answer:
        """Give the answer to a plain GET. Raises the outcome of any other status than 2xx, and AddressRefused."""
        request = Request(url, headers=tuple((headers or {}).items()))

        async def attempt() -> Answer:
            answer, error = await self._exchange(request, fresh=fresh)
            if error is not None:
                raise error
            return answer

        return await self._with_retries(attempt)

    async def download(
        self, url: str, to_dir: str | Path, max_bytes: int | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Downloaded:
        """Fetch a file into the folder, whole or not at all, under a name made of its hash.

        Raises as `get` does; SourceNonsense for a file above `max_bytes` (by default 200 MiB).
        """
        hop = Hop("GET", url, tuple({"Accept": "application/pdf, */*;q=0.5", **(headers or {})}.items()))
        limits = self.settings.file.capped(max_bytes)

        async def attempt() -> Downloaded:
            sink = FileSink(Path(to_dir))
            try:
                body = await self._send(self._files, hop, sink, limits)
                if error := error_of(_answer_of(body), body.pause_s):
                    raise error
                return sink.finish(body)
            finally:
                sink.discard()

        return await self._with_retries(attempt)

    async def forget(self, request: Request) -> None:
        """Drop the cached answer to a request, because it turned out to be of no use."""
        if self._cache:
            accept = next((v for k, v in request.headers if k.lower() == "accept"), "*/*")
            url = str(httpx2.URL(request.full_url))
            await self._cache.forget(cache_key(request.method, url, accept))

    async def _exchange(self, request: Request, *, fresh: bool) -> tuple[Answer, SourceError | None]:
        headers = request.headers
        if request.body is not None and not any(name.lower() == "content-type" for name, _ in headers):
            headers = (*headers, ("Content-Type", "application/json"))
        sink = MemorySink()
        hop = Hop(request.method, request.full_url, headers, request.body)
        body = await self._send(self._answers, hop, sink, self.settings.answer, fresh=fresh)
        answer = _answer_of(body, bytes(sink.content))
        return answer, error_of(answer, body.pause_s)

    async def _send(
        self, client: httpx2.AsyncClient, hop: Hop, sink: Sink, limits: BodyLimits, *, fresh: bool = False
    ) -> Body:
        """Follow a request through its redirects, each hop judged and in its host's turn, and read the last body."""
        first = hop
        for _ in range(self.settings.max_redirects + 1):
            host = check_url(hop.url)[1]
            started = self._clock.now()
            outcome, following, n_bytes, status = "failed", None, 0, None
            try:
                with translated(hop.url):
                    request = client.build_request(
                        hop.method, hop.url, headers=list(hop.headers), content=hop.body, extensions={"fresh": fresh}
                    )
                    response = await client.send(request, stream=True)
                    try:
                        status = response.status_code
                        following = next_hop(hop, status, response.headers)
                        if following is None:
                            body = await read_body(response, sink, limits, self._clock)
                            error = error_of(_answer_of(body), body.pause_s)
                            outcome = error.outcome if error else "cached" if body.is_cached else "ok"
                            n_bytes = body.n_bytes
                            return body
                        outcome = "redirected"
                    finally:
                        await response.aclose()
            except BrainError as error:
                outcome = error.outcome
                raise
            finally:
                self._note(hop, host, outcome, status=status, n_bytes=n_bytes, started=started)
            hop = following
        raise SourceNonsense(
            f"{first.url.partition('?')[0]} redirects more than {self.settings.max_redirects} times, in a circle perhaps."
        )

    def _note(self, hop: Hop, host: str, outcome: str, *, status: int | None, n_bytes: int, started: float) -> None:
        self.counts[host, outcome] += 1
        if self._on_outcome:
            self._on_outcome(host, outcome)
        path = hop.url.partition("://")[2].partition("/")[2].partition("?")[0]
        took_ms = round((self._clock.now() - started) * 1000)
        _log.info("fetched", host=host, path=path, status=status, outcome=outcome, n_bytes=n_bytes, took_ms=took_ms)

    async def _with_retries(self, attempt: Callable[[], Awaitable[T]]) -> T:
        patience_s = self.settings.patience.total_seconds()

        def is_worth_it(error: BaseException) -> bool:
            return isinstance(error, SourceError) and error.transient and (error.retry_after_s or 0.0) < patience_s

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, SourceThrottled):
                return 0.0  # the host's next turn comes after its pause
            backoff = min(_LONGEST_BACKOFF_S, 2.0 ** (state.attempt_number - 1)) * (1 + self._random.random() / 4)
            asked = error.retry_after_s if isinstance(error, SourceError) else None
            return max(backoff, asked or 0.0)

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.settings.n_attempts),
            retry=tenacity.retry_if_exception(is_worth_it),
            wait=wait,
            sleep=self._clock.sleep,
            reraise=True,
        )
        return await retrying(attempt)


def _answer_of(body: Body, content: bytes = b"") -> Answer:
    return Answer(content, body.status, body.headers.get("content-type", ""), body.url, body.headers)
