"""How fast a node is: what it claims by, and what the farm's picture shows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOWS_MIN = (1, 10, 60)
_MEMORY = 0.3
"""Weight of the newest batch in the working rate: a node that slows down claims less within a few batches."""


class Rates:
    """Texts a second: the working rate (while encoding), and the rate over windows of time (idling included)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._done: deque[tuple[float, int]] = deque()
        self._working: float | None = None

    @property
    def working(self) -> float | None:
        """Texts a second while it encodes; None before the first batch."""
        return self._working

    def encoded(self, n_texts: int, seconds: float) -> None:
        """A batch was encoded."""
        if n_texts and seconds > 0:
            now = n_texts / seconds
            self._working = now if self._working is None else (1 - _MEMORY) * self._working + _MEMORY * now

    def completed(self, n_texts: int) -> None:
        """Texts were written."""
        now = self._clock()
        if self._done and now - self._done[-1][0] < 1:
            self._done[-1] = (self._done[-1][0], self._done[-1][1] + n_texts)
        else:
            self._done.append((now, n_texts))
        while self._done and now - self._done[0][0] > max(WINDOWS_MIN) * 60:
            self._done.popleft()

    def windows(self) -> dict[str, float]:
        """Texts a second over the last 1, 10 and 60 minutes, or over the node's life where that is shorter."""
        now = self._clock()
        rates: dict[str, float] = {}
        for minutes in WINDOWS_MIN:
            span = max(1.0, min(minutes * 60, now - self._began))
            rates[str(minutes)] = round(sum(n for at, n in self._done if now - at <= span) / span, 3)
        return rates
