"""Measures what docs/scale.md says: import, index builds, sizes, and recall of the halfvec and the binary index.

    .venv/bin/python scripts/bench_scale.py [--rows 60000] [--vectors ../shared/vectors]

The rows are real embeddings of abstracts, and more between neighbours of one collection, so that they lie as real ones do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from corpus import vector_index
from corpus.database import Database
from corpus.encoders import register_encoder
from corpus.schema import migrate
from corpus.shards import write_shard
from corpus.vectors import import_vectors
from encoders.load import resolve_spec

N_QUERIES, K = 100, 20


def real_like(folder: Path, n: int) -> np.ndarray:
    """`n` unit vectors: all that the shards hold, then points between two of one shard, with a little noise."""
    parts = [np.load(path)["vector"].astype(np.float32) for path in sorted(folder.glob("*.npz"))]
    parts = [part[np.isfinite(part).all(axis=1) & (np.linalg.norm(part, axis=1) > 0.5)] for part in parts]
    chance = np.random.default_rng(1)
    found = np.concatenate(parts)[:n]
    while len(found) < n:
        part = parts[chance.integers(len(parts))]
        a, b = part[chance.integers(len(part), size=2000)], part[chance.integers(len(part), size=2000)]
        mixed = (
            a
            + chance.uniform(0.2, 0.6, (2000, 1)).astype(np.float32) * b
            + 0.01 * chance.normal(size=a.shape).astype(np.float32)
        )
        found = np.concatenate([found, mixed])[:n]
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def main() -> None:
    """Measure in an embedded server of its own, and print one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument(
        "--vectors", type=Path, default=Path(__file__).resolve().parent.parent.parent / "shared" / "vectors"
    )
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="brain-scale-", dir="/var/tmp"))
    folder.chmod(0o755)
    database = Database.at(f"embedded:{folder / 'db'}", folder)
    try:
        print(json.dumps(measure(database, folder, real_like(wanted.vectors, wanted.rows + N_QUERIES)), indent=1))
    finally:
        if database.embedded is not None:
            database.embedded.stop(immediate=True)
        shutil.rmtree(folder, ignore_errors=True)


def measure(database: Database, folder: Path, vectors: np.ndarray) -> dict[str, object]:
    """Import, build both indexes, ask both."""
    migrate(database)
    rows, queries = vectors[:-N_QUERIES], vectors[-N_QUERIES:]
    result: dict[str, object] = {"rows": len(rows)}
    with database.connect(autocommit=True) as connection:
        spec = resolve_spec("all-mpnet-base-v2")
        with connection.transaction():
            encoder = register_encoder(connection, spec, activate=True)
        connection.execute("INSERT INTO paper (paper_id) VALUES ('bench:1')")
        connection.execute(
            "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT 1, 'abstract', n, n, n + 1, n::text, sha256(n::text::bytea) FROM generate_series(1, %s) n", [len(rows)]
        )  # fmt: skip
        hashes = [
            row[0] for row in connection.execute("SELECT text_sha256 FROM passage ORDER BY passage_id").fetchall()
        ]
        shards = []
        for at in range(0, len(rows), 20_000):
            shards.append(folder / f"{at}.npz")
            write_shard(shards[-1], spec.identity(), hashes[at : at + 20_000], rows[at : at + 20_000])
        vector_index.drop(connection, encoder.encoder_id, "passage")
        began = time.monotonic()
        import_vectors(connection, shards, is_index_built=False)
        result["import_s"] = round(time.monotonic() - began, 1)
        connection.execute("CHECKPOINT")
        began = time.monotonic()
        vector_index.ensure(connection, encoder.encoder_id)
        result["halfvec_build_s"] = round(time.monotonic() - began, 1)
        leaf = f"passage_embedding_{encoder.encoder_id}"
        began = time.monotonic()
        connection.execute(
            f"CREATE INDEX bench_binary ON {leaf} USING hnsw ((binary_quantize(embedding)::bit(768)) bit_hamming_ops)"
            " WITH (ef_construction = 128)"
        )
        result["binary_build_s"] = round(time.monotonic() - began, 1)
        for name in ("bench_binary", f"{leaf}_hnsw_idx", leaf):
            size = connection.execute("SELECT pg_relation_size(%s::regclass)", [name]).fetchone()
            assert size is not None
            result[f"{name}_mb"] = round(size[0] / 2**20, 1)
        exact = np.argsort(-(rows.astype(np.float16).astype(np.float32) @ queries.T), axis=0)[:K].T
        known = {digest: n for n, digest in enumerate(hashes)}
        near = f"SELECT text_sha256 FROM {leaf} ORDER BY embedding <=> %(q)s::halfvec LIMIT 20"
        for ef_search in (40, 100, 200):
            result[f"halfvec_ef{ef_search}"] = ask(connection, near, queries, exact, known, ef_search)
        for n in (100, 200, 400, 800):
            rescored = (
                f"SELECT text_sha256 FROM (SELECT text_sha256, embedding FROM {leaf} ORDER BY binary_quantize(embedding)::bit(768) "
                f"<~> binary_quantize(%(q)s::halfvec)::bit(768) LIMIT {n}) c ORDER BY embedding <=> %(q)s::halfvec LIMIT 20"
            )
            result[f"binary_rescored_{n}"] = ask(connection, rescored, queries, exact, known, n)
    return result


def ask(
    connection, query: str, queries: np.ndarray, exact: np.ndarray, known: dict[bytes, int], ef_search: int
) -> dict[str, float]:
    """Recall@20 and milliseconds a question."""
    found, began = 0, 0.0
    with connection.transaction():
        connection.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('enable_seqscan', 'off', true)", [str(ef_search)]
        )
        for round_number in range(2):
            began, found = time.monotonic(), 0
            for q, wanted in zip(queries, exact, strict=True):
                text = "[" + ",".join(f"{x:.5g}" for x in q.tolist()) + "]"
                rows = connection.execute(query, {"q": text}).fetchall()
                found += len({known[bytes(row[0])] for row in rows} & set(wanted.tolist()))
            del round_number
    return {"recall": round(found / exact.size, 4), "ms": round((time.monotonic() - began) * 1000 / len(queries), 2)}


if __name__ == "__main__":
    main()
