"""The clock that limits and waits are measured by: the machine's, or one that a test moves."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and a way to wait."""

    def now(self) -> float:
        """Give the seconds since some fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait until so many seconds have passed on this clock."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Give the seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""
        await asyncio.sleep(max(0.0, seconds))


class VirtualClock:
    """A clock on which waiting takes no time: whoever sleeps moves it to the end of the sleep."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now

    def now(self) -> float:
        """Give the seconds since some fixed moment."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    async def sleep(self, seconds: float) -> None:
        """Move the clock to the end of the sleep, unless somebody else has moved it further."""
        until = self._now + max(0.0, seconds)
        await asyncio.sleep(0)
        self._now = max(self._now, until)
