"""A network of the test's own between workers and database: it refuses, cuts, half-closes, delays and swallows."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal, Self

from tests.support import free_port

Weather = Literal["fair", "refused", "swallowed"]


class Proxy:
    """Forwards TCP connections of 127.0.0.1 to the database's socket."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: set[asyncio.StreamWriter] = set()
        self.weather: Weather = "fair"
        self.delay_s = 0.0
        self.port = free_port()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.weather = "fair"

    async def refuse(self) -> None:
        """Cut every connection and take no new ones."""
        self.weather = "refused"
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    async def heal(self) -> None:
        """Fair weather again for new connections; those whose bytes were swallowed stay open and dead."""
        self.weather, self.delay_s = "fair", 0.0
        if self._server is None:
            await self._open()

    def cut(self) -> None:
        """End every connection now."""
        for pair in list(self._pairs):
            for writer in pair:
                with contextlib.suppress(Exception):
                    writer.transport.abort()

    def half_close(self) -> None:
        """End one direction of every connection: the worker is told that nothing more comes and may still write."""
        for near, _ in list(self._pairs):
            self._ended.add(near)
            with contextlib.suppress(OSError, RuntimeError):
                near.write_eof()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                far_reader, far_writer = await asyncio.open_unix_connection(self._target)
                pair = (writer, far_writer)
                self._pairs.add(pair)
                try:
                    await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
                finally:
                    self._pairs.discard(pair)
                    self._ended.discard(writer)
                    for each in pair:
                        each.transport.abort()
        finally:
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_dead = False
        while data := await reader.read(1 << 16):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            is_dead = is_dead or self.weather == "swallowed"
            if is_dead or writer in self._ended:
                continue  # the peer sees an open connection on which nothing ever comes again
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
