"""Generations of embeddings: a second encoder is filled in the background while the first serves, then takes over.

Embeddings of two encoders can never meet: the encoder is part of their key, each has leaf tables of its own, and a list
is asked of one leaf. A generation that is only being filled carries no vector index; activation builds it at once, in
parallel, waits until the search servers have loaded the encoder, and switches in one statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import class_row

from corpus import vector_index
from corpus.encoders import EncoderRow
from corpus.errors import EncoderRefused, UsageError
from corpus.jobs import PRIORITY_BACKLOG, PRIORITY_FILL
from sql.files import queries

Progress = Callable[[str, int, int], None]
_LOOK_S = 0.5


def _silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


def list_encoders(connection: Connection[Any]) -> list[EncoderRow]:
    """Every encoder of the database, the one that serves first."""
    with connection.cursor(row_factory=class_row(EncoderRow)) as cursor:
        return cursor.execute(queries("generations")["list"]).fetchall()


def get_encoder(connection: Connection[Any], which: str | int) -> EncoderRow:
    """The encoder with this number, or this name when only one has it. Raises UsageError."""
    rows = list_encoders(connection)
    found = [row for row in rows if str(row.encoder_id) == str(which)] or [
        row for row in rows if row.name == str(which)
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{row.encoder_id} ({row.name})" for row in rows) or "none"
    what = f"{len(found)} encoders are called" if found else "There is no encoder"
    raise UsageError(f"{what} {which!r}.", mend=f"Name one by its number; there are: {known}.")


@dataclass(frozen=True, slots=True)
class Filling:
    """How far a generation is."""

    n_papers: int
    n_passages: int
    n_missing_papers: int
    n_missing_passages: int
    n_failed: int
    has_index: bool

    @property
    def is_whole(self) -> bool:
        """Whether every paper and passage has its embedding."""
        return self.n_missing_papers == self.n_missing_passages == 0


def filling_of(connection: Connection[Any], encoder_id: int) -> Filling:
    """Counted now."""
    named, values = queries("generations"), {"encoder_id": encoder_id}
    there = connection.execute(named["count_embedded"], values).fetchone()
    missing = connection.execute(named["count_missing"], values).fetchone()
    assert there is not None
    assert missing is not None
    states = vector_index.list_states(connection, encoder_id)
    return Filling(there[0], there[1], missing[0], missing[1], there[2], bool(states) and all(states.values()))


def fill(connection: Connection[Any], encoder_id: int) -> int:
    """Queue everything that has no embedding under the encoder, behind all other work; returns the number of jobs.

    New papers are queued for it from now on, too. Safe again and again.
    """
    with connection.transaction():
        connection.execute("SELECT encoder_partitions(%s)", [encoder_id])
        connection.execute(queries("generations")["set_state"], {"state": "filling", "encoder_id": encoder_id})
        row = connection.execute("SELECT job_enqueue_missing(%s, %s)", [encoder_id, PRIORITY_FILL]).fetchone()
    assert row is not None
    return row[0]


def activate(
    connection: Connection[Any],
    encoder_id: int,
    *,
    is_forced: bool = False,
    wait_s: float = 60.0,
    progress: Progress = _silent,
) -> list[str]:
    """Let the encoder serve; returns the live search servers that had not loaded it when the patience was over.

    They go on with the old encoder's embeddings, which are kept, until they have. The connection must be in autocommit.
    Raises EncoderRefused while embeddings are missing (unless forced) and psycopg's errors when the index cannot be
    built: then nothing was switched and no invalid index is left.
    """
    assert connection.autocommit
    filling = filling_of(connection, encoder_id)
    if not filling.is_whole and not is_forced:
        raise EncoderRefused(
            f"Encoder {encoder_id} lacks {filling.n_missing_papers} papers and {filling.n_missing_passages} passages.",
            mend=f"Run `brain encoder fill {encoder_id}` and let the workers end, or add --force.",
        )
    vector_index.ensure(connection, encoder_id, progress)
    named, values = queries("generations"), {"encoder_id": encoder_id}
    connection.execute(named["announce"], values)
    old = [
        row.encoder_id for row in list_encoders(connection) if row.state == "active" and row.encoder_id != encoder_id
    ]
    try:
        late = _wait_for_servers(connection, encoder_id, wait_s, progress)
        connection.execute("SELECT encoder_activate(%s)", [encoder_id])  # takes the announcement back, too
    except BaseException:
        connection.execute(named["unannounce"])
        raise
    connection.execute("SELECT job_enqueue_missing(%s, %s)", [encoder_id, PRIORITY_BACKLOG])
    for each in old:
        connection.execute(named["drop_waiting"], {"encoder_id": each})
    return late


def _wait_for_servers(connection: Connection[Any], encoder_id: int, wait_s: float, progress: Progress) -> list[str]:
    began = time.monotonic()
    while True:
        rows = connection.execute(queries("generations")["servers_without"], {"encoder_id": encoder_id}).fetchall()
        late = [row[0] for row in rows]
        if not late or time.monotonic() - began >= wait_s:
            return late
        progress(f"waiting for {len(late)} search servers to load the encoder", 0, 0)
        time.sleep(_LOOK_S)


def retire(connection: Connection[Any], encoder_id: int) -> int:
    """Free the space of an encoder that does not serve; returns the bytes. Its row is kept, and can be filled again.

    The connection must be in autocommit. Raises EncoderRefused for the encoder that serves.
    """
    assert connection.autocommit
    row = get_encoder(connection, encoder_id)
    if row.state == "active":
        raise EncoderRefused(f"Encoder {encoder_id} ({row.name}) serves.", mend="Activate another one first.")
    named, values = queries("generations"), {"encoder_id": encoder_id}
    connection.execute(named["set_state"], {"state": "retired", "encoder_id": encoder_id})
    connection.execute(named["drop_jobs"], values)
    connection.execute(named["drop_imported"], values)
    freed = 0
    for parent in ("passage_embedding", "paper_embedding"):
        leaf = f"{parent}_{encoder_id}"
        size = connection.execute("SELECT pg_total_relation_size(to_regclass(%s))", [leaf]).fetchone()
        if size is None or size[0] is None:
            continue
        freed += size[0]
        names = {"parent": sql.Identifier(parent), "leaf": sql.Identifier(leaf)}
        attached = connection.execute("SELECT FROM pg_inherits WHERE inhrelid = to_regclass(%s)", [leaf]).fetchone()
        if attached is not None:
            _detach(connection, names)
        connection.execute(sql.SQL("DROP TABLE {leaf}").format(**names))
    return freed


def _detach(connection: Connection[Any], names: dict[str, sql.Identifier]) -> None:
    """Take the leaf off while others read the parent; a detachment that was broken off is finished."""
    from psycopg.errors import ObjectNotInPrerequisiteState

    try:
        connection.execute(sql.SQL("ALTER TABLE {parent} DETACH PARTITION {leaf} CONCURRENTLY").format(**names))
    except ObjectNotInPrerequisiteState:
        connection.execute(sql.SQL("ALTER TABLE {parent} DETACH PARTITION {leaf} FINALIZE").format(**names))
