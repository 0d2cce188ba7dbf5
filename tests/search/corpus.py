"""Small corpora for the search tests: written as ingest writes them, embedded as a worker embeds them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from corpus.database import Database
from corpus.settings import Settings
from encoders.hashing import HashingEncoder
from ingest.papers import write_papers
from ingest.records import record_from_row
from search_server.params import SearchParams, parse_search
from search_server.service import SearchService


def load(database: Database, rows: Sequence[dict[str, Any]], prefix: str = "t") -> None:
    """Load JSONL rows as `brain ingest --jsonl --prefix` does."""
    with database.connect() as connection:
        write_papers(connection, [record_from_row(row, prefix=prefix) for row in rows])


def delete(database: Database, *paper_ids: str) -> None:
    with database.connect() as connection:
        connection.execute("DELETE FROM paper WHERE paper_id = ANY (%s)", [list(paper_ids)])


def embed(database: Database) -> None:
    """Embed all that waits, as a worker would, with the hashing encoder."""
    encoder = HashingEncoder()
    with database.connect() as connection:
        for what, source in (("passage", "passage"), ("paper", "paper")):
            rows = connection.execute(
                f"SELECT DISTINCT ON (text_sha256) text_sha256, text FROM {source} s WHERE text_sha256 IS NOT NULL "
                f"AND NOT EXISTS (SELECT FROM {what}_embedding e WHERE e.encoder_id = 1 AND e.text_sha256 = s.text_sha256)"
            ).fetchall()
            vectors = encoder.encode([text for _, text in rows])
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {what}_embedding (encoder_id, text_sha256, embedding) VALUES (1, %s, %s::text::halfvec)",
                    [(sha, literal(vector)) for (sha, _), vector in zip(rows, vectors, strict=True)],
                )
        connection.execute("DELETE FROM job")


def literal(vector: np.ndarray) -> str:
    return "[" + ",".join(f"{x:.6g}" for x in vector.tolist()) + "]"


def settings_at(home: Any) -> Settings:
    return Settings(home=home)


async def ready(service: SearchService) -> SearchService:
    await service.wait_ready(timedelta(seconds=30))
    await service.state.refresh()
    return service


async def in_step(service: SearchService) -> None:
    """Wait until the word index holds what the database holds now."""
    import asyncio

    async with service.pool.connection() as connection:
        cursor = await connection.execute("SELECT coalesce(max(change_id), 0) FROM change")
        row = await cursor.fetchone()
    for _ in range(400):
        seen = service.words.change_id
        if service.words.reader is not None and (seen or 0) >= row[0]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the word index did not come into step")


def params(q: str, **more: Any) -> SearchParams:
    items = [("q", q)]
    for name, value in more.items():
        items += [(name, str(v)) for v in (value if isinstance(value, list | tuple) else [value])]
    return parse_search(items)


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["paper_id"] for hit in answer["hits"]]


WORDS = {"weights": "passage_bm25:1", "k": 100, "per_list": 200}
