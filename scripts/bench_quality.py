#!/usr/bin/env python3
"""How good the answers are: nDCG@10, R@20 and MRR@10 per collection and list, with paired intervals.

    scripts/bench_quality.py COLLECTIONS_DIR [NAME…] [--db ADDRESS] [--qrels dev] [--out FILE] [--limit N] [--fresh]

Each collection NAME was loaded with `brain ingest --jsonl … --prefix NAME` and embedded. Questions are asked in process,
as the server answers them; their embeddings are kept in BRAIN_CACHE/bench, so that a second run needs no encoder.
A collection whose judgments name the asked paper (`metadata.paper_id`) is scored without it; one whose questions name
their paper (`metadata.paper_title`) is asked with the title in front.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
from datetime import timedelta
from pathlib import Path
from typing import Any

import ir_measures
from bench_questions import Remembered, read_questions
from ir_measures import RR, R, nDCG

from corpus.database import Database
from corpus.settings import Settings
from search_server.params import SearchParams
from search_server.service import SearchService

MEASURES = {"nDCG@10": nDCG @ 10, "R@20": R @ 20, "MRR@10": RR @ 10}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "rrf": {"fusion": "rrf"},
    "passage_vector": {"weights": {"passage_vector": 1.0, "passage_bm25": 0.0, "paper_vector": 0.0}, "per_list": 20},
    "passage_bm25": {"weights": {"passage_vector": 0.0, "passage_bm25": 1.0, "paper_vector": 0.0}, "per_list": 20},
    "paper_vector": {"weights": {"passage_vector": 0.0, "passage_bm25": 0.0, "paper_vector": 1.0}, "per_list": 20},
}


async def grade(
    service: SearchService, name: str, folder: Path, qrels: str, limit: int | None
) -> dict[str, dict[str, dict[str, float]]]:
    """Per configuration and measure, the value of each question."""
    questions, judged, own = read_questions(folder, qrels)
    chosen = list(questions)[:limit]
    table: dict[str, dict[str, dict[str, float]]] = {}
    wanted = [ir_measures.Qrel(q, p, g) for q in chosen for p, g in judged[q].items() if p != own.get(q)]
    for configuration, more in CONFIGURATIONS.items():
        run = []
        for key in chosen:
            answer = await service.search(SearchParams(q=questions[key][:8000], k=21, **more))
            ids = [hit["paper_id"] for hit in answer["hits"] if hit["paper_id"].startswith(f"{name}:")]
            ids = [i.partition(":")[2] for i in ids]
            run += [ir_measures.ScoredDoc(key, i, -float(r)) for r, i in enumerate(i for i in ids if i != own.get(key))]
        values: dict[str, dict[str, float]] = {m: dict.fromkeys(chosen, 0.0) for m in MEASURES}
        for found in ir_measures.iter_calc(list(MEASURES.values()), wanted, run):
            values[str(next(n for n, m in MEASURES.items() if m == found.measure))][found.query_id] = found.value
        table[configuration] = values
    return table


def interval(one: list[float], other: list[float], n: int = 2000) -> tuple[float, float, float]:
    """Mean paired difference and its 95 % interval by bootstrap over questions."""
    rng = random.Random(0)
    differences = [a - b for a, b in zip(one, other, strict=True)]
    means = sorted(statistics.fmean(rng.choices(differences, k=len(differences))) for _ in range(n))
    return statistics.fmean(differences), means[int(n * 0.025)], means[int(n * 0.975)]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--db")
    parser.add_argument("--qrels", default="dev")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--fresh", action="store_true", help="encode every question anew")
    given = parser.parse_args()
    names = given.names or sorted(p.name for p in given.collections.iterdir() if (p / "qrels").is_dir())
    settings = Settings()
    database = Database.named(given.db, settings, application_name="bench-quality")
    kept: list[Remembered] = []

    def load(source: str, **_: Any) -> Remembered:
        kept.append(Remembered.of(source, settings.cache_dir, is_fresh=given.fresh))
        return kept[0]

    out: dict[str, Any] = {}
    async with SearchService.open(database, settings, share_index=True, load=load) as service:
        await service.wait_ready(timedelta(minutes=30))
        for name in names:
            table = await grade(service, name, given.collections / name, given.qrels, given.limit)
            for remembered in kept:
                remembered.save()
            means = {c: {m: statistics.fmean(v.values()) for m, v in values.items()} for c, values in table.items()}
            best = max(
                (c for c in CONFIGURATIONS if c not in {"default", "rrf"}), key=lambda c, m=means: m[c]["nDCG@10"]
            )
            difference = interval(*(list(table[c]["nDCG@10"].values()) for c in ("default", best)))
            out[name] = {
                "n": len(table["default"]["nDCG@10"]),
                "means": means,
                "best_list": best,
                "against_best": difference,
            }
            print(
                f"{name}: {out[name]['n']} questions; default − {best}: {difference[0]:+.4f} [{difference[1]:+.4f}, {difference[2]:+.4f}]"
            )
            for configuration, values in means.items():
                print(f"  {configuration:16s} " + "  ".join(f"{m} {v:.4f}" for m, v in values.items()), flush=True)
    averages = {c: statistics.fmean(out[n]["means"][c]["nDCG@10"] for n in out) for c in CONFIGURATIONS}
    single = max(averages[c] for c in CONFIGURATIONS if c not in {"default", "rrf"})
    print("mean nDCG@10: " + "  ".join(f"{c} {v:.4f}" for c, v in averages.items()))
    print(f"default against the best single list on average: {averages['default'] / single - 1:+.1%}")
    if given.out:
        given.out.write_text(json.dumps({"collections": out, "mean": averages}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
