"""Chooses ef_search and the crossing to exact scans from the corpus itself, against exact search, and stores both.

Questions are embeddings of real passages (a point of its own neighbourhood, as a good question is). Filters of known width
are made from the papers' numbers, so that they cut across topics and years as users' filters do.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from psycopg import sql
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool

from corpus.database import Database, translated
from corpus.errors import BrainError
from search_server.state import Tuned
from search_server.vectors import Halfvec, ScanSettings, leaf, open_pool
from sql.files import queries

N_NEAREST = 20
WIDTHS = (1, 3, 40, 500, 5000)
EF_STEPS = (40, 60, 80, 100, 120, 160, 200, 300, 400, 600, 800)
TARGET = 0.99
TARGET_FILTERED = 0.98
LEAST_EXACT = 200
_SAME = 1e-6
Progress = Callable[[str], None]


class NothingToTune(BrainError):
    """There are too few embeddings to measure anything."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One filter width at one setting."""

    width: int
    ef_search: int
    recall: float
    nearest_ms: float
    exact_ms: float
    n_rows: int


async def tune(
    database: Database, *, n_questions: int = 60, store: bool = True, progress: Progress | None = None
) -> dict[str, Any]:
    """Measure, choose, store; returns what was chosen with the evidence. Raises NothingToTune for a corpus too small."""
    pool = open_pool(database, min_size=1, max_size=2, timeout_s=10)
    say = progress or (lambda _: None)
    with translated(database):
        await pool.open()
        try:
            return await _tune(pool, n_questions, store, say)
        finally:
            await pool.close()


async def _tune(pool: AsyncConnectionPool, n_questions: int, store: bool, say: Progress) -> dict[str, Any]:
    encoder_id, n_passages, questions = await _sample(pool, n_questions)
    if n_passages < 100:
        raise NothingToTune(
            f"There are {n_passages} embedded passages: any setting finds them all.",
            mend="Embed more, then tune again.",
        )
    base = await _read_base(pool, encoder_id)
    table, best = await _sweep(pool, questions, encoder_id, n_passages, base, say)
    chosen = best[0].ef_search
    value = {"ef_search": chosen, "exact_below": _crossing(best)}
    evidence = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"), "n_passages": n_passages, "n_questions": len(questions),
        "encoder_id": encoder_id, "measured": [asdict(r) for r in table],
    }  # fmt: skip
    if store:
        async with pool.connection() as connection:
            await connection.execute(
                queries("search")["store_search_setting"],
                {"value": json.dumps(value), "evidence": json.dumps(evidence)},
            )
    return {**value, "evidence": evidence, "stored": store}


async def _read_base(pool: AsyncConnectionPool, encoder_id: int) -> ScanSettings:
    """How the passages are scanned beside what is tuned here. Raises NothingToTune where they have no whole index."""
    async with pool.connection() as connection:
        cursor = await connection.execute(queries("vectors")["index_state"], {"encoder_id": encoder_id})
        states = {part: is_whole for part, _, is_whole in await cursor.fetchall()}
        row = await (await connection.execute("SELECT value FROM setting WHERE name = 'search'")).fetchone()
    base = Tuned.of(row[0] if row else None).scan
    if not states.get("passage"):
        raise NothingToTune(
            "The passages have no whole vector index now: every search is exact.",
            mend=f"Wait until it is built, or build it with `brain vectors index {base.index}`.",
        )
    return base


