"""Whether there is a network at all: asked once, so that a machine without one is told so in a moment, not host by host."""

from __future__ import annotations

import asyncio
import socket

_HOSTS = ("export.arxiv.org", "api.crossref.org", "api.openalex.org")
_PATIENCE_S = 4.0


async def is_online() -> bool:
    """Whether the name of any of the great sources can be resolved; nothing is sent to them."""
    return any(await asyncio.gather(*(_resolves(host) for host in _HOSTS)))


async def _resolves(host: str) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        return False
    return True
