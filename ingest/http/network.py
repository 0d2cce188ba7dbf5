"""The end of the stack that touches the network: connections pinned to judged addresses, and the replay of recordings.

No address is resolved twice: the backend resolves the host, judges every number, and connects to that number; TLS
still checks the certificate against the name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

from corpus.errors import AddressRefused
from ingest.http.addresses import Resolver, check_resolved, check_url, resolve, resolve_offline


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to what a host resolves to, after judging it, and to `exempt` (host, port) as it is."""

    def __init__(self, resolver: Resolver, exempt: tuple[str, int] | None = None) -> None:
        self._resolver = resolver
        self._exempt = exempt
        self._inner: Any = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the signature is the library's)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first judged address that answers. Raises AddressRefused, httpcore2.ConnectError."""
        if (host, port) == self._exempt:
            return await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        try:
            async with asyncio.timeout(timeout):
                addresses = check_resolved(host, await self._resolver(host, port))
        except TimeoutError as cause:
            raise httpcore2.ConnectTimeout(f"the name {host} was not resolved in time") from cause
        except (OSError, UnicodeError) as cause:
            raise httpcore2.ConnectError(f"the name {host} cannot be resolved: {cause}") from cause
        failure: Exception = httpcore2.ConnectError(f"the name {host} has no address")
        for address in addresses[:4]:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(self, path: str, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:  # noqa: ARG002
        """Refuse: no fetch goes to a socket of this machine."""
        raise AddressRefused(f"{path!r} is not fetched: it is a socket of this machine.")

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries to connect."""
        await self._inner.sleep(seconds)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Judges the address of each request, then sends it: to its host, or to the replay server.

    With `base_url` a request for `https://HOST/PATH?QUERY` goes to `{base_url}/HOST/PATH?QUERY`; what is judged is the
    original address. `inner` replaces the network (tests).
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        resolver: Resolver | None = None,
        inner: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._base = httpx2.URL(base_url) if base_url else None
        self._resolver: Resolver = resolver or (resolve_offline if self._base else resolve)
        self._inner = inner or _pinned_transport(self._resolver, self._base)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises AddressRefused before anything is sent."""
        _, host, port = check_url(str(request.url))
        if self._base is None:
            return await self._inner.handle_async_request(request)
        check_resolved(host, await self._resolver(host, port))
        return await self._inner.handle_async_request(_rewritten(request, self._base))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def _rewritten(request: httpx2.Request, base: httpx2.URL) -> httpx2.Request:
    prefix = base.raw_path.partition(b"?")[0].rstrip(b"/")
    netloc = request.url.netloc  # host, and the port unless it is the scheme's own
    url = base.copy_with(raw_path=prefix + b"/" + netloc + request.url.raw_path)
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
    return httpx2.Request(
        request.method,
        url,
        headers=[(b"Host", base.netloc), *headers],
        stream=request.stream,
        extensions=request.extensions,
    )


def _pinned_transport(resolver: Resolver, base: httpx2.URL | None) -> httpx2.AsyncHTTPTransport:
    exempt = (base.host, base.port or {"http": 80, "https": 443}[base.scheme]) if base else None
    # Proxies of the environment are not used: behind one nobody could say which address is reached.
    context = httpx2.create_ssl_context()
    transport = httpx2.AsyncHTTPTransport(verify=context, trust_env=False)
    transport._pool = httpcore2.AsyncConnectionPool(  # noqa: SLF001 (the pool is the only door to the backend)
        ssl_context=context,
        max_connections=64,
        max_keepalive_connections=32,
        keepalive_expiry=15.0,
        network_backend=PinnedBackend(resolver, exempt),
    )
    return transport
