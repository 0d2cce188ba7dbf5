"""Which encoders a worker serves: it follows the database, loads in the background, proves itself again every hour."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import structlog
from psycopg import AsyncConnection

from corpus.errors import EncoderRefused, UsageError
from embed_worker.context import Context
from embed_worker.served import Served, list_wanted, wait_until

log = structlog.get_logger()

DRAIN_TRIES = 3
"""A draining worker gives up after so many tries to load its encoder; others try for as long as they live."""


class Followed:
    """The encoders that the database wants served, the active one first, with what this worker has of each."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._served: dict[int, Served] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def ids(self) -> list[int]:
        """Their numbers."""
        return list(self._served)

    @property
    def first(self) -> Served | None:
        """The one that serves, or else the first that is filled."""
        return next(iter(self._served.values()), None)

    @property
    def loaded(self) -> Served | None:
        """The first one that is in memory."""
        return next((each for each in self._served.values() if each.encoder is not None), None)

    @property
    def ready(self) -> list[Served]:
        """Those that may be claimed for."""
        return [each for each in self._served.values() if each.state == "ready"]

    @property
    def is_busy(self) -> bool:
        """Whether one is being loaded, proven or waited for."""
        return bool(self._tasks)

    def find(self, encoder_id: int) -> Served | None:
        """The encoder when it is wanted still."""
        return self._served.get(encoder_id)

    async def look(self, connection: AsyncConnection[Any]) -> None:
        """Load a new active encoder, drop what is wanted no more, make the hour's proof."""
        rows = {row.encoder_id: row for row in await list_wanted(connection)}
        for encoder_id in [each for each in self._served if each not in rows]:
            self._served.pop(encoder_id).close()
        make = self._context
        self._served = {
            number: self._served.get(number) or Served(row, make.thread, make.stop_thread)
            for number, row in rows.items()
        }
        for each in self._served.values():
            each.row = rows[each.encoder_id]
            if each.row.state == "active":
                self._load_when_due(each)
            if each.state == "ready" and time.monotonic() >= each.prove_at:
                self._begin(each.prove_again(), each)

    def load_fillers(self) -> None:
        """There is nothing to do for what serves: load the generations that are being filled."""
        for each in self._served.values():
            if each.row.state == "filling":
                self._load_when_due(each)

    def rest(self, served: Served, pause: float) -> None:
        """Use an encoder again after a pause."""

        async def rest() -> None:
            await wait_until(self._context.stop, pause)
            if served.state == "unavailable" and served.encoder is not None:
                served.state = "ready"

        self._begin(rest(), served)

    def _load_when_due(self, each: Served) -> None:
        is_due = each.state == "new" or (each.state == "unavailable" and time.monotonic() >= each.retry_at)
        if each.encoder is None and is_due:
            options = self._context.options
            self._begin(each.load(options.device, options.cache, options.loader), each)

    def _begin(self, work: Coroutine[Any, Any, None], each: Served) -> None:
        task = asyncio.create_task(self._then(work, each))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _then(self, work: Coroutine[Any, Any, None], each: Served) -> None:
        await work
        context = self._context
        if each.state == "refused" and each.row.state == "active":
            context.error = str(each.error)
            context.end(EncoderRefused.exit_code)
        elif each.state == "unavailable" and each.error is not None and each.row.state == "active":
            is_hopeless = isinstance(each.error, UsageError) or (
                context.options.is_draining and (not each.error.transient or each.n_tries >= DRAIN_TRIES)
            )
            if is_hopeless and each.encoder is None:
                context.error = str(each.error)
                log.error("encoder_given_up", encoder=each.row.name, error=context.error)
                context.end(each.error.exit_code)
        context.wake.set()

    async def close(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
