"""Peers of the search bench, each with hybrid search over the same texts and embeddings; imported only when asked for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np


class LanceDb:
    """LanceDB with its own full-text index, hybrid search and RRF."""

    def __init__(self, texts: list[tuple[str, str]], vectors: np.ndarray, folder: Path) -> None:
        import lancedb

        started = time.perf_counter()
        rows = [
            {"id": str(n), "text": f"{title}\n\n{text}", "vector": vector}
            for n, ((title, text), vector) in enumerate(zip(texts, vectors, strict=True))
        ]
        self._table = lancedb.connect(str(folder)).create_table("papers", rows)
        self._table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")
        self._table.create_fts_index("text")
        self.build_s = time.perf_counter() - started

    async def ask(self, question: str, embedding: np.ndarray) -> list[str]:
        """Ten ids."""
        found = self._table.search(query_type="hybrid").vector(embedding).text(question).limit(10).to_list()
        return [row["id"] for row in found]


class Qdrant:
    """Qdrant's local mode for the vectors beside bm25s for the words, fused by RRF: what many put together themselves."""

    def __init__(self, texts: list[tuple[str, str]], vectors: np.ndarray, folder: Path) -> None:
        import bm25s
        from qdrant_client import QdrantClient, models

        started = time.perf_counter()
        self._client: Any = QdrantClient(path=str(folder))
        self._client.create_collection(
            "papers", vectors_config=models.VectorParams(size=768, distance=models.Distance.COSINE)
        )
        for start in range(0, len(vectors), 2000):
            part = vectors[start : start + 2000]
            self._client.upsert(
                "papers", models.Batch(ids=list(range(start, start + len(part))), vectors=part.tolist())
            )
        tokens = bm25s.tokenize([f"{title} {text}" for title, text in texts], stopwords="en", show_progress=False)
        self._words = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        self._words.index(tokens, show_progress=False)
        self.build_s = time.perf_counter() - started

    async def ask(self, question: str, embedding: np.ndarray) -> list[str]:
        """Ten ids."""
        import bm25s

        near = [p.id for p in self._client.query_points("papers", query=embedding.tolist(), limit=20).points]
        tokens = bm25s.tokenize(question, stopwords="en", show_progress=False)
        by_words = self._words.retrieve(tokens, k=20, show_progress=False)[0][0].tolist()
        scores: dict[int, float] = {}
        for ranking in (near, by_words):
            for rank, number in enumerate(ranking, 1):
                scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
        return [str(n) for n in sorted(scores, key=lambda n: -scores[n])[:10]]


PEERS: dict[str, Any] = {"lancedb": LanceDb, "qdrant": Qdrant}
