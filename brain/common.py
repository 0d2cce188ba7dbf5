"""What the commands share: the database that they are given, JSON out, progress for people."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, Self

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from corpus.database import Database
    from corpus.settings import Settings

Db = Annotated[
    str | None,
    Parameter(
        name="--db", help="Database: embedded:DIR or a libpq URL; else BRAIN_DB, else the embedded one in BRAIN_HOME."
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON for programs.")]


def get_settings() -> Settings:
    """The settings of this process."""
    from corpus.settings import Settings

    return Settings()


def get_database(
    db: str | None, settings: Settings | None = None, *, name: str = "brain", any_schema: bool = False
) -> Database:
    """The database of a command, its embedded server started if it is one; how long that takes is told.

    Raises SchemaMismatch where its schema is not the one that this program knows, unless the command bears any.
    """
    from corpus.database import Database

    settings = settings or get_settings()
    database = Database.named(db, settings, application_name=name)
    database.ensure_started(say)
    if not any_schema:
        from corpus.schema import check_schema

        with database.connect() as connection:
            check_schema(connection)
    return database


def say(text: str) -> None:
    """A word for the person who waits; never on stdout, where programs read."""
    print(text, file=sys.stderr, flush=True)


def make_console() -> Console:
    """A console for stdout; where it is no terminal, lines are long enough for programs like less and grep."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160)


def print_json(value: Any) -> None:
    """Strict JSON on stdout."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))


class Bars:
    """Progress bars on a terminal; elsewhere a line at the end of each stage that took longer than two seconds."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._task: Any = None
        self._what = ""
        self._n = 0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bars = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=Console(stderr=True),
            )  # fmt: skip
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_stage()
        if self._bars is not None:
            self._bars.stop()

    def begin(self, what: str, total: int | None) -> None:
        """A stage begins."""
        self._end_stage()
        self._what, self._n, self._began = what, 0, time.monotonic()
        if self._bars is not None:
            self._task = self._bars.add_task(what, total=total, note="")

    def step(self, n: int = 1, note: str = "") -> None:
        """So much more of it is done."""
        self._n += n
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=n, note=note[:60])

    def _end_stage(self) -> None:
        if self._bars is None and self._what and time.monotonic() - self._began > 2:
            say(f"{self._what}: {self._n} in {time.monotonic() - self._began:.1f} s")
        self._what = ""
