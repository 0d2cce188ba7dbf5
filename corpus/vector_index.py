"""The vector indexes of an encoder: one HNSW index on each of its two leaf partitions, never on the parent.

Building one over many rows costs a fifth of inserting them one by one, so a large import takes the index away and builds
it anew. While there is none, search over the leaf is an exact scan: slower, never wrong.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import Connection, sql
from psycopg.errors import DiskFull, OutOfMemory

from corpus.embedded_host import memory_bytes
from sql.files import queries

Part = Literal["passage", "paper"]
Kind = Literal["halfvec", "binary"]

INSERT_MS, BUILD_MS = 2.3, 0.5
"""Measured on two cores with 60,000 rows and ef_construction 64: a row inserted into an index, and one of a build."""
FEWEST_ROWS = 1000
ROW_BYTES = 2400
"""Memory of one row in a graph that is being built: 768 halves, its neighbours on each layer, what holds them together."""

Progress = Callable[[str, int, int], None]


def is_rebuild_cheaper(n_new: int, n_there: int) -> bool:
    """Whether taking the index away and building it anew is faster than inserting the rows into it."""
    return n_new >= FEWEST_ROWS and n_new * INSERT_MS > (n_new + n_there) * BUILD_MS * 1.2


def list_states(connection: Connection[Any], encoder_id: int) -> dict[Part, bool | None]:
    """Each part's index: True when it is whole, False when a build was broken off, None when there is none."""
    rows = connection.execute(queries("vectors")["index_state"], {"encoder_id": encoder_id}).fetchall()
    return {part: is_valid for part, has_leaf, is_valid in rows if has_leaf}


def drop(connection: Connection[Any], encoder_id: int, part: Part) -> None:
    """Take an index away; nothing when there is none."""
    connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(_index(part, encoder_id)))


def ensure(connection: Connection[Any], encoder_id: int, progress: Progress | None = None) -> list[Part]:
    """Build what is missing, searching and writing allowed meanwhile; returns the parts that were built.

    The connection must be in autocommit. What a broken build left is dropped first; a build that fails leaves nothing.
    Raises psycopg's errors.
    """
    assert connection.autocommit
    built: list[Part] = []
    for part, is_valid in list_states(connection, encoder_id).items():
        if is_valid:
            continue
        if is_valid is False:
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(_index(part, encoder_id)))
        _build(connection, encoder_id, part, progress)
        built.append(part)
    return built


def _build(connection: Connection[Any], encoder_id: int, part: Part, progress: Progress | None) -> None:
    memory_kb = _memory_for(connection, f"{part}_embedding_{encoder_id}")
    workers = 0 if not _has_shared_memory(connection, memory_kb) else None
    try:
        with _settings(connection, workers, memory_kb):
            _create(connection, encoder_id, part, progress)
    except (DiskFull, OutOfMemory):
        # A parallel build keeps its graph in shared memory, of which a container may have 64 MB.
        _drop_broken(connection, encoder_id, part)
        if workers == 0:
            raise
        with _settings(connection, 0, memory_kb):
            _create(connection, encoder_id, part, progress)
    except psycopg.Error:
        _drop_broken(connection, encoder_id, part)
        raise


def _create(connection: Connection[Any], encoder_id: int, part: Part, progress: Progress | None) -> None:
    if progress:
        progress(f"building the index of {part} embeddings", 0, 0)
    _create_as(connection, encoder_id, part, get_kind(connection), _index(part, encoder_id))


def _create_as(connection: Connection[Any], encoder_id: int, part: Part, kind: str, name: sql.Identifier) -> None:
    """Passages alone may have the binary index: papers are few."""
    is_binary = kind == "binary" and part == "passage"
    key = sql.SQL(
        "(binary_quantize(embedding)::bit(768)) bit_hamming_ops" if is_binary else "embedding halfvec_cosine_ops"
    )
    connection.execute(
        sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} USING hnsw ({}) WITH (ef_construction = 128)").format(
            name, sql.Identifier(f"{part}_embedding_{encoder_id}"), key
        )
    )


