"""Searches a topic's queries at every source that can, page by page; each page is written before the next is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from psycopg import Connection

from corpus.errors import SourceError
from ingest.acquire.desk import SQL, Desk
from ingest.acquire.works import WorksStored, store_works
from ingest.sources.base import Source
from ingest.work import Work

MOST_A_SEARCH = 100
"""Works that one query takes from one source: the first page or two, in the source's own order of fit."""
_AGAIN_AFTER_S = 6 * 3600.0
# Sources index some days after publication, so each search begins some days before the last one did.
_OVERLAP = timedelta(days=14)


@dataclass(slots=True)
class Searches:
    """How searching went; `pks` are the papers that were found."""

    n_found: int = 0
    n_new: int = 0
    n_unkeyed: int = 0
    pks: set[int] = field(default_factory=set)
    waiting: dict[str, str] = field(default_factory=dict)
    problems: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _At:
    """Where a search stands."""

    since: date | None
    cursor: str | None
    n_found: int
    is_due: bool


async def search_topic(
    desk: Desk, topic: str, queries: Sequence[str], *, since: date | None = None, limit: int | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Searches:  # fmt: skip
    """Run all queries at all sources at once. `limit`: at most so many works a query and source.

    `since` is when the topic's file says that it was fetched last; it counts where this database has never searched.
    """
    run = Searches()
    row = await desk.books.do(lambda connection: connection.execute(SQL["find_topic"], [topic]).fetchone())
    most = min(limit, MOST_A_SEARCH) if limit is not None else MOST_A_SEARCH
    if row is None or most <= 0:
        return run
    if since is not None:
        values = {"topic_id": row[0], "queries": list(queries), "since": since - _OVERLAP}
        pairs = [name for name in desk.sources if desk.sources[name].search("x") is not None]
        await desk.books.do(lambda connection: connection.execute(SQL["begin_since"], {**values, "sources": pairs}))

    async def at_source(source: Source) -> None:
        for query in queries:
            if source.search(query, limit=most) is not None:
                await _search(desk, source, topic, row[0], query, most, run)
                on_step(source.name)

    await asyncio.gather(*(at_source(source) for source in desk.sources.values()))
    return run


async def _search(desk: Desk, source: Source, topic: str, topic_id: int, query: str, most: int, run: Searches) -> None:
    place = {"topic_id": topic_id, "query": query, "source": source.name}
    at = await desk.books.do(_begin, place)
    if not at.is_due:
        return
    cursor, n_found = at.cursor, at.n_found
    seen: set[str | None] = set()
    try:
        while cursor not in seen and n_found < most:
            seen.add(cursor)
            request = source.search(query, since=at.since, cursor=cursor, limit=most)
            if request is None:
                break
            page, answer_id = await desk.ask(source, request)
            works = page.works[: most - n_found]
            stored = await desk.books.do(_write, place, works, topic, answer_id, page.cursor)
            n_found += len(works)
            run.n_found += len(works)
            run.n_new += len(stored.new_pks)
            run.n_unkeyed += stored.n_unkeyed
            run.pks |= set(stored.pks)
            await desk.count_new(stored.n_new)
            cursor = page.cursor
            if cursor is None:
                break
    except SourceError as error:
        if error.transient:
            run.waiting[source.name] = f"{source.name} {error.outcome}: {error.what}"
        elif error.outcome != "absent":
            run.problems[source.name, error.outcome] = error.what
        await desk.books.do(_end, place, error.outcome, error.what, is_done=not error.transient)
        return
    await desk.books.do(_end, place, "ok", None, is_done=True)


def has_due(connection: Connection[Any], sources: Mapping[str, Source], topic: str, queries: Sequence[str]) -> bool:
    """Whether any query of a topic is to be searched anywhere now."""
    wanted = {(query, s.name) for query in queries for s in sources.values() if s.search(query) is not None}
    values = {"topic": topic, "after_s": _AGAIN_AFTER_S}
    fresh = {(query, name) for query, name in connection.execute(SQL["list_fresh_searches"], values).fetchall()}
    return bool(wanted - fresh)


def _begin(connection: Connection[Any], place: dict[str, Any]) -> _At:
    row = connection.execute(SQL["begin_search"], place).fetchone()
    assert row is not None
    since, cursor, outcome, _, searched_on, ago_s, n_found = row
    if outcome in {None, "going_on", "throttled", "down"}:
        return _At(since, cursor, n_found, is_due=True)
    if ago_s is not None and ago_s < _AGAIN_AFTER_S:
        return _At(since, cursor, n_found, is_due=False)
    since = searched_on - _OVERLAP if searched_on is not None and outcome == "ok" else since
    connection.execute(SQL["restart_search"], {**place, "since": since})
    return _At(since, None, 0, is_due=True)


def _write(
    connection: Connection[Any], place: dict[str, Any], works: Sequence[Work], topic: str, answer_id: int,
    cursor: str | None,
) -> WorksStored:  # fmt: skip
    with connection.transaction():
        stored = store_works(connection, works, topic=topic, answer_id=answer_id)
        connection.execute(SQL["note_page"], {**place, "cursor": cursor, "n_found": len(works)})
    return stored


def _end(
    connection: Connection[Any], place: dict[str, Any], outcome: str, detail: str | None, *, is_done: bool
) -> None:
    values = {**place, "outcome": outcome, "detail": (detail or "")[:500] or None, "is_done": is_done}
    connection.execute(SQL["end_search"], values)
