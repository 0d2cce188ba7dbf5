"""Progress of long work: a bar on a terminal, elsewhere a line every few seconds, with the time that is left."""

from __future__ import annotations

import sys
import time
from typing import Self

from brain.common import Bars, say

_EVERY_S = 5.0


class Stages:
    """Stages one after the other; each says how much is done, how fast, and how long the rest will take."""

    def __init__(self) -> None:
        self._bars = Bars() if sys.stderr.isatty() else None
        self._what = ""
        self._n = 0
        self._total: int | None = None
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.__exit__(*error)
        else:
            self._end()

    def begin(self, what: str, total: int | None) -> None:
        """A stage begins; `total` is None where nobody knows."""
        if self._bars is not None:
            self._bars.begin(what, total)
            return
        self._end()
        self._what, self._n, self._total = what, 0, total
        self._began = self._said = time.monotonic()

    def step(self, n: int = 1, note: str = "") -> None:
        """So much more of it is done."""
        if self._bars is not None:
            self._bars.step(n, note)
            return
        self._n += n
        now = time.monotonic()
        if now - self._said >= _EVERY_S:
            self._said = now
            say(describe(self._what, self._n, self._total, now - self._began))

    def _end(self) -> None:
        if self._what and (self._total or self._n):
            say(f"{self._what}: {self._n} in {time.monotonic() - self._began:.1f} s")
        self._what = ""


def describe(what: str, n: int, total: int | None, elapsed_s: float) -> str:
    """One line of progress: how much of how much, the rate, and the time left at that rate."""
    rate = n / elapsed_s if elapsed_s > 0 else 0.0
    said = f"{what}: {n}" + (f" of {total}" if total is not None else "")
    if rate > 0:
        said += f", {rate:.0f}/s" if rate >= 1 else f", {60 * rate:.1f}/min"
        if total is not None and total > n:
            left = (total - n) / rate
            said += f", about {left:.0f} s left" if left < 120 else f", about {left / 60:.0f} min left"
    return said
