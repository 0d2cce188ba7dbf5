"""The corpus of the search bench: judged papers with their real embeddings among many others, and a database filled with it.

The others have real texts (beyond their number: two halves of two abstracts) and embeddings between two real ones of one
collection with a little noise, because points without neighbours make recall meaningless.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
from bench_questions import Remembered, read_questions
from psycopg import sql

from corpus.database import Database
from corpus.encoders import register_encoder
from corpus.halfvec import COPY_HEAD, COPY_TAIL, pack_copy_rows

JUDGED = ("scifact", "cranfield", "medline")
WIDTHS = (3, 40, 500, 5000)
"""Topics of the filters: one paper in so many."""


@dataclass(slots=True)
class Corpus:
    """One passage a row: its paper, title and whole text, and its embedding (float32, unit length, exact in half precision)."""

    papers: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    vectors: np.ndarray = field(default_factory=lambda: np.zeros((0, 768), np.float32))

    def numbers(self) -> np.ndarray:
        """Each row's paper, counted from 0 in the order of the rows."""
        seen: dict[str, int] = {}
        return np.array([seen.setdefault(paper, len(seen)) for paper in self.papers])


@dataclass(slots=True)
class Asked:
    """Judged questions with their embeddings; judgments name papers as the corpus does."""

    embeddings: dict[str, np.ndarray] = field(default_factory=dict)
    judged: dict[str, dict[str, int]] = field(default_factory=dict)


def read_corpus(collections: Path, vectors: Path, n: int, n_per_paper: int) -> Corpus:
    """`n` passages; papers that are not judged have `n_per_paper` of them."""
    found = Corpus()
    judged: list[np.ndarray] = []
    for name in JUDGED:
        kept = np.load(vectors / f"{name}-00000.npz")
        has_words = np.linalg.norm(kept["vector"].astype(np.float32), axis=1) > 0.5
        known = dict(zip(kept["text_sha256"][has_words].tolist(), kept["vector"][has_words], strict=True))
        for key, title, text in _read(collections / name / "corpus.jsonl.gz"):
            whole = "\n\n".join(part for part in (title, text) if part)
            vector = known.pop(sha256(whole.encode()).hexdigest(), None)
            if whole and vector is not None and len(found.papers) < n:
                _add(found, f"{name}:{key}", title, whole)
                judged.append(vector.astype(np.float32))
    n_judged = len(judged)
    for number, (title, text) in enumerate(_others(collections, n - n_judged)):
        _add(found, f"b:{number - number % n_per_paper}", title, f"{title}\n\n{text}")
    others = _between(vectors, n - n_judged)
    found.vectors = np.concatenate([np.stack(judged), others]) if judged else others
    found.vectors /= np.linalg.norm(found.vectors, axis=1, keepdims=True)
    for start in range(0, n, 50_000):
        found.vectors[start : start + 50_000] = found.vectors[start : start + 50_000].astype(np.float16)
    return found


def read_asked(collections: Path, encoder: Remembered) -> Asked:
    """The judged questions of the collections that the corpus holds."""
    found = Asked()
    for name in JUDGED:
        questions, judged, _ = read_questions(collections / name, "dev")
        for key, text in questions.items():
            found.judged[text] = {f"{name}:{paper}": grade for paper, grade in judged[key].items()}
    texts = list(found.judged)
    found.embeddings = dict(zip(texts, encoder.encode(texts), strict=True))
    encoder.save()
    return found


