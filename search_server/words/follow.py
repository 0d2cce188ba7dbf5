"""Keeps a word index in step with the database: one thread, one connection, one snapshot at a time.

The index follows the feed `change` by snapshots (rows of transactions that the last one did not see), not by the highest
id, so that a transaction that commits late is not missed and a long one holds nothing up. It is built anew, by itself and
with a line in the log, when the database, its schema or our analysis is another one, when the database went back in time
(the last row that was seen is gone), and when its files are damaged.

On a standby nothing can be listened to, so it is polled; one that has not replayed yet what the index has seen is waited for.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import Connection, errors
from psycopg.rows import class_row, dict_row

from corpus.database import Database
from corpus.errors import BrainError
from search_server.words.folder import WordFolder
from search_server.words.index import Generation, IndexDamaged, open_current
from search_server.words.layout import IndexRow, Memory
from search_server.words.search import Reader
from sql.files import queries

log = structlog.get_logger()
_BATCH = 400
_RETRY_S = 0.5
_LOOK_S = 0.1
_HANG_UP_S = 2.0
"""How long a stop waits before it ends the connection too: a host that says nothing answers no query."""
_BEHIND_S = 60.0


class _RebuildNeeded(Exception):
    """The index does not fit; with `goes_on` what it holds is right, if perhaps not all, and serves until the new one does."""

    def __init__(self, why: str, *, goes_on: bool = False) -> None:
        super().__init__(why)
        self.goes_on = goes_on


class _Behind(Exception):
    """The standby has not replayed yet what the index has seen."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """What `/health` says of the word index."""

    state: str
    n_passages: int
    lag_s: float | None
    n_rebuilds: int
    why: str | None
    build_done: int
    build_total: int


class Follower:
    """Opens, builds and follows. `reader` is what searches ask; None while there is nothing right to ask."""

    def __init__(
        self, database: Database, root: Path, *, poll: timedelta = timedelta(seconds=1), share: bool = False
    ) -> None:
        self._database = database
        self._root = root
        self._poll_s = poll.total_seconds()
        self._share = share
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._folder: WordFolder | None = None
        self._generation: Generation | None = None
        self._serving: Reader | None = None
        self._change_id: int | None = None
        self._opened = threading.Event()
        self._in_step_at: float | None = None
        self._state = "opening"
        self._why: str | None = None
        self._n_rebuilds = 0
        self._progress = (0, 0)
        self._damaged: str | None = None
        self._behind_since: float | None = None
        self._handled: set[int] = set()
        self._is_listening = False
        self._line: socket.socket | None = None

    # -- what others see ----------------------------------------------------------------------------------------------

    @property
    def reader(self) -> Reader | None:
        """The index as last committed."""
        return self._serving

    @property
    def state(self) -> IndexState:
        """A view for health and nodes."""
        reader = self._serving
        lag = None if self._in_step_at is None else max(0.0, time.monotonic() - self._in_step_at)
        return IndexState(
            self._state, reader.n_passages if reader else 0, lag, self._n_rebuilds, self._why, *self._progress
        )

    @property
    def change_id(self) -> int | None:
        """The last row of the feed that the index has seen."""
        return self._change_id

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="word-index", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and give the folder back; waits for a commit that is under way, not for a silent database."""
        self._stop.set()
        if self._thread is None:
            return
        self._thread.join(timeout=_HANG_UP_S)
        if line := self._line:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=15)

    def wait_open(self, timeout: timedelta) -> bool:
        """Wait until there is an index to ask; False when it took too long."""
        return self._opened.wait(timeout.total_seconds())

    def report_damage(self, reader: Reader, what: str) -> None:
        """A search found the index unreadable: stop asking it and build it anew; nothing where it is not asked any more."""
        if reader is self._serving:
            self._serving, self._damaged = None, what

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._connected()
                except (psycopg.Error, BrainError) as error:
                    if self._state != "waiting" and not self._stop.is_set():
                        log.warning("word_index_waiting", why=str(error).splitlines()[0] if str(error) else repr(error))
                    self._state, self._why = "waiting", str(error).strip()
                except Exception as error:
                    log.exception("word_index_failed")
                    self._state, self._why = "failed", repr(error)
                    self._forget()
                self._stop.wait(_RETRY_S)
        finally:
            self._forget()
            if self._folder is not None:
                self._folder.release()

    def _forget(self) -> None:
        if self._generation is not None:
            self._generation.close()
            self._generation = None

    def _connected(self) -> None:
        with (
            psycopg.connect(self._database.conninfo, autocommit=True, prepare_threshold=None) as connection,
            socket.socket(fileno=os.dup(connection.fileno())) as line,
        ):
            self._line = line
            try:
                self._is_listening = False
                system = _system(connection)
                while not self._stop.is_set():
                    self._listen(connection)
                    self._settle(connection, system)
                    self._wait(connection)
            finally:
                self._line = None

    def _listen(self, connection: Connection) -> None:
        """Ask for word of changes; a standby cannot listen: it is polled until it is the primary."""
        if not self._is_listening:
            row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
            if row is not None and not row[0]:
                connection.execute("LISTEN change")
                self._is_listening = True

    def _wait(self, connection: Connection) -> None:
        """Wait for word of a change, at most until the next poll; short looks, so that a stop is not kept waiting."""
        end = time.monotonic() + self._poll_s
        heard = False
        while not heard and not self._stop.is_set() and time.monotonic() < end and self._damaged is None:
            for _ in connection.notifies(timeout=min(_LOOK_S, self._poll_s), stop_after=1):
                heard = True
        if heard:
            self._stop.wait(0.02)  # the statements of one load come in a row: one commit for them
            for _ in connection.notifies(timeout=0):
                pass

    def _settle(self, connection: Connection, system: str) -> None:
        """Bring the index to the database's present, whatever it takes."""
        try:
            self._check_damage()
            if self._generation is None:
                self._open(connection)
            self._step(connection, system)
        except IndexDamaged as error:
            self._serving = None
            self._rebuild(connection, system, f"damaged: {error}")
        except _RebuildNeeded as error:
            self._serving = self._serving if error.goes_on else None
            self._rebuild(connection, system, str(error))
        except _Behind:
            self._why = "the standby has not replayed yet what the index has seen"
            return
        if self._state != "ready":
            log.info("word_index_ready", n_passages=self.state.n_passages)
        self._state, self._why = "ready", None
        self._in_step_at = time.monotonic()
        if self._generation is not None and self._generation.memory is not None:
            self._change_id = self._generation.memory.change_id
        self._opened.set()

    def _check_damage(self) -> None:
        if self._damaged is not None:
            raise IndexDamaged(self._damaged)

    def _open(self, connection: Connection) -> None:
        if self._folder is None:
            row = connection.execute("SELECT value #>> '{}' FROM setting WHERE name = 'instance'").fetchone()
            if row is None:
                raise _no_schema()
            name = str(row[0])[:8]
            if self._share:
                self._folder = WordFolder.share(self._root, name)
            if self._folder is None:
                self._folder = WordFolder.take(self._root, name)
        self._generation = open_current(self._folder)
        if self._generation is None:
            raise _RebuildNeeded("there is none yet")

    def _step(self, connection: Connection, system: str) -> None:
        generation = self._generation
        assert generation is not None
        memory = generation.memory
        assert memory is not None
        if self._folder is not None and not self._folder.is_owned:
            # The owner follows; this process only reads, and goes along when a new generation serves.
            if self._folder.current() not in {None, generation.path}:
                self._forget()
                self._open(connection)
                return
            generation.refresh()
            self._serving = generation.reader
            return
        statements = queries("search")
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            now, is_standby = _position(connection, system)
            if not now.is_of(memory):
                raise _RebuildNeeded("another database, schema or analysis")
            values = {"last": memory.snapshot, "change_id": memory.change_id, "token": memory.token}
            self._check_remembered(connection, values, is_standby=is_standby)
            self._serving = generation.reader
            if now.snapshot == memory.snapshot and not is_standby:
                return
            rows = connection.execute(statements["index_changed"], values).fetchall()
            pks = sorted({pk for change_id, pk in rows if change_id not in self._handled})
            # A standby shows what is above its xmin again and again: only the first time is it news.
            handled = {change_id for change_id, _ in rows} if is_standby else set()
            if not pks:
                self._handled = handled
                generation.memory = now  # in memory only: seeing nothing again after a restart costs nothing
                return
            started = time.monotonic()
            try:
                n = 0
                for part in range(0, len(pks), _BATCH):
                    batch = pks[part : part + _BATCH]
                    n += generation.replace(batch, _rows(connection, batch))
                generation.commit(now)
            except BaseException:
                generation.rollback()
                raise
        self._handled = handled
        self._serving = generation.reader
        log.info("word_index_followed", n_papers=len(pks), n_passages=n, ms=round((time.monotonic() - started) * 1000))
        if generation.needs_rebuild():
            self._rebuild(connection, system, "too many replaced passages")

    def _check_remembered(self, connection: Connection, values: dict[str, Any], *, is_standby: bool) -> None:
        """Whether this database's past is the one that the index followed. A standby gets its time to catch up."""
        row = connection.execute(queries("search")["index_remembered"], values).fetchone()
        is_there, is_as_far = row or (False, False)
        if values["change_id"] is None or (is_there and is_as_far):
            self._behind_since = None
            return
        if is_standby:
            now = time.monotonic()
            self._behind_since = now if self._behind_since is None else self._behind_since
            if now - self._behind_since < _BEHIND_S:
                raise _Behind
        self._behind_since = None
        # Numbers that a lost primary gave away and a promoted standby gives again: the past is the same, to be sure it is read anew.
        raise _RebuildNeeded("the database went back in time", goes_on=is_there)

    def _rebuild(self, connection: Connection, system: str, why: str) -> None:
        """Build a generation beside the one that serves and let it serve."""
        if self._folder is not None and not self._folder.is_owned:
            self._folder = None  # another process's index does not fit: take one of our own
            self._forget()
        if self._folder is None:
            self._damaged = None
            with contextlib.suppress(IndexDamaged, _RebuildNeeded):
                self._open(connection)
        folder = self._folder
        assert folder is not None
        log.info("word_index_rebuilt" if self._serving else "word_index_building", why=why)
        if self._serving is None:
            self._state, self._why = "building", why
        started = time.monotonic()
        fresh = Generation.create(folder.begin())
        try:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                now, _ = _position(connection, system)
                size = connection.execute(queries("search")["index_size"]).fetchone()
                self._progress = (0, int(size[0]) if size else 0)
                n = fresh.replace((), self._all_rows(connection))
                fresh.commit(now)
        except BaseException:
            fresh.close()
            raise
        fresh.finish_build()
        folder.switch(fresh.path)
        self._forget()
        self._generation = fresh
        self._handled = set()
        self._damaged = None
        self._serving = fresh.reader
        self._n_rebuilds += 1
        folder.drop_old()
        log.info("word_index_built", why=why, n_passages=n, seconds=round(time.monotonic() - started, 2))

    def _all_rows(self, connection: Connection) -> Iterator[IndexRow]:
        with connection.cursor(name="word_index", row_factory=class_row(IndexRow)) as cursor:
            cursor.itersize = 2000
            cursor.execute(queries("search")["index_all_rows"])
            for n, row in enumerate(cursor, 1):
                if n % 500 == 0:
                    self._progress = (n, max(n, self._progress[1]))
                    if self._stop.is_set():
                        raise _Stopped
                yield row


