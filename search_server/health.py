"""How the server and its corpus are: counts, encoder, word index, settings, nodes; and the server's own row of `node`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from dataclasses import asdict
from importlib import metadata
from typing import Any

from psycopg import AsyncConnection, errors
from psycopg.rows import dict_row

from corpus.database import translated
from search_server.service import SearchService
from search_server.vectors import ScanSettings
from sql.files import queries

_COUNTS_FOR_S = 5.0
_BEAT_S = 5.0


def version() -> str:
    """Version of the package."""
    try:
        return metadata.version("research-brain")
    except metadata.PackageNotFoundError:
        return "0"


class Health:
    """Collects what `/health` shows; counts are kept for a few seconds."""

    def __init__(self, service: SearchService) -> None:
        self._service = service
        self._counts: dict[str, Any] = {}
        self._counted_at = 0.0
        self._started = time.time()
        self.name = f"{socket.gethostname()}:{os.getpid()}"

    async def counts(self) -> dict[str, Any]:
        """Papers, full texts, passages, topics, embeddings."""
        if time.monotonic() - self._counted_at > _COUNTS_FOR_S or not self._counts:
            row = self._service.state.encoder_row
            async with self._service.pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(queries("browse")["counts"], {"encoder": row.encoder_id if row else 0})
                found = await cursor.fetchone() or {}
            found["embeddings"] = {
                "passages": found.pop("passage_embeddings", 0), "papers": found.pop("paper_embeddings", 0),
            }  # fmt: skip
            self._counts, self._counted_at = found, time.monotonic()
        return self._counts

    async def report(self) -> dict[str, Any]:
        """The body of `/health`. Raises the database's errors."""
        service = self._service
        counts = await self.counts()
        scan = service.state.scan
        async with service.pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            ef_search = await session_ef_search(connection, scan)
            await cursor.execute(queries("browse")["nodes"])
            nodes = await cursor.fetchall()
            await cursor.execute(queries("farm")["find_selftest"])
            tested = await cursor.fetchone()
            await cursor.execute("SELECT pg_is_in_recovery() AS is_standby")
            where = await cursor.fetchone() or {}
            where |= {"host": connection.info.host, "port": connection.info.port}
        index = service.words.state
        return {
            "status": "ok", "version": version(), "started_at": self._started, "counts": counts, **counts,
            "database": where, "encoder": service.encoder.state, "ef_search": ef_search,
            "search_settings": {**asdict(scan), "per_list": service.state.tuned.per_list, "fusion": service.state.tuned.fusion,
                                "tuned": service.state.tuned.is_stored},
            "bm25": {"state": index.state, "n_passages": index.n_passages, "lag_s": _round(index.lag_s),
                     "lag_passages": max(0, counts.get("passages", 0) - index.n_passages), "n_rebuilds": index.n_rebuilds,
                     "why": index.why, "build_done": index.build_done, "build_total": index.build_total},
            "audit": service.audit.report(),
            "load": {"running": service.gate.running, "waiting": service.gate.waiting, "refused": service.gate.n_refused,
                     "encoded": service.encoder.n_encoded, "encoded_from_cache": service.encoder.n_cached},
            "selftest": tested["value"] if tested else None,
            "nodes": [{**node, "last_seen_at": node["last_seen_at"].isoformat()} for node in nodes],
        }  # fmt: skip

    async def beat(self) -> None:
        """Write the server's row of `node` every few seconds until cancelled; then say that it stopped."""
        try:
            while True:
                with contextlib.suppress(Exception):
                    await self._write_node()
                await asyncio.sleep(_BEAT_S)
        finally:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(2):
                    await self._write("node_stopped", {"name": self.name, "pid": os.getpid()})

    async def _write_node(self) -> None:
        service = self._service
        index, encoder = service.words.state, service.encoder
        values = {
            "name": self.name, "host": socket.gethostname(), "pid": os.getpid(), "version": version(),
            "encoder_id": encoder.ready.encoder_id if encoder.ready else None, "state": index.state,
            "device": encoder.state["device"], "backend": encoder.state["backend"],
            "detail": json.dumps({
                "index": asdict(index), "index_lag_s": _round(index.lag_s), "encoder": encoder.state["state"],
                "encoders": encoder.loaded,
            }),
        }  # fmt: skip
        with translated(service.database):
            await self._write("node_upsert", values)

    async def _write(self, name: str, values: dict[str, Any]) -> None:
        """Write this server's row; where a standby answers the questions, to the primary."""
        service, statement = self._service, queries("browse")[name]
        try:
            async with service.pool.connection(timeout=1) as connection:
                await connection.execute(statement, values)
        except errors.ReadOnlySqlTransaction:
            async with await AsyncConnection.connect(service.database.write_conninfo) as connection:
                await connection.execute(statement, values)


async def session_ef_search(connection: Any, scan: ScanSettings) -> int:
    """What a searching session says ef_search is, after it was set as searches set it."""
    values = {
        "ef_search": str(scan.ef_search),
        "max_scan_tuples": str(scan.max_scan_tuples),
        "timeout_ms": str(scan.timeout_ms),
    }
    async with connection.transaction():
        await connection.execute(queries("search")["session_settings"], values)
        cursor = await connection.execute("SELECT current_setting('hnsw.ef_search')::integer")
        row = await cursor.fetchone()
    return int(row[0])


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
