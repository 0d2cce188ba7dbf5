"""The two vector lists: passages and papers nearest to a question's embedding, under any filter.

An ordered HNSW scan goes on (iterative, relaxed order, sorted again here) until enough rows pass the filter. Where a
filter leaves few rows an exact scan is both right and faster; that also makes up for a scan that ended too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, LiteralString, cast

import numpy as np
from psycopg import AsyncConnection, errors, sql
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool

from corpus.database import Database, is_connection_loss
from search_server.filters import Filters
from sql.files import queries


class Halfvec:
    """An embedding as a query parameter, rounded to half precision as the stored ones are."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = np.asarray(numbers, dtype=np.float16)
        # Dimension, an unused field, then big-endian half floats (pgvector's halfvec_send).
        self.wire = len(self.numbers).to_bytes(2, "big") + b"\0\0" + self.numbers.astype(">f2").tobytes()


class _HalfvecDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Halfvec) -> Buffer | None:
        """The vector's binary form."""
        return obj.wire


async def configure(connection: AsyncConnection) -> None:
    """Prepare a connection for searching: loads the vector library, so that its settings exist, and its types.

    Autocommit, so that a single read is a single round trip; what needs a transaction opens one.
    """
    await connection.set_autocommit(True)
    await connection.execute("SELECT '[1]'::halfvec <=> '[1]'::halfvec")
    info = await TypeInfo.fetch(connection, "halfvec")
    if info is not None:
        dumper = type("HalfvecDumper", (_HalfvecDumper,), {"oid": info.oid})
        connection.adapters.register_dumper(Halfvec, dumper)


def open_pool(database: Database, *, min_size: int, max_size: int, timeout_s: float) -> AsyncConnectionPool:
    """Return a pool for searching, not open yet.

    It does not test a connection before each use: whoever finds one broken has all replaced and asks again.
    """
    return AsyncConnectionPool(
        database.conninfo, min_size=min_size, max_size=max_size, open=False, configure=configure, timeout=timeout_s,
        reconnect_timeout=0, name=database.application_name,
    )  # fmt: skip


def may_ask_again(error: BaseException) -> bool:
    """Whether another connection may answer: after a loss, and after a read that a standby's replay broke off."""
    return is_connection_loss(error) or isinstance(error, errors.SerializationFailure)


@dataclass(frozen=True, slots=True)
class Near:
    """One row of a vector list. `passage_id` is 0 in the list of papers."""

    paper_pk: int
    passage_id: int
    score: float


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """How the vector lists are scanned; `brain tune` measures and stores them.

    With `index` binary the passages' index compares signs, and its nearest `candidates` are compared exactly.
    """

    ef_search: int = 100
    exact_below: int = 4000
    max_scan_tuples: int = 100_000
    index: str = "halfvec"
    candidates: int = 400
    timeout_ms: int = 3000


def leaf(what: str, encoder_id: int) -> sql.Identifier:
    """The partition that holds one encoder's embeddings; searches name it, so that its own index is used."""
    return sql.Identifier(f"{what}_embedding_{encoder_id}")


def filter_sql(filters: Filters) -> tuple[sql.Composable, dict[str, Any]]:
    """Return the WHERE clause over paper `p` and its values."""
    values: dict[str, Any] = {
        "topics": list(filters.topics), "without_topics": list(filters.without_topics), "kinds": list(filters.kinds),
        "without_kinds": list(filters.without_kinds), "year_from": filters.year_from, "year_to": filters.year_to,
    }  # fmt: skip
    used = {name: value for name, value in values.items() if value not in (None, [])}
    return _where(tuple(used)), used


def _where(names: tuple[str, ...]) -> sql.Composable:
    parts = [sql.SQL(queries("search")[f"filter_{name}"]) for name in names]
    return sql.SQL(" AND ").join(parts) if parts else sql.SQL("true")


def scan_statement(what: str, how: str, encoder_id: int, filters: Filters) -> tuple[sql.SQL, dict[str, Any]]:
    """Return the statement of a list: `what` is passage or paper, `how` is nearest or binary (by the index) or exact."""
    _, values = filter_sql(filters)
    return _scan_text(what, how, encoder_id, tuple(values)), values


