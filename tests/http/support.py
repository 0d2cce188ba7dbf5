"""A network of our own for the tests of the stack: answers by address, on a clock that only we move."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta

import httpx2

from ingest.http import Fetcher, HttpSettings, VirtualClock
from ingest.sources.base import HostRule

FREE = HostRule("*", 1000, 0.001, 100, "no limit in this test")


class Stream(httpx2.AsyncByteStream):
    """A body in pieces; an exception among them is raised, a callable called."""

    def __init__(self, parts: Iterable[bytes | Exception | Callable[[], None]]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            if callable(part):
                part()
            else:
                yield part


class Network(httpx2.AsyncBaseTransport):
    """Answers each address from its list, the last answer for ever; notes what was asked, when, with which headers."""

    def __init__(self, clock: VirtualClock, answers: dict[str, object]) -> None:
        self.clock = clock
        self.answers = {url: list(a) if isinstance(a, list) else [a] for url, a in answers.items()}
        self.asked: list[tuple[float, str]] = []
        self.requests: list[httpx2.Request] = []
        self.n_now = self.n_most = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = str(request.url)
        self.asked.append((self.clock.now(), url))
        self.requests.append(request)
        waiting = self.answers.get(url) or self.answers.get("*") or [httpx2.Response(404)]
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, (bytes, str)):
            return httpx2.Response(200, content=answer)
        assert isinstance(answer, httpx2.Response)
        if isinstance(answer.stream, httpx2.ByteStream):  # a used response cannot be sent again
            return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)
        return answer

    @property
    def urls(self) -> list[str]:
        return [url for _, url in self.asked]


def stack(answers: dict[str, object], **settings: object) -> tuple[Fetcher, Network, VirtualClock]:
    clock = VirtualClock()
    network = Network(clock, answers)
    options = {
        "default_rule": FREE,
        "contact_email": "me@example.org",
        "read_timeout": timedelta(seconds=5),
        **settings,
    }
    fetcher = Fetcher(HttpSettings(**options), clock=clock, transport=network, random_source=random.Random(1))
    return fetcher, network, clock
