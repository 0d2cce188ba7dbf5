#!/usr/bin/env python3
"""How fast answers come, and how many of the true neighbours: this project and peers, on the same data, in one run.

    scripts/bench search [--passages 10000,60000] [--collections DIR] [--vectors DIR] [--peers lancedb,qdrant] [--json]

Texts are real abstracts (beyond their number: two halves of two abstracts); embeddings are real ones, and beyond them
points between two of one collection with a little noise, because points without neighbours make recall meaningless.
Encoding is excluded: questions come with their embedding. All in process; --http also asks a server over HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from bench_peers import PEERS
from psycopg import sql

from corpus.database import Database
from corpus.encoders import register_encoder
from corpus.halfvec import COPY_HEAD, COPY_TAIL, pack_copy_rows
from corpus.schema import migrate
from corpus.settings import Settings
from encoders.hashing import HASHING, HashingEncoder
from search_server.params import SearchParams
from search_server.service import SearchService
from search_server.tune import tune

ROOT = Path(__file__).resolve().parent.parent
WIDTHS = (1, 3, 40, 500, 5000)
Ask = Callable[[str, np.ndarray], Awaitable[list[str]]]


def read_texts(folder: Path, n: int) -> list[tuple[str, str]]:
    """(title, abstract) of real papers, and mixtures of two beyond their number."""
    found: list[tuple[str, str]] = []
    for path in sorted(folder.glob("*/corpus*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                if row.get("title") and row.get("text"):
                    found.append((row["title"], row["text"][:1500]))
                if len(found) >= n:
                    return found
    rng = random.Random(2)
    real = len(found)
    while len(found) < n:
        (t1, a), (t2, b) = found[rng.randrange(real)], found[rng.randrange(real)]
        found.append((f"{t1} {len(found)}", f"{a[: len(a) // 2]} {b[len(b) // 2 :]} {t2}"))
    return found


def read_vectors(folder: Path, n: int) -> np.ndarray:
    """Unit vectors: real ones, then points between two of one collection with noise."""
    parts = [np.load(path)["vector"].astype(np.float32) for path in sorted(folder.glob("*.npz"))]
    parts = [part[np.linalg.norm(part, axis=1) > 0.5] for part in parts]
    rng = np.random.default_rng(1)
    found = [np.concatenate(parts)[:n]]
    while sum(map(len, found)) < n:
        part = parts[rng.integers(len(parts))]
        a, b = part[rng.integers(len(part), size=20_000)], part[rng.integers(len(part), size=20_000)]
        noise = 0.01 * rng.normal(size=a.shape).astype(np.float32)
        found.append(a + rng.uniform(0.2, 0.6, (len(a), 1)).astype(np.float32) * b + noise)
    whole = np.concatenate(found)[:n]
    return whole / np.linalg.norm(whole, axis=1, keepdims=True)


class Given(HashingEncoder):
    """Gives questions the embedding that they came with."""

    def __init__(self, known: dict[str, np.ndarray]) -> None:
        super().__init__()
        self._known = known

    def encode(self, texts: Any, *, kind: Any = "query") -> np.ndarray:  # noqa: ARG002
        return np.stack([self._known[t] if t in self._known else super(Given, self).encode([t])[0] for t in texts])


def fill(database: Database, texts: list[tuple[str, str]], vectors: np.ndarray, n_per_paper: int) -> dict[str, float]:
    """Write papers, passages and embeddings as ingest and workers would have; return times and sizes.

    A paper's embedding is that of its first passage.
    """
    times: dict[str, float] = {}
    with database.connect() as connection:
        connection.execute("ALTER TABLE passage DISABLE TRIGGER USER")
        started = time.perf_counter()
        with connection.cursor() as cursor:
            whole = [f"{title}\n\n{abstract}" for title, abstract in texts]
            hashes = [sha256(text.encode()).digest() for text in whole]
            with cursor.copy("COPY paper (paper_id, title, text, text_sha256, year) FROM STDIN") as copy:
                for n in range(0, len(texts), n_per_paper):
                    copy.write_row((f"b:{n}", texts[n][0], whole[n], hashes[n], 1990 + n % 35))
            cursor.execute("CREATE TEMPORARY TABLE given (paper_id text, ordinal integer, text text, hash bytea)")
            with cursor.copy("COPY given FROM STDIN") as copy:
                for n, (text, digest) in enumerate(zip(whole, hashes, strict=True)):
                    copy.write_row((f"b:{n - n % n_per_paper}", n % n_per_paper, text, digest))
            cursor.execute(
                "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, section, text, text_sha256) "
                "SELECT paper_pk, 'abstract', ordinal, ordinal * 9000, ordinal * 9000 + length(g.text), 'abstract', g.text, hash FROM given g JOIN paper USING (paper_id)"
            )
            times["rows_s"] = time.perf_counter() - started
            first = {digest: n for n, digest in reversed(list(enumerate(hashes)))}
            of_papers = {digest: n for digest, n in first.items() if n % n_per_paper == 0}
            for what, places in (("passage", first), ("paper", of_papers)):
                cursor.execute(
                    sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(f"{what}_embedding_1_hnsw_idx"))
                )
                started = time.perf_counter()
                keys, rows = list(places), list(places.values())
                cursor.execute("CREATE TEMPORARY TABLE embedding (hash bytea, embedding halfvec(768))")
                with cursor.copy("COPY embedding FROM STDIN (FORMAT binary)") as copy:
                    copy.write(COPY_HEAD)
                    for start in range(0, len(keys), 10_000):
                        copy.write(pack_copy_rows(keys[start : start + 10_000], vectors[rows[start : start + 10_000]]))
                    copy.write(COPY_TAIL)
                cursor.execute(
                    f"INSERT INTO {what}_embedding (encoder_id, text_sha256, embedding) SELECT 1, hash, embedding FROM embedding"
                )
                cursor.execute("DROP TABLE embedding")
                times[f"copy_{what}_s"] = time.perf_counter() - started
            started = time.perf_counter()
            cursor.execute("SELECT encoder_indexes(1)")
            times["hnsw_both_s"] = time.perf_counter() - started
        connection.execute("ALTER TABLE passage ENABLE TRIGGER USER")
    with database.connect(autocommit=True) as connection:
        connection.execute("ANALYZE")
        row = connection.execute("SELECT pg_relation_size('passage_embedding_1_hnsw_idx')").fetchone()
        times["hnsw_mb"] = row[0] / 2**20 if row else 0
    return times


async def measure(ask: Ask, questions: list[str], known: dict[str, np.ndarray]) -> dict[str, float]:
    """Latency one at a time, then questions a second at 1, 4 and 16 clients."""
    for question in questions[:20]:
        await ask(question, known[question])
    times = []
    for question in questions:
        started = time.perf_counter()
        await ask(question, known[question])
        times.append((time.perf_counter() - started) * 1000)
    found = {f"p{p}": float(np.percentile(times, p)) for p in (50, 95, 99)}
    for clients in (1, 4, 16):
        left = iter(questions * 2)
        started = time.perf_counter()

        async def client(questions_left: Any = left) -> int:
            n = 0
            for question in questions_left:
                await ask(question, known[question])
                n += 1
            return n

        n = sum(await asyncio.gather(*(client() for _ in range(clients))))
        found[f"qps_{clients}"] = n / (time.perf_counter() - started)
    return found


async def recall(service: SearchService, vectors: np.ndarray, n_questions: int = 40) -> dict[str, float]:
    """Recall@20 of the passage list against exact search, per filter width, with the settings that serve."""
    from dataclasses import replace

    from search_server.tune import _run  # the same measurement as `brain tune`

    found: dict[str, float] = {}
    asked = [vectors[i] for i in np.random.default_rng(9).integers(0, len(vectors), n_questions)]
    for width in WIDTHS:
        n_left = len(vectors) // width
        if n_left < 1:
            continue
        scan = service.state.scan
        truth, _ = await _run(service.pool, "exact", asked, 1, width, scan)
        how = "exact" if width > 1 and n_left <= scan.exact_below else "nearest"
        mine, ms = await _run(service.pool, how, asked, 1, width, replace(scan))
        found[f"1 in {width}"] = float(
            np.mean([len(set(m) & set(t)) / max(1, len(t)) for m, t in zip(mine, truth, strict=True)])
        )
        found[f"1 in {width} ms"] = ms
    return found


def own_folder() -> Path:
    """A folder that the embedded server's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="brain-bench-", dir="/var/tmp"))
    folder.chmod(0o755)
    return folder


