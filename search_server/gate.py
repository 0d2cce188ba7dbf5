"""How many questions are worked on at once, and how many may wait: beyond that, a clear refusal instead of a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from search_server.errors import Overloaded


class Gate:
    """At most `n_running` inside and `n_waiting` before it."""

    def __init__(self, n_running: int, n_waiting: int) -> None:
        self._inside = asyncio.Semaphore(n_running)
        self._n_running = n_running
        self._n_waiting = n_waiting
        self.waiting = 0
        self.running = 0
        self.n_refused = 0

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Wait for a place. Raises Overloaded when too many wait already."""
        if self._inside.locked() and self.waiting >= self._n_waiting:
            self.n_refused += 1
            raise Overloaded(
                f"{self.running} questions are being answered and {self.waiting} wait.", mend="Ask again in a second."
            )
        self.waiting += 1
        try:
            await self._inside.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._inside.release()
