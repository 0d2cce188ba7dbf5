"""Connections to the database: one way to open each kind, with errors translated once, here.

A `Database` is made from an address in each `cli.py`, in the app factory and in the tests' fixtures. It starts an
embedded server when a process begins to use it and never again afterwards: a server that was stopped stays stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import AsyncConnection, Connection, conninfo, errors
from psycopg_pool import AsyncConnectionPool

from corpus.dburl import DatabaseUrl, mask, parse_database_url
from corpus.embedded import EmbeddedServer, Progress
from corpus.errors import BrainError, DatabaseError, DatabaseUnavailable, UnsupportedDatabase

if TYPE_CHECKING:
    from corpus.settings import Settings

MIN_SERVER_VERSION = 160000
CONNECT_TIMEOUT_S = 5
_PATIENCE: dict[str, str | int] = {
    "connect_timeout": CONNECT_TIMEOUT_S, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 45000,
}  # fmt: skip
_PATIENCE_OF_SEVERAL: dict[str, str | int] = {
    "connect_timeout": 2, "keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 2, "tcp_user_timeout": 2500,
}  # fmt: skip
"""Where several hosts are named another one may answer: one that says nothing is left within seconds."""


@dataclass
class Database:
    """One database, by address. `conninfo` is what libpq takes; it holds a password and is never shown."""

    url: DatabaseUrl
    application_name: str = "brain"
    _ready: bool = field(default=False, repr=False)

    @classmethod
    def at(cls, address: str, home: Path, *, application_name: str = "brain") -> Database:
        """The database at an address such as `embedded:`, `embedded:DIR` or a libpq URL (DatabaseUrlError otherwise)."""
        return cls(parse_database_url(address, home), application_name)

    @classmethod
    def named(cls, db: str | None, settings: Settings, *, application_name: str = "brain") -> Database:
        """The database that a command's `--db` names, or the settings' where it was not given (an empty one is an error)."""
        return cls.at(settings.db if db is None else db, settings.home_dir, application_name=application_name)

    @property
    def embedded(self) -> EmbeddedServer | None:
        """The embedded server, when the address names one."""
        return EmbeddedServer(self.url.embedded_dir) if self.url.embedded_dir is not None else None

    @property
    def conninfo(self) -> str:
        """The libpq connection string, with our name and patience added where the address does not set them."""
        server = self.embedded
        base = server.conninfo if server is not None else self.url.conninfo or ""
        given = conninfo.conninfo_to_dict(base)
        patience = _PATIENCE_OF_SEVERAL if self.has_several_hosts else _PATIENCE
        ours: dict[str, str | int] = {"application_name": self.application_name, **patience}
        return conninfo.make_conninfo(base, **{k: v for k, v in ours.items() if k not in given})

    @property
    def has_several_hosts(self) -> bool:
        """Whether the address names more than one machine, so that another may answer for one that is lost."""
        given = conninfo.conninfo_to_dict(self.url.conninfo or "")
        return any("," in str(given.get(name) or "") for name in ("host", "hostaddr"))

    @property
    def write_conninfo(self) -> str:
        """The connection string of the host that takes writes, whichever hosts may be read from."""
        return conninfo.make_conninfo(self.conninfo, target_session_attrs="read-write")

    def ensure_started(self, progress: Progress | None = None) -> None:
        """Start the embedded server if this process has not used it before; nothing for a database by URL."""
        if self._ready:
            return
        server = self.embedded
        if server is not None:
            server.ensure_running(progress)
        self._ready = True

    @contextlib.contextmanager
    def connect(self, *, autocommit: bool = False) -> Iterator[Connection]:
        """A connection for short work; committed at the end, rolled back on an error, errors translated."""
        self.ensure_started()
        with translated(self), psycopg.connect(self.conninfo, autocommit=autocommit) as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def connect_async(self, *, autocommit: bool = False) -> AsyncIterator[AsyncConnection]:
        """As `connect`, for async code."""
        self.ensure_started()
        with translated(self):
            async with await AsyncConnection.connect(self.conninfo, autocommit=autocommit) as connection:
                yield connection

    def pool(
        self,
        *,
        min_size: int = 1,
        max_size: int = 8,
        configure: Callable[[AsyncConnection], Awaitable[None]] | None = None,
    ) -> AsyncConnectionPool:
        """A pool that is not open yet: open it in the lifespan of whatever owns it."""
        return AsyncConnectionPool(
            self.conninfo, min_size=min_size, max_size=max_size, open=False, configure=configure, timeout=1.0,
            reconnect_timeout=0, check=AsyncConnectionPool.check_connection, name=self.application_name,
        )  # fmt: skip


@contextlib.contextmanager
def translated(database: Database) -> Iterator[None]:
    """Turns psycopg's errors into ours, once, at the border; the cause is kept."""
    try:
        yield
    except BrainError:
        raise
    except psycopg.Error as error:
        raise translate(error, database) from error


def translate(error: psycopg.Error, database: Database) -> DatabaseError:
    """The error of ours that stands for psycopg's. No message ever holds the password."""
    said = mask(_first_line(error))
    if isinstance(error, errors.InsufficientPrivilege):
        return UnsupportedDatabase(
            f"The database login lacks a right: {said}.",
            mend="Connect as the owner of the database, or let the owner run `brain init` and sql/roles.sql.",
        )
    if isinstance(error, errors.UndefinedTable | errors.UndefinedFunction | errors.UndefinedColumn):
        return UnsupportedDatabase(
            f"The database {database.url.masked} does not hold this program's schema: {said}.", mend="Run `brain init`."
        )
    if isinstance(error, errors.InvalidPassword | errors.InvalidAuthorizationSpecification):
        return DatabaseUnavailable(f"The database refuses the login: {said}.", mend="Check user and password.")
    if is_connection_loss(error):
        mend = (
            "Start it with `brain db start`." if database.url.embedded_dir is not None
            else "Check that it runs and that the address is right."
        )  # fmt: skip
        return DatabaseUnavailable(f"The database {database.url.masked} does not answer: {said}.", mend=mend)
    return DatabaseError(f"The database refused: {said}.")


def is_connection_loss(error: BaseException) -> bool:
    """Whether the connection, and not the statement, is at fault: such work may be tried again on a new one."""
    if isinstance(
        error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow | errors.TooManyConnections
    ):
        return True
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
    return isinstance(error, psycopg.InterfaceError)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Is the server running", "LINE", "^"))]
    return "; ".join(kept[:4]).rstrip(".") or type(error).__name__


def check_server(connection: Connection) -> None:
    """Refuse a server that is too old or lacks pgvector 0.8, in one sentence with the mend."""
    if connection.info.server_version < MIN_SERVER_VERSION:
        have = connection.info.server_version // 10000
        raise UnsupportedDatabase(
            f"The database is PostgreSQL {have}; this program needs 16 or newer.", mend="Upgrade the server."
        )
    row = connection.execute(
        "SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone()
    if row is None:
        raise UnsupportedDatabase(
            "The database server does not have the extension pgvector.",
            mend="Install pgvector 0.8 or newer on the server (package postgresql-NN-pgvector).",
        )
    version = row[1] or row[0]
    if tuple(int(x) for x in version.split(".")[:2]) < (0, 8):
        raise UnsupportedDatabase(
            f"The database has pgvector {version}; this program needs 0.8 or newer.",
            mend="Install a newer pgvector, then run ALTER EXTENSION vector UPDATE.",
        )
