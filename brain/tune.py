"""`brain tune`: choose ef_search against exact search and store it with the evidence."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_database, print_json, say


def tune(
    *,
    questions: Annotated[int, Parameter(help="How many real passages are asked for their neighbours.")] = 60,
    store: Annotated[bool, Parameter(help="Store what was chosen; --no-store only measures.")] = True,
    db: Db = None,
    json: Json = False,
) -> int:
    """Measure recall@20 against exact search, unfiltered and under filters, and choose how the vector lists are scanned.

    Servers take the stored setting up within seconds. Run it after the corpus has grown a lot.
    """
    import asyncio

    from search_server.tune import tune as measure

    chosen = asyncio.run(measure(get_database(db), n_questions=questions, store=store, progress=say))
    if json:
        print_json(chosen)
        return 0
    # A width where the exact scan is the faster one was measured once, at a shorter search.
    measured = [row for row in chosen["evidence"]["measured"] if row["ef_search"] <= chosen["ef_search"]]
    for row in {row["width"]: row for row in measured}.values():
        print(
            f"1 row in {row['width']:>5}: recall {row['recall']:.3f}, by index {row['nearest_ms']:.1f} ms, "
            f"exact {row['exact_ms']:.1f} ms"
        )
    kept = "stored" if store else "not stored"
    print(f"ef_search {chosen['ef_search']}, exact scan up to {chosen['exact_below']:,} rows: {kept}")
    return 0
