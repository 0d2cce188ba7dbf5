"""A worker's way to the database: one connection, made again whenever it is lost. Connection loss is weather.

What failed because the connection was lost, or because the server could not serve just then, is tried again with
growing pauses and jitter until it works or the worker is told to stop. One line is logged when the weather turns and
one when it clears. Nothing here ever starts an embedded server: one that was stopped stays stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection

from corpus.database import Database, is_connection_loss, translate

T = TypeVar("T")
log = structlog.get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
CALL_TIMEOUT_S = 15.0
"""Wait for one statement: a peer that is gone without a word must not hold a worker for ever."""
LONGEST_TIMEOUT_S = 300.0
"""After a timeout the next wait is twice as long, up to this: a server that is only slow gets its time."""


_LOST_STATEMENT = frozenset({"26000", "42P05"})


class Stopping(Exception):
    """The worker was told to stop while it waited for the database."""


class Link:
    """One connection in autocommit. `prepare` runs on each new connection; `stop` ends every wait."""

    def __init__(
        self,
        database: Database,
        name: str,
        stop: asyncio.Event,
        *,
        prepare: Callable[[AsyncConnection[Any]], Awaitable[None]] | None = None,
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self._database = database
        self._name = name
        self._stop = stop
        self._prepare = prepare
        self._timeout_s = self._patience_s = call_timeout_s
        self._connection: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._down_since: float | None = None
        self._is_pooled = False

    @property
    def is_up(self) -> bool:
        """Whether the last call reached the database."""
        return self._down_since is None

    async def call(self, work: Callable[[AsyncConnection[Any]], Awaitable[T]], *, even_stopping: bool = False) -> T:
        """Do the work on a living connection, however long that takes; it must be safe to do twice.

        Raises Stopping when the worker is told to stop while the database is away. With `even_stopping` the work is
        begun although the worker stops already, once, and what goes wrong is raised.
        """
        attempt = 0
        while True:
            try:
                async with self._lock:
                    return await self._try(work)
            except (psycopg.Error, TimeoutError, OSError) as error:
                if even_stopping or not _is_weather(error):
                    raise
                self._note_down(error)
                await self._pause(attempt)
                attempt += 1

    async def _try(self, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        """Once; a connection on which something went wrong is given up."""
        try:
            async with asyncio.timeout(self._patience_s):
                result = await work(await self._get())
        except (psycopg.Error, TimeoutError, OSError) as error:
            self._notice_pooler(error)
            if isinstance(error, TimeoutError):
                self._patience_s = min(LONGEST_TIMEOUT_S, 2 * self._patience_s)
            if _is_weather(error):
                await self._drop()
            raise
        self._patience_s = self._timeout_s
        self._note_up()
        return result

    async def close(self) -> None:
        """Give the connection back; harmless twice."""
        await self._drop()

    async def _get(self) -> AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await AsyncConnection.connect(self._database.conninfo, autocommit=True)
            if self._is_pooled:
                self._connection.prepare_threshold = None
            if self._prepare is not None:
                await self._prepare(self._connection)
        return self._connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                await connection.close()

    async def _pause(self, attempt: int) -> None:
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), random.uniform(longest / 2, longest))  # noqa: S311 - jitter
        if self._stop.is_set():
            raise Stopping

    def _notice_pooler(self, error: BaseException) -> None:
        """A pooler that changes the session between transactions loses prepared statements: then use none."""
        if getattr(error, "sqlstate", None) in _LOST_STATEMENT and not self._is_pooled:
            self._is_pooled = True
            log.info("pooler_noticed", link=self._name, mend="Prepared statements are not used any more.")

    def _note_down(self, error: BaseException) -> None:
        if self._down_since is None:
            self._down_since = time.monotonic()
            said = str(translate(error, self._database)) if isinstance(error, psycopg.Error) else "no answer in time"
            log.warning("database_lost", link=self._name, error=said)

    def _note_up(self) -> None:
        if self._down_since is not None:
            log.info("database_returned", link=self._name, after_s=round(time.monotonic() - self._down_since, 1))
            self._down_since = None


def _is_weather(error: BaseException) -> bool:
    """Whether trying again later may help: connection loss, a server in trouble, a conflict between nodes."""
    if isinstance(error, TimeoutError | OSError) or is_connection_loss(error):
        return True
    state = getattr(error, "sqlstate", None) or ""
    # 40 conflict, 53 out of disk, memory or connections, 55 lock or object in use, 57 cancelled, 58 disk trouble, 25006
    # a server that only reads (a standby before it takes over).
    return state in _LOST_STATEMENT or state[:2] in {"40", "53", "55", "57", "58"} or state == "25006"