def fill(database: Database, corpus: Corpus, encoder: Remembered) -> dict[str, float]:
    """Write papers, passages and embeddings as ingest and workers would have; return times and sizes.

    A paper's embedding is that of its first passage.
    """
    times: dict[str, float] = {}
    with database.connect() as connection:
        encoder_id = register_encoder(connection, encoder.spec, activate=True).encoder_id
        connection.execute("ALTER TABLE passage DISABLE TRIGGER USER")
        started = time.perf_counter()
        hashes = [sha256(text.encode()).digest() for text in corpus.texts]
        numbers = corpus.numbers()
        first = np.unique(numbers, return_index=True)[1].tolist()
        ordinals = (np.arange(len(numbers)) - np.array(first)[numbers]).tolist()
        with connection.cursor() as cursor:
            with cursor.copy("COPY paper (paper_id, is_prefixed, title, text, text_sha256, year) FROM STDIN") as copy:
                for row in first:
                    year = 1990 + row % 35
                    copy.write_row((corpus.papers[row], True, corpus.titles[row], corpus.texts[row], hashes[row], year))
            cursor.execute("CREATE TEMPORARY TABLE given (paper_id text, ordinal integer, text text, hash bytea)")
            with cursor.copy("COPY given FROM STDIN") as copy:
                for row in zip(corpus.papers, ordinals, corpus.texts, hashes, strict=True):
                    copy.write_row(row)
            cursor.execute(
                "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, section, text, text_sha256)"
                " SELECT paper_pk, 'abstract', ordinal, ordinal * 9000, ordinal * 9000 + length(g.text), 'abstract',"
                " g.text, hash FROM given g JOIN paper USING (paper_id)"
            )
            for width in WIDTHS:
                cursor.execute("INSERT INTO topic (name) VALUES (%s)", [f"one in {width}"])
                cursor.execute(
                    "INSERT INTO paper_topic SELECT paper_pk, topic_id FROM paper, topic WHERE name = %s AND paper_id = ANY (%s)",
                    [f"one in {width}", [corpus.papers[row] for row in first[::width]]],
                )
            times["rows_s"] = time.perf_counter() - started
            for what, rows in (("passage", list(range(len(hashes)))), ("paper", first)):
                index = sql.Identifier(f"{what}_embedding_{encoder_id}_hnsw_idx")
                cursor.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(index))
                started = time.perf_counter()
                cursor.execute("CREATE TEMPORARY TABLE embedding (hash bytea, embedding halfvec(768))")
                with cursor.copy("COPY embedding FROM STDIN (FORMAT binary)") as copy:
                    copy.write(COPY_HEAD)
                    for start in range(0, len(rows), 10_000):
                        part = rows[start : start + 10_000]
                        copy.write(pack_copy_rows([hashes[row] for row in part], corpus.vectors[part]))
                    copy.write(COPY_TAIL)
                cursor.execute(
                    sql.SQL(
                        "INSERT INTO {} (encoder_id, text_sha256, embedding) SELECT %s, hash, embedding FROM embedding"
                    ).format(sql.Identifier(f"{what}_embedding")),
                    [encoder_id],
                )
                cursor.execute("DROP TABLE embedding")
                times[f"copy_{what}_s"] = time.perf_counter() - started
        connection.execute("ALTER TABLE passage ENABLE TRIGGER USER")
    with database.connect(autocommit=True) as connection:
        started = time.perf_counter()
        connection.execute("SELECT encoder_indexes(%s)", [encoder_id])
        times["hnsw_s"] = time.perf_counter() - started
        connection.execute("ANALYZE")
        size = "SELECT pg_relation_size(format('%%s_embedding_%%s_hnsw_idx', %s::text, %s::int)::regclass)"
        for what in ("passage", "paper"):
            row = connection.execute(size, [what, encoder_id]).fetchone()
            times[f"hnsw_{what}_mb"] = row[0] / 2**20 if row else 0
    return times


def _add(corpus: Corpus, paper: str, title: str, text: str) -> None:
    corpus.papers.append(paper)
    corpus.titles.append(title)
    corpus.texts.append(text)


def _read(path: Path) -> Iterator[tuple[str, str, str]]:
    with gzip.open(path, "rt") as lines:
        for row in map(json.loads, lines):
            yield str(row["_id"]), (row.get("title") or "").strip(), (row.get("text") or "").strip()


def _others(collections: Path, n: int) -> Iterator[tuple[str, str]]:
    """(title, abstract) of papers that nobody judged, then mixtures of two of them; no two are equal."""
    real: list[tuple[str, str]] = []
    for name in ("acl-anthology-2016-21", "arxiv-cs-2025-26"):
        for path in sorted((collections / name).glob("corpus*.jsonl.gz")):
            real += [(title, text[:1500]) for _, title, text in _read(path) if title and text]
    real = list(dict.fromkeys(real))
    yield from real[:n]
    rng = random.Random(2)
    for number in range(len(real), n):
        (t1, a), (t2, b) = rng.choice(real), rng.choice(real)
        yield f"{t1} {number}", f"{a[: len(a) // 2]} {b[len(b) // 2 :]} {t2}"


def _between(folder: Path, n: int) -> np.ndarray:
    """Points between two real embeddings of one collection, with noise."""
    parts = [np.load(path)["vector"].astype(np.float32) for path in sorted(folder.glob("*.npz"))]
    parts = [part[np.linalg.norm(part, axis=1) > 0.5] for part in parts]
    rng = np.random.default_rng(1)
    found = np.empty((n, 768), np.float32)
    for start in range(0, n, 20_000):
        part, size = parts[rng.integers(len(parts))], min(20_000, n - start)
        a, b = part[rng.integers(len(part), size=size)], part[rng.integers(len(part), size=size)]
        noise = 0.01 * rng.standard_normal(size=a.shape, dtype=np.float32)
        found[start : start + size] = a + rng.uniform(0.2, 0.6, (size, 1)).astype(np.float32) * b + noise
    return found
