"""Reading an answer's body within limits of size, time, pace and decompression."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Protocol

import httpx2

from corpus.errors import SourceDown, SourceNonsense
from ingest.http.clock import Clock

_CODINGS = {"identity", "gzip", "deflate"}
_MAGIC = ((b"%PDF-", ".pdf"), (b"<?xml", ".xml"), (b"<!doctype html", ".html"), (b"<html", ".html"))


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """At most so many bytes after decompression, so long in all, and after `grace` no slower than `bytes_per_s`."""

    max_bytes: int
    total: timedelta
    bytes_per_s: float = 1000.0
    grace: timedelta = timedelta(seconds=20)

    def capped(self, max_bytes: int | None) -> BodyLimits:
        """Give the same limits with another size."""
        return self if max_bytes is None else replace(self, max_bytes=max_bytes)


@dataclass(frozen=True, slots=True)
class Body:
    """What came with a body that a sink has taken: `url` is the original address of the last hop."""

    status: int
    headers: Mapping[str, str]
    url: str
    is_cached: bool
    pause_s: float | None
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A file that lies whole at `path`; `content_type` is what its host called it, `final_url` where it was at last."""

    path: Path
    sha256: str
    content_type: str
    final_url: str
    n_bytes: int


class Sink(Protocol):
    """Where a body goes."""

    def write(self, part: bytes) -> object:
        """Take the next bytes."""
        ...


class MemorySink:
    """Keeps the body as bytes."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, part: bytes) -> None:
        """Take the next bytes."""
        self.content += part


class FileSink:
    """Writes the body to a file of a name of our own; nothing of it stays unless `finish` is called."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._part = folder / f".{uuid.uuid4().hex}.part"
        self._file: BinaryIO = self._part.open("xb")
        self._digest = hashlib.sha256()
        self._head = b""

    def write(self, part: bytes) -> None:
        """Take the next bytes."""
        if len(self._head) < 1024:
            self._head += part[:1024]
        self._digest.update(part)
        self._file.write(part)

    def finish(self, body: Body) -> Downloaded:
        """Give the file its name, the hash of its bytes with an ending that its first bytes show."""
        self._file.close()
        sha256 = self._digest.hexdigest()
        head = self._head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        suffix = next((s for magic, s in _MAGIC if head.startswith(magic.lower())), ".bin")
        path = self._part.with_name(sha256 + suffix)
        self._part.replace(path)
        content_type = body.headers.get("content-type", "")
        return Downloaded(path, sha256, content_type, body.url, body.n_bytes)

    def discard(self) -> None:
        """Remove what was not finished; after `finish` this does nothing."""
        self._file.close()
        self._part.unlink(missing_ok=True)


async def read_body(response: httpx2.Response, sink: Sink, limits: BodyLimits, clock: Clock) -> Body:
    """Read the body into the sink.

    Raises SourceNonsense (too large, an encoding that was not asked for) and SourceDown (too slow), and httpx2's
    errors as they come.
    """
    url = str(response.url)
    where = url.partition("?")[0]
    codings = [c.strip().lower() for c in response.headers.get("content-encoding", "").split(",") if c.strip()]
    if len(codings) > 1 or not set(codings) <= _CODINGS:
        raise SourceNonsense(f"{where} is encoded as {', '.join(codings)}, which was not asked for.")
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.max_bytes:
        raise SourceNonsense(f"{where} has {declared} bytes, more than the limit of {limits.max_bytes}.")
    n_bytes, started = 0, clock.now()
    try:
        async with asyncio.timeout(limits.total.total_seconds()):
            # Decompression gives pieces of at most 1 MiB, so a bomb is seen before it fills the memory.
            async for part in response.aiter_bytes():
                n_bytes += len(part)
                if n_bytes > limits.max_bytes:
                    raise SourceNonsense(f"{where} is larger than the limit of {limits.max_bytes} bytes.")
                sink.write(part)
                _check_pace(where, n_bytes, clock.now() - started, limits)
    except TimeoutError as cause:
        raise SourceDown(f"{where} took longer than {limits.total.total_seconds():g} s.") from cause
    caching = response.extensions.get("caching")
    return Body(
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        url=url,
        is_cached=bool(caching and caching["from_cache"]),
        pause_s=response.extensions.get("pause_s"),
        n_bytes=n_bytes,
    )


def _check_pace(where: str, n_bytes: int, elapsed: float, limits: BodyLimits) -> None:
    if elapsed > limits.total.total_seconds():
        raise SourceDown(f"{where} took longer than {limits.total.total_seconds():g} s.")
    if elapsed > limits.grace.total_seconds() and n_bytes < elapsed * limits.bytes_per_s:
        raise SourceDown(f"{where} drips: {n_bytes} bytes in {elapsed:.0f} s.")
