#!/usr/bin/env python3
"""Peers of the search bench, each with hybrid search over the same texts and embeddings; imported only when asked for.

bench_peers.py NAME FOLDER QUESTIONS.npz      answers over HTTP from what `build` wrote to the folder, as a user's own
                                              few lines of FastAPI would; prints its address
"""

from __future__ import annotations

import os
import socket
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np

os.environ.setdefault("LANCE_LOG", "error")  # LanceDB warns at each question


class Peer(ABC):
    """One system: built once in a folder, then opened from it."""

    @classmethod
    @abstractmethod
    def build(cls, texts: list[str], vectors: np.ndarray, folder: Path) -> Self:
        """Load all rows and make the indexes; the ids are the rows' numbers."""

    @classmethod
    @abstractmethod
    def open(cls, folder: Path) -> Self:
        """Open what was built."""

    @abstractmethod
    def ask(self, question: str, embedding: np.ndarray) -> list[int]:
        """Return ten rows, best first."""

    @abstractmethod
    def close(self) -> None:
        """Let another process open the folder."""


class LanceDb(Peer):
    """LanceDB with its own full-text index, hybrid search and RRF."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @classmethod
    def build(cls, texts: list[str], vectors: np.ndarray, folder: Path) -> Self:
        """One table, an IVF_HNSW_SQ index and a full-text index."""
        import lancedb
        import pyarrow as pa

        embeddings = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        rows = pa.table({"row": pa.array(range(len(texts))), "text": pa.array(texts), "vector": embeddings})
        table = lancedb.connect(str(folder)).create_table("papers", rows)
        table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")
        table.create_fts_index("text")
        return cls(table)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The same table."""
        import lancedb

        return cls(lancedb.connect(str(folder)).open_table("papers"))

    def close(self) -> None:
        """Nothing is locked."""

    def ask(self, question: str, embedding: np.ndarray) -> list[int]:
        """Its hybrid query."""
        query = self._table.search(query_type="hybrid").vector(embedding).text(question)
        return [row["row"] for row in query.select(["row", "text"]).limit(10).to_list()]


class Qdrant(Peer):
    """Qdrant's local mode for the vectors beside bm25s for the words, fused by RRF: what many put together themselves."""

    def __init__(self, client: Any, words: Any) -> None:
        self._client, self._words = client, words

    @classmethod
    def build(cls, texts: list[str], vectors: np.ndarray, folder: Path) -> Self:
        """A collection in a folder, and an index of bm25s beside it."""
        import bm25s
        from qdrant_client import QdrantClient, models

        client = QdrantClient(path=str(folder / "vectors"))
        size = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
        client.create_collection("papers", vectors_config=size)
        for start in range(0, len(vectors), 2000):
            part = vectors[start : start + 2000]
            client.upsert("papers", models.Batch(ids=list(range(start, start + len(part))), vectors=part.tolist()))
        words = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        words.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
        words.save(str(folder / "words"))
        return cls(client, words)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The same collection and index."""
        import bm25s
        from qdrant_client import QdrantClient

        return cls(QdrantClient(path=str(folder / "vectors")), bm25s.BM25.load(str(folder / "words")))

    def close(self) -> None:
        """It locks its folder."""
        self._client.close()

    def ask(self, question: str, embedding: np.ndarray) -> list[int]:
        """Twenty of each, by RRF."""
        import bm25s

        near = [p.id for p in self._client.query_points("papers", query=embedding.tolist(), limit=20).points]
        tokens = bm25s.tokenize(question, stopwords="en", show_progress=False)
        by_words = self._words.retrieve(tokens, k=20, show_progress=False)[0][0].tolist()
        scores: dict[int, float] = {}
        for ranking in (near, by_words):
            for rank, row in enumerate(ranking, 1):
                scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
        return sorted(scores, key=lambda row: -scores[row])[:10]


PEERS: dict[str, type[Peer]] = {"lancedb": LanceDb, "qdrant": Qdrant}


def main(name: str, folder: str, questions: str) -> None:
    """Answer over HTTP until killed."""
    import uvicorn
    from fastapi import FastAPI

    peer = PEERS[name].open(Path(folder))
    kept = np.load(questions)
    embeddings = dict(zip(kept["text"].tolist(), kept["vector"], strict=True))
    app = FastAPI()

    @app.get("/search")
    def search(q: str) -> dict[str, Any]:
        return {"hits": peer.ask(q, embeddings[q])}

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:4])
