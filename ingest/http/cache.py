"""The cache of sources' answers: successful GETs, for a day, in one SQLite file; without keys and addresses in it."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import hishel
import httpx2
from hishel.httpx2 import AsyncCacheTransport

_FILE = "answers-1.sqlite"


def cache_key(method: str, url: str, accept: str = "") -> str:
    """Name an entry; a hash, because addresses hold keys and e-mail addresses."""
    return hashlib.sha256(f"{method} {url} {accept}".encode()).hexdigest()


class _NamelessStorage(hishel.AsyncSqliteStorage):
    """Keeps answers without the request's address and headers, where keys stand."""

    async def create_entry(
        self, request: hishel.Request, response: hishel.Response, key: str, **kwargs: Any
    ) -> hishel.Entry:
        bare = hishel.Request(method=request.method, url="https://cached.invalid/", headers=hishel.Headers({}))
        return await super().create_entry(bare, response, key, **kwargs)


class AnswerCache(AsyncCacheTransport):
    """Serves answers again for some time; a request with the extension `fresh` replaces what is there."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, folder: Path, keep: timedelta) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._answers = _NamelessStorage(
            database_path=folder / _FILE, default_ttl=keep.total_seconds(), max_stream_size=64 << 20
        )
        super().__init__(inner, storage=self._answers)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the cache, or send the request on and keep what comes."""
        key = cache_key(request.method, str(request.url), request.headers.get("accept", ""))
        if request.extensions.get("fresh"):
            await self.forget(key)
        request.extensions["caching"] = {"key": key}
        return await super().handle_async_request(request)

    async def forget(self, key: str) -> None:
        """Drop an answer that turned out to be of no use."""
        for entry in await self._answers.get_entries(key):
            await self._answers.remove_entry(entry.id)
