"""Two encoders on the same questions, by exact search: which finds what is relevant, and how far they agree."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.encoders import EncoderRow
from corpus.errors import InputError
from sql.files import queries

K = 10


@dataclass(frozen=True, slots=True)
class Question:
    """A query and what is relevant to it: gain by paper_id."""

    text: str
    relevant: Mapping[str, int]


def sample_titles(connection: Connection[Any], n: int) -> list[Question]:
    """Titles of a fixed sample of papers, each to find its own paper."""
    rows = connection.execute(queries("generations")["titles"], {"n": n}).fetchall()
    return [Question(title, {paper_id: 1}) for paper_id, title in rows]


def read_collection(folder: Path, prefix: str, qrels: str) -> list[Question]:
    """The judged queries of a test collection. Raises InputError when it is none."""
    try:
        lines = (folder / "queries.jsonl").read_text().splitlines()
        texts = {str(row["_id"]): str(row["text"]) for row in map(json.loads, filter(str.strip, lines))}
        judged: dict[str, dict[str, int]] = {}
        for line in (folder / "qrels" / f"{qrels}.tsv").read_text().splitlines()[1:]:
            query, paper, gain = line.split("\t")[:3]
            if float(gain) > 0:
                judged.setdefault(query, {})[f"{prefix}:{paper}"] = int(float(gain))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder} is not a test collection: {error}.", file=str(folder)) from error
    return [Question(texts[query], relevant) for query, relevant in judged.items() if query in texts]


def compare_encoders(
    connection: Connection[Any], rows: Sequence[EncoderRow], questions: Sequence[Question], cache: Path
) -> list[dict[str, Any]]:
    """nDCG, MRR and recall at 10 of each, and the share of the first one's ten that each has."""
    from encoders.base import EncoderSpec
    from encoders.load import load_encoder

    rankings: list[list[list[str]]] = []
    for row in rows:
        encoder = load_encoder(EncoderSpec.from_dict(row.spec), cache=cache)
        try:
            vectors = encoder.encode([question.text for question in questions], kind="query")
        finally:
            encoder.close()
        rankings.append([_rank(connection, row.encoder_id, vector) for vector in vectors])
    return [
        {
            "encoder_id": row.encoder_id, "name": row.name, "state": row.state, "n_queries": len(questions),
            "ndcg_10": _mean([ndcg(r, q.relevant) for r, q in zip(ranking, questions, strict=True)]),
            "mrr_10": _mean([reciprocal_rank(r, q.relevant) for r, q in zip(ranking, questions, strict=True)]),
            "recall_10": _mean([recall(r, q.relevant) for r, q in zip(ranking, questions, strict=True)]),
            "overlap_10": _mean([_overlap(a, b) for a, b in zip(ranking, rankings[0], strict=True)]),
        }
        for row, ranking in zip(rows, rankings, strict=True)
    ]  # fmt: skip


def _rank(connection: Connection[Any], encoder_id: int, vector: Any) -> list[str]:
    query = "[" + ",".join(f"{x:.6g}" for x in vector) + "]"
    values = {"query": query, "encoder_id": encoder_id, "k": K}
    return [row[0] for row in connection.execute(queries("generations")["nearest_papers"], values).fetchall()]


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], k: int = K) -> float:
    """nDCG@k with the judgment as gain, as trec_eval's ndcg_cut has it."""
    gain = sum(relevant.get(paper, 0) / math.log2(rank + 2) for rank, paper in enumerate(ranking[:k]))
    ideal = sum(g / math.log2(rank + 2) for rank, g in enumerate(sorted(relevant.values(), reverse=True)[:k]))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int], k: int = K) -> float:
    """One over the rank of the first relevant paper, 0 when none is among the first k."""
    return next((1 / (rank + 1) for rank, paper in enumerate(ranking[:k]) if relevant.get(paper)), 0.0)


def recall(ranking: Sequence[str], relevant: Mapping[str, int], k: int = K) -> float:
    """Share of the relevant papers that are among the first k."""
    return sum(1 for paper in ranking[:k] if relevant.get(paper)) / len(relevant) if relevant else 0.0


def _overlap(one: Sequence[str], other: Sequence[str]) -> float:
    return len(set(one) & set(other)) / max(1, len(other))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