async def bench(n: int, given: argparse.Namespace) -> dict[str, Any]:
    """One size: build, measure, and the peers on the same data."""
    texts, vectors = read_texts(given.collections, n), read_vectors(given.vectors, n)
    home = own_folder()
    database = Database.at(f"embedded:{home / 'db'}", home, application_name="bench")
    rng = np.random.default_rng(3)
    chosen = rng.integers(0, n, given.questions)
    known: dict[str, np.ndarray] = {}
    for i in chosen:
        near = vectors[i] + 0.02 * rng.normal(size=768).astype(np.float32)
        known[texts[i][0]] = near / np.linalg.norm(near)
    questions = list(known)
    out: dict[str, Any] = {"passages": n}
    try:
        migrate(database)
        with database.connect() as connection:
            register_encoder(connection, HASHING, activate=True)
        out["build"] = fill(database, texts, vectors, given.per_paper)
        out["tuned"] = {
            k: v for k, v in (await tune(database, n_questions=30)).items() if k in {"ef_search", "exact_below"}
        }
        settings = Settings(home=home)
        async with SearchService.open(database, settings, load=lambda *_, **__: Given(known)) as service:
            started = time.perf_counter()
            await service.wait_ready(timedelta(hours=1))
            await service.state.refresh()
            out["build"]["words_s"] = time.perf_counter() - started
            took: list[dict[str, float]] = []

            async def ask(question: str, _: np.ndarray) -> list[str]:
                answer = await service.search(SearchParams(q=question, k=10))
                took.append(answer["took_ms"])
                return [hit["paper_id"] for hit in answer["hits"]]

            out["ours"] = await measure(ask, questions, known)
            out["stages_p50_ms"] = {stage: float(np.median([t[stage] for t in took])) for stage in took[0]}
            out["recall"] = await recall(service, vectors)
            out["rss_mb"] = psutil.Process().memory_info().rss / 2**20
        for name in given.peers:
            peer = PEERS[name](texts, vectors, home / name)
            out[name] = {"build_s": peer.build_s, **await measure(peer.ask, questions, known)}
    finally:
        if database.embedded is not None:
            database.embedded.stop(immediate=True)
        shutil.rmtree(home, ignore_errors=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", default="10000,60000")
    parser.add_argument("--collections", type=Path, default=ROOT.parent / "shared" / "collections")
    parser.add_argument("--vectors", type=Path, default=ROOT.parent / "shared" / "vectors")
    parser.add_argument("--peers", default="")
    parser.add_argument("--per-paper", type=int, default=1, help="passages of each paper")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.peers = [name for name in given.peers.split(",") if name]
    results = [asyncio.run(bench(int(n), given)) for n in given.passages.split(",")]
    if given.json:
        print(json.dumps(results, indent=1))
        return
    for result in results:
        print(f"{result['passages']:,} passages, tuned {result['tuned']}, memory {result['rss_mb']:.0f} MB")
        print("  built: " + "  ".join(f"{k} {v:.1f}" for k, v in result["build"].items()))
        print("  stages, p50 ms: " + "  ".join(f"{k} {v:.1f}" for k, v in result["stages_p50_ms"].items()))
        print("  recall@20: " + "  ".join(f"{k} {v:.3f}" for k, v in result["recall"].items()))
        for name in ["ours", *given.peers]:
            print(f"  {name:8s} " + "  ".join(f"{k} {v:.1f}" for k, v in result[name].items()))


if __name__ == "__main__":
    main()
