"""When requests to each host begin: kept in memory, or in a file that all processes of one BRAIN_HOME share.

With the file two commands at once, or one after the other, keep a host's limit together, and a pause that a host has
asked for outlives the process that was told.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from ingest.http.clock import Clock

Window = tuple[int, float]
"""At most n requests begin in so many seconds."""

_MARGIN_S = 0.05  # a request that is sent late and one that is sent early must not meet inside the window
_DAY_S = 86_400.0


class Ledger(Protocol):
    """Starts and pauses by key; moments are those of the clock in use."""

    def reserve(self, key: str, windows: Sequence[Window], earliest: float, latest: float) -> float:
        """Give the first moment from `earliest` on that breaks no window, and take it unless it is after `latest`."""
        ...

    def pause(self, key: str, until: float) -> None:
        """Let no request begin before a moment; an earlier one changes nothing."""
        ...

    def paused_until(self, key: str) -> float:
        """Give the end of the pause, or a moment long past."""
        ...


class MemoryLedger:
    """The ledger of one process."""

    def __init__(self) -> None:
        self._starts: dict[str, list[float]] = {}
        self._pauses: dict[str, float] = {}

    def reserve(self, key: str, windows: Sequence[Window], earliest: float, latest: float) -> float:
        """See Ledger."""
        starts = self._starts.setdefault(key, [])
        start = earliest
        for n, per_s in windows:
            if len(starts) >= n:
                start = max(start, starts[-n] + per_s + _MARGIN_S)
        if start <= latest:
            starts.append(start)
            most = max(n for n, _ in windows)
            if len(starts) > 2 * most + 100:
                del starts[:-most]
        return start

    def pause(self, key: str, until: float) -> None:
        """See Ledger."""
        self._pauses[key] = max(until, self._pauses.get(key, 0.0))

    def paused_until(self, key: str) -> float:
        """See Ledger."""
        return self._pauses.get(key, 0.0)


class FileLedger:
    """The ledger of all processes that use one folder; a broken file costs the memory of the past, no request."""

    def __init__(self, path: Path, clock: Clock, wall: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._wall = wall
        self._memory = MemoryLedger()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=5.0, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")  # losing the last second in a power cut is no harm
        connection.execute("CREATE TABLE IF NOT EXISTS start (key TEXT NOT NULL, at REAL NOT NULL)")
        connection.execute("CREATE INDEX IF NOT EXISTS start_key_at_idx ON start (key, at)")
        connection.execute("CREATE TABLE IF NOT EXISTS pause (key TEXT PRIMARY KEY, until REAL NOT NULL)")
        return connection

    def reserve(self, key: str, windows: Sequence[Window], earliest: float, latest: float) -> float:
        """See Ledger."""
        # What this process knows holds too: the wall clock may be set back, the monotonic one is not.
        known = self._memory.reserve(key, windows, earliest, float("-inf"))
        try:
            with closing(self._open()) as connection:
                start = self._reserve(connection, key, windows, known, latest)
        except sqlite3.Error:
            start = known
        if start <= latest:
            self._memory.reserve(key, windows, start, latest)
        return start

    def _reserve(
        self, connection: sqlite3.Connection, key: str, windows: Sequence[Window], earliest: float, latest: float
    ) -> float:
        shift = self._wall() - self._clock.now()
        now = self._wall()
        connection.execute("BEGIN IMMEDIATE")
        # Moments that are too far ahead were written before the clock was set back.
        connection.execute("DELETE FROM start WHERE at < ? OR at > ?", (now - _DAY_S - 60, now + _DAY_S))
        start = earliest + shift
        for n, per_s in windows:
            row = connection.execute(
                "SELECT at FROM start WHERE key = ? ORDER BY at DESC LIMIT 1 OFFSET ?", (key, n - 1)
            ).fetchone()
            if row:
                start = max(start, float(row[0]) + per_s + _MARGIN_S)
        if start - shift <= latest:
            connection.execute("INSERT INTO start VALUES (?, ?)", (key, start))
        connection.execute("COMMIT")
        return start - shift

    def pause(self, key: str, until: float) -> None:
        """See Ledger."""
        self._memory.pause(key, until)
        wall = until - self._clock.now() + self._wall()
        try:
            with closing(self._open()) as connection:
                connection.execute(
                    "INSERT INTO pause VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET until = max(until, excluded.until)",
                    (key, wall),
                )
        except sqlite3.Error:
            return

    def paused_until(self, key: str) -> float:
        """See Ledger; a pause of more than a day is believed for a day."""
        known = self._memory.paused_until(key)
        try:
            with closing(self._open()) as connection:
                row = connection.execute("SELECT until FROM pause WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error:
            return known
        if not row:
            return known
        ahead = min(float(row[0]) - self._wall(), _DAY_S)
        return max(known, self._clock.now() + ahead)