def get_kind(connection: Connection[Any]) -> str:
    """How the passages' index compares: `halfvec`, or `binary` with exact rescoring (a fifth of the memory)."""
    row = connection.execute(queries("vectors")["index_kind"]).fetchone()
    return row[0] if row else "halfvec"


def switch_kind(connection: Connection[Any], encoder_id: int, kind: Kind) -> bool:
    """Build the passages' index of the other kind beside the one that serves, then put it in its place; false when it was so.

    Search goes on meanwhile: servers see the setting within seconds, and compare exactly where no index fits. The
    connection must be in autocommit.
    """
    assert connection.autocommit
    if get_kind(connection) == kind and list_states(connection, encoder_id).get("passage"):
        return False
    fresh = sql.Identifier(f"passage_embedding_{encoder_id}_hnsw_new")
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(fresh))
    try:
        memory_kb = _memory_for(connection, f"passage_embedding_{encoder_id}")
        workers = 0 if not _has_shared_memory(connection, memory_kb) else None
        with _settings(connection, workers, memory_kb):
            _create_as(connection, encoder_id, "passage", kind, fresh)
    except psycopg.Error:
        with contextlib.suppress(psycopg.Error):
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(fresh))
        raise
    with connection.transaction():
        drop(connection, encoder_id, "passage")
        connection.execute(sql.SQL("ALTER INDEX {} RENAME TO {}").format(fresh, _index("passage", encoder_id)))
        connection.execute(queries("vectors")["set_index_kind"], {"kind": kind})
    return True


def _drop_broken(connection: Connection[Any], encoder_id: int, part: Part) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(_index(part, encoder_id)))


@contextlib.contextmanager
def _settings(connection: Connection[Any], workers: int | None, memory_kb: int | None) -> Iterator[None]:
    """The session's settings for one build."""
    wanted = {"max_parallel_maintenance_workers": workers, "maintenance_work_mem": memory_kb}
    chosen = {name: str(value) for name, value in wanted.items() if value is not None}
    for name, value in chosen.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, value])
    try:
        yield
    finally:
        for name in chosen if not connection.closed else ():
            connection.execute(sql.SQL("RESET {}").format(sql.Identifier(name)))


def _is_here(connection: Connection[Any]) -> bool:
    """Whether the server runs on this machine; of another one we learn its limits by trying."""
    return not connection.info.hostaddr and (connection.info.host or "").startswith("/")


def _memory_for(connection: Connection[Any], leaf: str) -> int | None:
    """Memory (kB) that the graph of a leaf is built in, where the server's own setting is too small for it.

    A graph that outgrows it is finished row by row on disk, many times slower. At most as much as the shared buffers, which
    were chosen from the memory of the server's machine, and a quarter of what this process may use.
    """
    if not _is_here(connection):
        return None
    row = connection.execute(queries("vectors")["index_memory"], {"leaf": leaf}).fetchone()
    assert row is not None
    return build_memory_kb(n_rows=row[0], setting=row[1], shared_buffers=row[2], memory=memory_bytes())


def build_memory_kb(*, n_rows: int, setting: int, shared_buffers: int, memory: int) -> int | None:
    """What a build of `n_rows` gets in kB, from figures in bytes; None where the setting is enough, or no more can be had."""
    most = min(shared_buffers, memory // 4)
    wanted = min(n_rows * ROW_BYTES, most)
    return wanted // 1024 if wanted > setting else None


def _has_shared_memory(connection: Connection[Any], memory_kb: int | None) -> bool:
    """Whether /dev/shm holds what a parallel build takes."""
    shared = Path("/dev/shm")
    if not _is_here(connection) or not shared.is_dir():
        return True
    row = connection.execute("SELECT pg_size_bytes(current_setting('maintenance_work_mem'))").fetchone()
    needed = max(memory_kb * 1024 if memory_kb is not None else 0, row[0] if row else 0)
    return shutil.disk_usage(shared).free > needed + (64 << 20)


def _index(part: Part, encoder_id: int) -> sql.Identifier:
    return sql.Identifier(f"{part}_embedding_{encoder_id}_hnsw_idx")