@lru_cache(maxsize=512)
def _scan_text(what: str, how: str, encoder_id: int, names: tuple[str, ...]) -> sql.SQL:
    text = sql.SQL(queries("search")[f"{how}_{what}s"]).format(
        leaf=leaf(what, encoder_id), encoder_id=sql.Literal(encoder_id), filters=_where(names)
    )
    return sql.SQL(cast("LiteralString", text.as_string()))


@lru_cache(maxsize=64)
def _cosines_text(encoder_id: int) -> sql.SQL:
    text = sql.SQL(queries("search")["cosines"])
    text = text.format(
        passage_leaf=leaf("passage", encoder_id),
        paper_leaf=leaf("paper", encoder_id),
        encoder_id=sql.Literal(encoder_id),
    )
    return sql.SQL(cast("LiteralString", text.as_string()))


async def scan(
    pool: AsyncConnectionPool,
    what: str,
    embedding: Halfvec,
    *,
    encoder_id: int,
    filters: Filters,
    n: int,
    n_left: int | None,
    settings: ScanSettings,
) -> list[Near]:
    """Return the `n` nearest passages or papers that pass the filter, best first; all there are where there are fewer.

    `n_left` is how many rows the filter leaves, where that is known.
    """
    async with pool.connection() as connection:
        few = n_left is not None and n_left <= settings.exact_below
        how = "exact" if few else "nearest"
        rows = await ask(connection, what, how, embedding, encoder_id, filters, n, settings)
        if how == "nearest" and len(rows) < n and (n_left is None or n_left > len(rows)):
            rows = await ask(connection, what, "exact", embedding, encoder_id, filters, n, settings)
    return rows


async def ask(
    connection: AsyncConnection,
    what: str,
    how: str,
    embedding: Halfvec,
    encoder_id: int,
    filters: Filters,
    n: int,
    settings: ScanSettings,
) -> list[Near]:
    """Ask once in a transaction of its own, by the index ("nearest") or by an exact scan ("exact"); best first."""
    is_rescored = how == "nearest" and what == "passage" and settings.index == "binary"
    statement, values = scan_statement(what, "binary" if is_rescored else how, encoder_id, filters)
    wanted = max(settings.candidates, 4 * n) if is_rescored else n
    # An ordered scan keeps at least as many candidates as rows are asked for.
    ef = max(settings.ef_search, min(1000, wanted if is_rescored else 2 * n))
    session = {
        "ef_search": str(ef), "max_scan_tuples": str(settings.max_scan_tuples), "timeout_ms": str(settings.timeout_ms),
        "n_workers": "0",  # an exact scan of many rows leaves the other cores to the other questions
    }  # fmt: skip
    named = queries("search")
    # What a pipeline sends before its sync is one round trip and one transaction: the settings end with it.
    async with connection.pipeline():
        await connection.execute(named["session_settings" if how == "nearest" else "exact_settings"], session)
        cursor = await connection.execute(statement, {**values, "embedding": embedding, "n": wanted})
    rows = await cursor.fetchall()
    if what == "passage":
        found = [Near(int(r[1]), int(r[0]), float(r[2])) for r in rows]
    else:
        found = [Near(int(r[0]), 0, float(r[1])) for r in rows]
    # The relaxed order of an iterative scan is nearly sorted; equal scores are told apart by id.
    found.sort(key=lambda near: (-near.score, near.passage_id, near.paper_pk))
    return found[:n]


async def cosines(
    pool: AsyncConnectionPool,
    embedding: Halfvec,
    *,
    encoder_id: int,
    passages: Sequence[int],
    papers: Sequence[int],
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the exact cosines of given passages and papers that have embeddings, by id."""
    values = {"embedding": embedding, "passages": list(passages), "papers": list(papers)}
    of_passages: dict[int, float] = {}
    of_papers: dict[int, float] = {}
    async with pool.connection() as connection:
        cursor = await connection.execute(_cosines_text(encoder_id), values)
        for what, key, score in await cursor.fetchall():
            (of_passages if what == "passage" else of_papers)[int(key)] = float(score)
    return of_passages, of_papers


async def count_papers(pool: AsyncConnectionPool, filters: Filters, limit: int) -> int:
    """Return how many papers a filter leaves, counted up to a limit."""
    where, values = filter_sql(filters)
    async with pool.connection() as connection:
        cursor = await connection.execute(
            sql.SQL(queries("search")["count_papers"]).format(filters=where), {**values, "n": limit}
        )
        row = await cursor.fetchone()
    return int(row[0]) if row else 0
