#!/usr/bin/env python3
"""Measure the worker's path: claim, read, encode, write, complete. Tables on the screen, `--json` for programs.

    scripts/bench_farm.py path [--texts 40000] [--workers 4] [--chars 1200]
    scripts/bench_farm.py claims [--jobs 1000000] [--claims 100000]
    scripts/bench_farm.py wake [--papers 200]

Each brings an embedded server of its own in a temporary folder (`--db URL` takes another) and the hashing encoder with a
generation that is being filled, so that it is the path that is measured and neither a model nor a vector index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil
import psycopg

from corpus import jobs
from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.encoders import register_encoder
from corpus.farm import status
from corpus.jobs import Cursors
from corpus.schema import migrate
from encoders.load import resolve_spec


@contextmanager
def bench_database(url: str | None) -> Iterator[Database]:
    """A migrated database with the hashing encoder and no vector index."""
    folder = Path(tempfile.mkdtemp(prefix="brain-bench-"))
    folder.chmod(0o755)
    server = EmbeddedServer(folder / "db")
    try:
        if url is None:
            server.ensure_running()
        database = Database(DatabaseUrl(conninfo=url or server.conninfo), application_name="bench")
        migrate(database)
        with database.connect() as connection:
            encoder = register_encoder(connection, resolve_spec("hashing"), activate=True)
            for part in ("passage", "paper"):
                connection.execute(f"DROP INDEX IF EXISTS {part}_embedding_{encoder.encoder_id}_hnsw_idx")
        yield database
    finally:
        if url is None:
            server.stop(immediate=True)
        shutil.rmtree(folder, ignore_errors=True)


def make_texts(n: int, n_chars: int) -> list[str]:
    """Texts of made-up words, like passages in length."""
    chance = random.Random(7)
    letters = "aaabcdeeeefghiiijklmnnoooprrsssttuvw"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 11))) for _ in range(20_000)]
    texts = []
    for i in range(n):
        text = f"{i} " + " ".join(chance.choices(words, k=n_chars // 7 + 1))
        texts.append(text[: max(20, int(n_chars * chance.uniform(0.6, 1.0)))])
    return texts


def add_texts(database: Database, texts: list[str], priority: int = 100) -> None:
    """Passages of one document, queued."""
    with database.connect() as connection:
        for start in range(0, len(texts), 6400):
            connection.execute(
                "WITH p AS (INSERT INTO paper (paper_id) VALUES ('file:' || gen_random_uuid()) RETURNING paper_pk), "
                "d AS (INSERT INTO document (paper_pk, sha256, n_bytes, is_cut) SELECT paper_pk, sha256(gen_random_uuid()::text::bytea), 1, true "
                "FROM p RETURNING document_id, paper_pk) "
                "INSERT INTO passage (paper_pk, document_id, part, ordinal, char_start, char_end, text, text_sha256) "
                "SELECT paper_pk, document_id, 'document', n, n * 10000, n * 10000 + 1, t, sha256(convert_to(t, 'UTF8')) "
                "FROM d, unnest(%s::text[]) WITH ORDINALITY AS x (t, n)",
                [texts[start : start + 6400]],
            )
        connection.execute(
            "SELECT job_enqueue_passages(1, ARRAY(SELECT passage_id FROM passage p WHERE NOT EXISTS "
            "(SELECT FROM passage_embedding e WHERE e.text_sha256 = p.text_sha256)), %s)",
            [priority],
        )


def start_workers(database: Database, n: int) -> list[subprocess.Popen[bytes]]:
    """Workers in processes of their own, ready to claim."""
    words = [sys.executable, "-m", "embed_worker.cli", "--db", database.url.conninfo or ""]
    env = {**os.environ, "BRAIN_LOG_LEVEL": "warning", "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    workers = [subprocess.Popen([*words, "--name", f"bench-{i}"], env=env) for i in range(n)]
    wait_for(database, "SELECT count(*) >= %s FROM node WHERE state = 'idle' AND encoder_id IS NOT NULL", [n])
    return workers


def wait_for(database: Database, query: str, values: list[object], timeout: float = 600) -> None:
    """Until the query says true."""
    end = time.monotonic() + timeout
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        while not connection.execute(query, values).fetchone()[0]:
            if time.monotonic() > end:
                sys.exit("the bench waited too long")
            time.sleep(0.02)


def server_cpu(database: Database) -> float:
    """Seconds that the server's processes have computed; 0 for a server on another machine."""
    with psycopg.connect(database.conninfo) as connection:
        try:
            postmaster = psutil.Process(connection.info.backend_pid).parent()
        except psutil.Error:
            return 0.0
    total = 0.0
    for process in [postmaster, *postmaster.children()] if postmaster else []:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += (
            times.user + times.system + (times.children_user + times.children_system if process == postmaster else 0)
        )
    return total


