"""Checks of the database, the store and this machine, each with its mend: what `brain doctor` runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
from psycopg import Connection

from corpus.errors import BrainError
from corpus.schema import check_schema, functions_digest
from corpus.settings import Settings
from ingest.store import Store
from sql import files

SQL = files.queries("checkup")
Level = Literal["ok", "warning", "fault"]
BYTES_PER_PASSAGE = 2000  # of an HNSW index over halfvec(768), measured: 118 MB for 60,000 rows
_LOW_DISK = 2 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `mend` is empty where all is well."""

    check: str
    level: Level
    what: str
    mend: str = ""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def run_checks(connection: Connection[Any], store: Store, settings: Settings) -> Iterator[Finding]:
    """Run every check; one that itself fails is a finding and stops no other. The connection is in autocommit."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("schema", lambda: _schema(connection)),
        ("encoder", lambda: _encoder(connection)),
        ("vector index", lambda: _vector_index(connection)),
        ("memory", lambda: _memory(connection)),
        ("index builds", lambda: _shared_memory(connection)),
        ("embeddings", lambda: _missing(connection)),
        ("failures", lambda: _failures(connection)),
        ("nodes", lambda: _nodes(connection)),
        ("store", lambda: _store(connection, store)),
        ("disk", lambda: _disk(settings)),
        ("contact", lambda: _contact(settings)),
    ]
    for name, check in checks:
        try:
            yield check()
        except (BrainError, OSError) as error:
            yield Finding(name, "fault", str(error))


def mend(connection: Connection[Any]) -> int:
    """Queue every paper and passage that has neither an embedding nor a job; returns the number of jobs."""
    row = connection.execute(SQL["enqueue_missing"]).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def _one(connection: Connection[Any], query: str) -> tuple[Any, ...]:
    row = connection.execute(SQL[query]).fetchone()
    assert row is not None
    return row


def _schema(connection: Connection[Any]) -> Finding:
    check_schema(connection)
    stored = connection.execute("SELECT value #>> '{}' FROM setting WHERE name = 'functions'").fetchone()
    if stored is None or stored[0] != functions_digest():
        return Finding("schema", "warning", "the database's functions are of another version", "Run `brain init`.")
    return Finding("schema", "ok", "the schema is this program's")


def _encoder(connection: Connection[Any]) -> Finding:
    row = connection.execute("SELECT name FROM encoder WHERE state = 'active'").fetchone()
    if row is None:
        return Finding("encoder", "fault", "no encoder serves", "Run `brain init`.")
    return Finding("encoder", "ok", f"{row[0]} serves")


def _vector_index(connection: Connection[Any]) -> Finding:
    rows = connection.execute(SQL["vector_indexes"]).fetchall()
    bad = [name for name, is_valid in rows if not is_valid]
    if bad:
        return Finding(
            "vector index",
            "fault",
            f"{', '.join(bad)} was left half built",
            f"Run: REINDEX INDEX CONCURRENTLY {bad[0]}",
        )
    if len(rows) < 2:
        return Finding(
            "vector index",
            "fault",
            "the active encoder lacks a vector index: every question reads every row",
            "Run `brain init`.",
        )
    return Finding("vector index", "ok", "both vector indexes are there and valid")


def _memory(connection: Connection[Any]) -> Finding:
    n_passages, shared = _one(connection, "memory")
    total = psutil.virtual_memory().total
    n_fit = int(total * 0.6) // BYTES_PER_PASSAGE
    what = f"{n_passages:,} passages have embeddings; about {n_fit:,} fit into this machine's memory (shared_buffers {shared})"
    if n_passages > n_fit:
        return Finding(
            "memory", "warning", what, "Give the database more memory, or see docs/scale.md for quantised indexes."
        )
    return Finding("memory", "ok", what)


def _shared_memory(connection: Connection[Any]) -> Finding:
    maintenance_mb = _one(connection, "maintenance_mb")[0]
    shm = Path("/dev/shm")
    if shm.exists() and shutil.disk_usage(shm).total < maintenance_mb << 20:
        return Finding(
            "index builds", "warning", f"/dev/shm is smaller than maintenance_work_mem ({maintenance_mb} MB): indexes are built without helpers",
            "Start the container with --shm-size, or lower maintenance_work_mem.",
        )  # fmt: skip
    return Finding("index builds", "ok", f"parallel builds have their {maintenance_mb} MB")


def _missing(connection: Connection[Any]) -> Finding:
    n_papers, n_passages = _one(connection, "count_missing")
    if n_papers or n_passages:
        return Finding(
            "embeddings", "warning", f"{n_papers} papers and {n_passages} passages have neither an embedding nor a job",
            "Run `brain doctor --mend`: it queues them.",
        )  # fmt: skip
    return Finding("embeddings", "ok", "every text has its embedding or waits for it")


def _failures(connection: Connection[Any]) -> Finding:
    n = _one(connection, "count_failures")[0]
    if n:
        return Finding(
            "failures", "warning", f"{n} jobs failed", "See `brain failures`; send them back with --retry-all."
        )
    return Finding("failures", "ok", "no job failed")


def _nodes(connection: Connection[Any]) -> Finding:
    n_waiting, n_alive, silent = _one(connection, "nodes")
    if silent:
        return Finding(
            "nodes",
            "warning",
            f"silent without having said goodbye: {', '.join(silent)}",
            "Look at that machine; its work went back to the queue.",
        )
    if n_waiting and not n_alive:
        return Finding("nodes", "warning", f"{n_waiting} jobs wait and no worker runs", "Start one: embed-worker")
    return Finding("nodes", "ok", f"{n_alive} workers alive, {n_waiting} jobs wait")


def _store(connection: Connection[Any], store: Store) -> Finding:
    rows = {row[0]: row[1] for row in connection.execute(SQL["documents"])}
    kept = set(store.iter_sha256())
    lost = [name or digest[:12] for digest, name in rows.items() if digest not in kept]
    if lost:
        shown = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
        return Finding(
            "store",
            "fault",
            f"{len(lost)} of {len(rows)} documents lack their file: {shown}",
            "Fetch them again, or point BRAIN_STORE to the right place.",
        )
    strays = len(kept - set(rows))
    if strays:
        return Finding(
            "store",
            "warning",
            f"{strays} files of the store belong to no document",
            "They are kept; a rebuild from seed files may need them.",
        )
    return Finding("store", "ok", f"all {len(rows)} documents have their file")


def _disk(settings: Settings) -> Finding:
    place = next(p for p in (settings.home_dir, *settings.home_dir.parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < _LOW_DISK:
        return Finding(
            "disk", "warning", f"{free / 2**30:.1f} GB are free under {place}", "Make room before the database stops."
        )
    if not os.access(place, os.W_OK):
        return Finding("disk", "fault", f"{place} cannot be written", "Choose another BRAIN_HOME.")
    return Finding("disk", "ok", f"{free / 2**30:.0f} GB are free under {place}")


def _contact(settings: Settings) -> Finding:
    if not settings.contact_email:
        return Finding(
            "contact",
            "warning",
            "open sources are asked without a contact address",
            "Set BRAIN_CONTACT_EMAIL: they serve those better who say who they are.",
        )
    return Finding("contact", "ok", settings.contact_email)
