#!/usr/bin/env python3
"""Slices a second of this project's queue beside procrastinate's and pgqueuer's, in one run on one server.

    pip install --target /tmp/rivals procrastinate pgqueuer
    PYTHONPATH=/tmp/rivals scripts/bench_rivals.py [--slices 400] [--chars 300] [--json]

Each queue gets the same slices of 64 passages, and does the same with each: read the texts, embed them with the hashing
encoder, write the embeddings. One process each, ten slices at once for the others (ours reads and writes slices together).
A queue that is not installed is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg
from bench_farm import add_texts, bench_database, make_texts, start_workers, stop, wait_for
from psycopg_pool import AsyncConnectionPool

from corpus.database import Database
from corpus.halfvec import fetch_halfvec_oid_async, pack_array
from encoders.hashing import HashingEncoder

READ = "SELECT text_sha256, text FROM passage WHERE passage_id = ANY (%s)"
WRITE = (
    "INSERT INTO passage_embedding (encoder_id, text_sha256, embedding) SELECT 1, h, e "
    "FROM unnest(%s::bytea[], %s::halfvec[]) AS x (h, e) ORDER BY h ON CONFLICT DO NOTHING"
)


class Doing:
    """What every queue does with a slice."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool
        self._encoder = HashingEncoder()
        self._oid = 0

    async def do(self, ids: list[int]) -> None:
        async with self._pool.connection() as connection:
            if not self._oid:
                self._oid = await fetch_halfvec_oid_async(connection)
            async with connection.cursor(binary=True) as cursor:
                rows = await (await cursor.execute(READ, [ids])).fetchall()
            await connection.commit()
        found = await asyncio.to_thread(self._encoder.encode, [text for _, text in rows])
        async with self._pool.connection() as connection:
            await connection.execute(WRITE, [[h for h, _ in rows], pack_array(found, self._oid)])


def ours(database: Database, slices: list[list[int]]) -> float:
    """Our worker, in a process of its own."""
    workers = start_workers(database, 1)
    try:
        began = time.perf_counter()
        with database.connect() as connection:
            connection.execute("SELECT job_enqueue_passages(1, %s, 100)", [[i for each in slices for i in each]])
        wait_for(database, "SELECT NOT EXISTS (SELECT FROM job)", [])
        return time.perf_counter() - began
    finally:
        stop(workers)


async def procrastinate(database: Database, slices: list[list[int]]) -> float:
    """procrastinate's worker, in this process."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=database.conninfo, max_size=12))
    async with AsyncConnectionPool(database.conninfo, min_size=4, max_size=12) as pool, app.open_async():
        doing = Doing(pool)

        @app.task(name="embed")
        async def embed(ids: list[int]) -> None:
            await doing.do(ids)

        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        await app.configure_task("embed").batch_defer_async(*[{"ids": ids} for ids in slices])
        await app.run_worker_async(wait=False, concurrency=10, install_signal_handlers=False, listen_notify=False)
        return time.perf_counter() - began


async def pgqueuer(database: Database, slices: list[list[int]]) -> float:
    """pgqueuer's manager, in this process."""
    from pgqueuer import PgQueuer
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    async with AsyncConnectionPool(database.conninfo, min_size=4, max_size=12) as pool:
        doing = Doing(pool)
        async with await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True) as connection:
            driver = PsycopgDriver(connection)
            await Queries(driver).install()
            queue = PgQueuer(driver)

            @queue.entrypoint("embed")
            async def embed(job: Any) -> None:
                await doing.do(json.loads(job.payload))

            began = time.perf_counter()
            payloads = [json.dumps(ids).encode() for ids in slices]
            await Queries(driver).enqueue(["embed"] * len(slices), payloads, [0] * len(slices))
            await queue.run(batch_size=10, mode=QueueExecutionMode.drain)
            return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=400)
    parser.add_argument("--chars", type=int, default=300)
    parser.add_argument("--db")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found: dict[str, Any] = {"slices": args.slices, "load_of_the_machine": os.getloadavg()[0]}
    with bench_database(args.db) as database:
        add_texts(database, make_texts(args.slices * 64, args.chars))
        with psycopg.connect(database.conninfo, autocommit=True) as connection:
            connection.execute("TRUNCATE job")
            ids = [row[0] for row in connection.execute("SELECT passage_id FROM passage ORDER BY passage_id")]
            slices = [ids[at : at + 64] for at in range(0, len(ids), 64)]
            for name in ("ours", "procrastinate", "pgqueuer"):
                connection.execute("TRUNCATE passage_embedding")
                try:
                    took = ours(database, slices) if name == "ours" else asyncio.run(globals()[name](database, slices))
                except ImportError:
                    found[name] = "not installed"
                    continue
                (n,) = connection.execute("SELECT count(*) FROM passage_embedding").fetchone() or (0,)
                assert n == len(ids), f"{name} left {len(ids) - n} texts without an embedding"
                found[name] = {"slices_a_second": round(len(slices) / took, 1), "texts_a_second": round(n / took)}
    if args.json:
        print(json.dumps(found))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("queue", "slices a second", "texts a second", title=f"{args.slices} slices of 64 texts")
    for name in ("ours", "procrastinate", "pgqueuer"):
        value = found[name]
        table.add_row(name, *(map(str, value.values()) if isinstance(value, dict) else (value, "")))
    Console().print(table)


if __name__ == "__main__":
    main()