async def _sweep(
    pool: AsyncConnectionPool,
    questions: list[np.ndarray],
    encoder_id: int,
    n_passages: int,
    base: ScanSettings,
    say: Progress,
) -> tuple[list[Measured], list[Measured]]:
    """Return all that was measured, and the widths at the setting that serves best, the unfiltered one first."""
    truths: dict[int, list[list[float]]] = {}
    exact_ms: dict[int, float] = {}
    by_index = [w for w in WIDTHS if n_passages / w >= 1]
    for width in by_index:
        say(f"exact search, 1 row in {width}")
        truths[width], exact_ms[width] = await _run(pool, "exact", questions, encoder_id, width, base)
    steps = [ef for ef in EF_STEPS if ef >= _n_wanted("nearest", base)] or [EF_STEPS[-1]]
    table: list[Measured] = []
    rows: list[Measured] = []
    right: list[list[Measured]] = []
    for ef in steps:
        beside = [r for r in rows if r.width not in by_index]
        rows = []
        for width in by_index:
            settings = replace(base, ef_search=ef)
            found, ms = await _run(pool, "nearest", questions, encoder_id, width, settings)
            rows.append(Measured(width, ef, _recall(found, truths[width]), ms, exact_ms[width], n_passages // width))
        table += rows
        rows += beside
        say(
            f"ef_search {ef}: " + ", ".join(f"1 in {r.width} recall {r.recall:.3f} {r.nearest_ms:.1f} ms" for r in rows)
        )
        # Where the exact scan is the faster one it stays so: a longer search by the index takes longer still.
        slow = {r.width for r in rows if r.exact_ms <= r.nearest_ms and r.width > 1}
        by_index = [width for width in by_index if width not in slow]
        if rows[0].recall >= TARGET:
            right.append(rows)
        # Filters may ask for twice the search that questions without one need, as every question pays for it.
        following = next((step for step in steps if step > ef), ef)
        if right and (_n_missed(rows) == 0 or following > 2 * right[0][0].ef_search):
            break
    best = min(right, key=_n_missed, default=rows)
    return table, best


async def _sample(pool: AsyncConnectionPool, n: int) -> tuple[int, int, list[np.ndarray]]:
    """The active encoder, the number of its passages, and some of their embeddings."""
    async with pool.connection() as connection:
        row = await (await connection.execute("SELECT active_encoder_id()")).fetchone()
        if row is None or row[0] is None:
            raise NothingToTune("The database has no active encoder.", mend="Run `brain init`.")
        encoder_id = int(row[0])
        name = leaf("passage", encoder_id)
        count = await (await connection.execute(sql.SQL("SELECT count(*) FROM {}").format(name))).fetchone()
        total = int(count[0]) if count else 0
        statement = sql.SQL("SELECT embedding::text FROM {} ORDER BY text_sha256 LIMIT %s").format(name)
        # Hashes are random, so the first by hash are a sample that stays the same from run to run.
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(statement, [n])
            rows = await cursor.fetchall()
    return encoder_id, total, [np.array(json.loads(text), dtype=np.float32) for (text,) in rows]


async def _run(
    pool: AsyncConnectionPool,
    how: str,
    questions: list[np.ndarray],
    encoder_id: int,
    width: int,
    settings: ScanSettings,
) -> tuple[list[list[float]], float]:
    """The scores of each question's nearest passages under a filter of one width, and the median time in milliseconds."""
    where = sql.SQL("true") if width == 1 else sql.SQL("p.paper_pk %% {} = 0").format(sql.Literal(width))
    is_rescored = how == "nearest" and settings.index == "binary"
    text = sql.SQL(queries("search")[f"{'binary' if is_rescored else how}_passages"]).format(
        leaf=leaf("passage", encoder_id), encoder_id=sql.Literal(encoder_id), filters=where
    )
    session = {
        "ef_search": str(settings.ef_search), "max_scan_tuples": str(settings.max_scan_tuples), "timeout_ms": "60000",
        "n_workers": "8" if width == 1 else "0",  # the truth may be found as fast as can be; a filter is timed as it is served
    }  # fmt: skip
    found: list[list[float]] = []
    times: list[float] = []
    async with pool.connection() as connection:
        for question in questions:
            async with connection.transaction():
                await connection.execute(
                    queries("search")["session_settings" if how == "nearest" else "exact_settings"], session
                )
                started = time.perf_counter()
                cursor = await connection.execute(text, {"embedding": Halfvec(question), "n": _n_wanted(how, settings)})
                rows = await cursor.fetchall()
                times.append((time.perf_counter() - started) * 1000)
            found.append(sorted((float(row[2]) for row in rows), reverse=True)[:N_NEAREST])
    return found, float(np.median(times))


def _n_wanted(how: str, settings: ScanSettings) -> int:
    """How many rows a scan is asked for: those of the binary index are compared exactly afterwards."""
    is_rescored = how == "nearest" and settings.index == "binary"
    return max(settings.candidates, 4 * N_NEAREST) if is_rescored else N_NEAREST


def _recall(found: list[list[float]], truth: list[list[float]]) -> float:
    """By scores: of rows that are equally near any one counts."""
    shares = [sum(score >= t[-1] - _SAME for score in f) / len(t) for f, t in zip(found, truth, strict=True) if t]
    return float(np.mean(shares)) if shares else 1.0


def _crossing(rows: list[Measured]) -> int:
    """The number of rows up to which the exact scan is the faster or the only right one.

    It lies between two measured widths, where the two times meet if both are straight lines over logarithms; in their
    middle where the index was the faster one but missed too much.
    """
    below = max((r for r in rows if r.width > 1 and _is_exact(r)), key=lambda r: r.n_rows, default=None)
    if below is None:
        return LEAST_EXACT
    above = min((r for r in rows if r.n_rows > below.n_rows), key=lambda r: r.n_rows, default=None)
    if above is None:
        return max(LEAST_EXACT, below.n_rows)
    gains = [math.log(r.nearest_ms / r.exact_ms) for r in (below, above)]
    share = 1.0 if gains[1] >= 0 else gains[0] / (gains[0] - gains[1]) if gains[0] >= 0 else 0.5
    return max(LEAST_EXACT, int(below.n_rows * (above.n_rows / below.n_rows) ** share))


def _is_exact(row: Measured) -> bool:
    return row.exact_ms <= row.nearest_ms or row.recall < TARGET_FILTERED


def _n_missed(rows: list[Measured]) -> int:
    """How many filters the index would answer sooner than an exact scan, but not rightly."""
    return sum(r.width > 1 and r.nearest_ms < r.exact_ms and r.recall < TARGET_FILTERED for r in rows)
