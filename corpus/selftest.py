"""The self-test's bookkeeping, and the parts that look at a database: its shape and its rights.

A part is one thing that intake or search needs. It is run for real; what it raises is its finding, and stops no other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import Connection, conninfo, sql

from corpus.database import Database, translate
from corpus.dburl import DatabaseUrl
from corpus.errors import BrainError, DatabaseError
from corpus.schema import migrate
from sql.files import queries


class PartFailed(BrainError):
    """A part of the intake does not do what it is for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How one part went; `what` and `mend` are empty where it works."""

    part: str
    is_ok: bool
    took_ms: int
    what: str = ""
    mend: str = ""


@dataclass(slots=True)
class Report:
    """Findings in the order in which the parts ran."""

    findings: list[Finding] = field(default_factory=list)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def is_ok(self) -> bool:
        """Whether every part works."""
        return all(finding.is_ok for finding in self.findings)

    def run(self, part: str, work: Callable[[], Any]) -> Any:
        """Run one part; its result, or None when it failed."""
        began = time.perf_counter()
        what, mend, result = "", "", None
        try:
            result = work()
        except BrainError as error:
            what, mend = error.what, error.mend
        except psycopg.Error as error:
            known = translate(error, Database(DatabaseUrl(conninfo="")))
            what, mend = known.what, known.mend
        except Exception as error:  # whatever it is, it is this part's finding
            what = f"{type(error).__name__}: {error}"
        self.findings.append(Finding(part, not what, round((time.perf_counter() - began) * 1000), what, mend))
        return result

    def to_json(self) -> dict[str, Any]:
        """For programs, and for the setting that `/health` and `brain status` show."""
        return {
            "at": self.at.isoformat(timespec="seconds"), "is_ok": self.is_ok, "n_parts": len(self.findings),
            "took_s": round(sum(f.took_ms for f in self.findings) / 1000, 1),
            "failed": [asdict(f) for f in self.findings if not f.is_ok], "parts": [asdict(f) for f in self.findings],
        }  # fmt: skip


@contextlib.contextmanager
def scratch_database(database: Database, name: str) -> Iterator[Database]:
    """A database of the current schema beside the real one, gone at the end. Raises PartFailed without the right."""
    admin = conninfo.make_conninfo(database.conninfo, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        for (left,) in connection.execute(queries("selftest")["old_scratch"]).fetchall():
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(left)))
        try:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege as error:
            raise PartFailed(
                "The login may not create the scratch database of the self-test.",
                mend="Run it as the owner, or let the owner say ALTER ROLE … CREATEDB.",
            ) from error
    try:
        url = DatabaseUrl(conninfo=conninfo.make_conninfo(database.conninfo, dbname=name))
        scratch = Database(url, application_name="brain selftest")
        migrate(scratch)
        yield scratch
    finally:
        with contextlib.suppress(psycopg.Error), psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def shape(connection: Connection[Any]) -> dict[str, str]:
    """Tables, columns, constraints, indexes, triggers and functions by name, each with what must be equal."""
    return dict(connection.execute(queries("selftest")["shape"]).fetchall())


def check_shape(real: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raise PartFailed, naming what the real database lacks or has otherwise. What it has besides is its owner's."""
    gone = {name.removeprefix("table ") for name in wanted if name.startswith("table ") and name not in real}
    # Of a table that is gone the table is told, not each of its parts.
    missing = [f"table {table}" for table in sorted(gone)]
    missing += [name for name in wanted if name not in real and _table_of(name) not in gone]
    other = [name for name in wanted if name in real and real[name] != wanted[name]]
    if missing or other:
        said = [f"{name} is missing" for name in missing] + [f"{name} is another one" for name in other]
        rest = f" and {len(said) - 8} more" if len(said) > 8 else ""
        raise PartFailed(
            f"The database is not what this program's schema says: {', '.join(said[:8])}{rest}.",
            mend="Run `brain init` for functions and triggers; for tables and columns `brain rebuild`, or undo the change.",
        )


def _table_of(name: str) -> str:
    what, _, rest = name.partition(" ")
    if what == "table":
        return rest
    return rest.partition(".")[0] if what == "column" else rest.rpartition(" of ")[2]


def check_rights(connection: Connection[Any]) -> None:
    """Raise PartFailed, naming the rights that this login lacks."""
    lacking = [row[0] for row in connection.execute(queries("selftest")["rights"]).fetchall()]
    if lacking:
        raise PartFailed(
            f"This login lacks {', '.join(lacking[:8])}"
            + (f" and {len(lacking) - 8} more." if len(lacking) > 8 else "."),
            mend="Connect as the owner of the database; logins for workers and search servers come from sql/roles.sql.",
        )


def save(connection: Connection[Any], report: Report) -> None:
    """Keep the report where `/health` and `brain status` find it; a database that cannot hold it keeps the old one."""
    import json

    said = {name: value for name, value in report.to_json().items() if name != "parts"}
    with contextlib.suppress(psycopg.Error, DatabaseError):
        connection.execute(queries("selftest")["save"], {"value": json.dumps(said)})