class _Stopped(BrainError):
    def __init__(self) -> None:
        super().__init__("the build was stopped")


def _no_schema() -> BrainError:
    from corpus.errors import SchemaMismatch

    return SchemaMismatch("The database holds no schema of this program.", mend="Run `brain init`.")


def _rows(connection: Connection, pks: list[int]) -> list[IndexRow]:
    with connection.cursor(row_factory=class_row(IndexRow)) as cursor:
        return cursor.execute(queries("search")["index_rows"], {"pks": pks}).fetchall()


def _position(connection: Connection, system: str) -> tuple[Memory, bool]:
    """Where the database is, and whether it is a standby."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row: dict[str, Any] | None = cursor.execute(queries("search")["index_database"]).fetchone()
    if row is None or row["instance"] is None:
        raise _no_schema()
    memory = Memory(
        instance=row["instance"], system=system, database_oid=row["database_oid"], schema=row["schema"] or "",
        snapshot=row["snapshot"], change_id=row["change_id"], token=row["token"],
    )  # fmt: skip
    return memory, bool(row["is_standby"])


def _system(connection: Connection) -> str:
    """The cluster's own number; empty where the login may not see it."""
    try:
        row = connection.execute(queries("search")["index_system"]).fetchone()
    except (errors.InsufficientPrivilege, errors.UndefinedFunction):
        return ""
    return str(row[0]) if row else ""