def stop(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait()


def bench_path(args: argparse.Namespace) -> dict[str, object]:
    """Passages a second through the whole path."""
    with bench_database(args.db) as database:
        add_texts(database, make_texts(args.texts, args.chars))
        with database.connect() as connection:
            connection.execute("UPDATE job SET run_after = 'infinity'")
        workers = start_workers(database, args.workers)
        try:
            spent = [sum(psutil.Process(w.pid).cpu_times()[:2]) for w in workers]
            server_spent = server_cpu(database)
            began = time.perf_counter()
            with database.connect() as connection:
                connection.execute("UPDATE job SET run_after = '-infinity'")
                connection.execute("NOTIFY job_embed_passages")
            wait_for(database, "SELECT NOT EXISTS (SELECT FROM job)", [])
            took = time.perf_counter() - began
            server_cpu_s = server_cpu(database) - server_spent
            cpu = sum(sum(psutil.Process(w.pid).cpu_times()[:2]) - s for w, s in zip(workers, spent, strict=True))
        finally:
            stop(workers)
        with database.connect() as connection:
            n = connection.execute("SELECT count(*) FROM passage_embedding").fetchone()[0]
    return {
        "texts": n, "workers": args.workers, "seconds": round(took, 2), "texts_a_second": round(n / took),
        "worker_cpu_us_a_text": round(cpu / n * 1e6), "server_cpu_us_a_text": round(server_cpu_s / n * 1e6), "load_of_the_machine": os.getloadavg()[0],
    }  # fmt: skip


def bench_claims(args: argparse.Namespace) -> dict[str, object]:
    """Claims one by one from a long queue while an old snapshot keeps every dead row."""
    with bench_database(args.db) as database:
        with database.connect() as connection:
            connection.execute("ALTER TABLE job DISABLE TRIGGER USER")
            connection.execute(
                "INSERT INTO job (kind, encoder_id, item_ids) SELECT 'embed_passages', 1, ARRAY[g] FROM generate_series(1, %s) g",
                [args.jobs],
            )
            connection.execute("ALTER TABLE job ENABLE TRIGGER USER")
        with psycopg.connect(database.conninfo) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT count(*) FROM job")
            times, took = asyncio.run(_claim_all(database, args.claims))
            began = time.perf_counter()
            with database.connect() as connection:
                status(connection)
            status_s = time.perf_counter() - began
    times.sort()
    at = lambda share: round(times[min(len(times) - 1, int(len(times) * share))] * 1000, 2)  # noqa: E731
    return {
        "pending": args.jobs, "claims": len(times), "p50_ms": at(0.5), "p99_ms": at(0.99), "p999_ms": at(0.999), "max_ms": at(1),
        "claims_a_second": round(len(times) / took), "snapshot_s": round(took), "status_s": round(status_s, 2), "load_of_the_machine": os.getloadavg()[0],
    }  # fmt: skip


async def _claim_all(database: Database, n: int) -> tuple[list[float], float]:
    times: list[float] = []
    cursors, looked_at, look_s = Cursors(), 0.0, 0.0
    async with await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True) as connection:
        began = time.perf_counter()
        for i in range(n):
            is_full = time.perf_counter() - looked_at > max(10, 100 * look_s)  # as the worker does
            at = time.perf_counter()
            got = await jobs.claim(
                connection, n_wanted={"chunk": 8, "embed_papers": 1, "embed_passages": 1}, encoder_id=1, node_id=None,
                lease_s=30, cursors=cursors, is_full=is_full,
            )  # fmt: skip
            times.append(time.perf_counter() - at)
            if is_full:
                looked_at, look_s = time.perf_counter(), times[-1]
            await connection.execute(
                "SELECT job_complete(%s::bigint[], %s::uuid[])", [[j.job_id for j in got], [j.lease_token for j in got]]
            )
            if i % 1000 == 999:
                await jobs.sweep(connection)
        return times, time.perf_counter() - began


def bench_wake(args: argparse.Namespace) -> dict[str, object]:
    """From the commit that inserts a new paper's passages to their embedding, one paper at a time, idle farm."""
    times: list[float] = []
    with bench_database(args.db) as database:
        workers = start_workers(database, args.workers)
        try:
            for i in range(args.papers):
                texts = [f"{text} {i}" for text in make_texts(20, args.chars)]
                add_texts(database, texts, priority=10)
                at = time.perf_counter()
                wait_for(database, "SELECT NOT EXISTS (SELECT FROM job)", [])
                times.append(time.perf_counter() - at)
        finally:
            stop(workers)
    times.sort()
    return {
        "papers": len(times), "p50_s": round(times[len(times) // 2], 3), "p95_s": round(times[int(len(times) * 0.95)], 3),
        "max_s": round(times[-1], 3), "load_of_the_machine": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("path", "claims", "wake"))
    parser.add_argument("--db", help="libpq URL of an empty database; an embedded server of the bench's own without it")
    parser.add_argument("--texts", type=int, default=40_000)
    parser.add_argument("--chars", type=int, default=1200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--claims", type=int, default=100_000)
    parser.add_argument("--papers", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = {"path": bench_path, "claims": bench_claims, "wake": bench_wake}[args.what](args)
    if args.json:
        print(json.dumps(found))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("measure", "value", title=f"bench {args.what}")
    for name, value in found.items():
        table.add_row(name, str(value))
    Console().print(table)


if __name__ == "__main__":
    main()
