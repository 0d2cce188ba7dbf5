"""The transport that waits for each host's turn and learns from each answer how the host fares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2

from ingest.http.limits import HostLimits, retry_after_of


class PoliteTransport(httpx2.AsyncBaseTransport):
    """Keeps the limits of the original host; an answer holds its place until its body is closed."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, limits: HostLimits, head_timeout_s: float = 60.0) -> None:
        self._inner = inner
        self._limits = limits
        self._head_timeout_s = head_timeout_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request in its turn. Raises SourceThrottled, SourceDown when there is no turn to be had."""
        host = request.url.host
        await self._limits.acquire(host)
        try:
            # The time runs from our turn on; a host that drips its headers ends here, whatever each read takes.
            async with asyncio.timeout(self._head_timeout_s):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as cause:
            self._limits.release(host)
            self._limits.note_down(host)
            raise httpx2.ReadTimeout("no complete answer head in time", request=request) from cause
        except httpx2.TransportError:
            self._limits.release(host)
            self._limits.note_down(host)
            raise
        except BaseException:
            self._limits.release(host)
            raise
        headers = dict(response.headers)
        retry_after_s = retry_after_of(headers)
        if response.status_code == 429 or (response.status_code == 503 and retry_after_s is not None):
            response.extensions["pause_s"] = self._limits.note_throttled(host, retry_after_s)
        elif response.status_code >= 500:
            self._limits.note_down(host)
        else:
            self._limits.note_success(host)
        self._limits.learn(host, headers)
        if response.is_closed:  # there is no body left to hold the place for
            self._limits.release(host)
            return response
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _HeldPlace(response.stream, self._limits, host)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _HeldPlace(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limits: HostLimits, host: str) -> None:
        self._inner = inner
        self._limits = limits
        self._host = host
        self._is_held = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._inner:
                yield part
        except httpx2.TransportError:
            self._limits.note_down(self._host)
            raise

    async def aclose(self) -> None:
        if self._is_held:
            self._is_held = False
            self._limits.release(self._host)
        await self._inner.aclose()
