"""Answers questions without HTTP: three lists side by side, fused, each hit with the passage that it can be quoted by."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from corpus.database import Database, is_connection_loss, translate
from corpus.errors import BrainError, DatabaseError, DatabaseUnavailable
from corpus.settings import Settings
from encoders.base import Encoder
from search_server import boosts, fusion, rescore, vectors
from search_server.answer import hit_rows, to_hit
from search_server.encoding import Encoded, EncoderNotReady, QueryEncoder
from search_server.errors import DatabaseGone, DatabaseUnsupported, SearchProblem, TimedOut
from search_server.filters import Filters, effective_kinds
from search_server.fusion import EQUAL_WEIGHTS, LISTS, Fused, ListName, entries
from search_server.gate import Gate
from search_server.params import SearchParams
from search_server.resolve import find_asked_papers
from search_server.state import ServerState
from search_server.words.follow import Follower
from search_server.words.search import Asked, WordHit

log = structlog.get_logger()
T = TypeVar("T")
_LIST_TIMEOUT_S = 3.0
_MORE_ROWS = 4


@dataclass(slots=True)
class _Work:
    """One question while it is being answered."""

    params: SearchParams
    weights: dict[ListName, float]
    per_list: int
    filters: Filters = field(default_factory=Filters)
    took: dict[str, float] = field(default_factory=dict)
    degraded: list[dict[str, str]] = field(default_factory=list)
    lists: dict[ListName, list[fusion.Entry]] = field(default_factory=dict)
    encoded: Encoded | None = None
    asked: Asked | None = None
    n_timeouts: int = 0

    def miss(self, name: str, reason: str, detail: str) -> None:
        """Say that a list is missing and why."""
        self.degraded.append({"list": name, "reason": reason, "detail": detail})


class SearchService:
    """Lives as long as a server, or as one command. Made by `open`."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        share_index: bool = False,
        load: Callable[..., Encoder] | None = None,
        n_running: int = 8,
        n_waiting: int = 64,
    ) -> None:
        self.database = database
        self.settings = settings
        self.pool: AsyncConnectionPool = database.pool(min_size=2, max_size=3 * n_running, configure=vectors.configure)
        self.encoder = QueryEncoder(cache=settings.cache_dir, load=load)
        self.words = Follower(database, settings.home_dir / "word-index", share=share_index)
        self.state = ServerState(database, self.pool, self.encoder)
        self.gate = Gate(n_running, n_waiting)
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="words")
        self._tasks: list[asyncio.Task[None]] = []
        self.listeners: list[Callable[[dict[str, Any]], None]] = []

    # -- life -----------------------------------------------------------------------------------------------------------

    @classmethod
    @asynccontextmanager
    async def open(cls, database: Database, settings: Settings, **more: Any) -> AsyncIterator[SearchService]:
        """Start following and loading at once; end both at the end. The embedded database is started here and only here."""
        await asyncio.to_thread(database.ensure_started)
        service = cls(database, settings, **more)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()

    async def start(self) -> None:
        """Begin; returns at once."""
        await self.pool.open(wait=False)
        self.words.start()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.state.refresh(), 3)
        self._tasks.append(asyncio.create_task(self.state.keep()))

    async def stop(self) -> None:
        """End all threads, tasks and connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.words.stop)
        self.encoder.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):
            await self.pool.close(timeout=2)

    async def wait_ready(self, timeout: timedelta, *, vectors: bool = True) -> None:
        """Wait until words (and, with `vectors`, the encoder) can answer, or the time is over."""
        end = time.monotonic() + timeout.total_seconds()
        await asyncio.to_thread(self.words.wait_open, timeout)
        while vectors and time.monotonic() < end:
            state = self.encoder.state["state"]
            if state in {"ready", "down"} or (self.state.is_known and self.state.encoder_row is None):
                return
            await asyncio.sleep(0.05)

    # -- questions --------------------------------------------------------------------------------------------------------

    async def search(self, params: SearchParams) -> dict[str, Any]:
        """Answer one question: the JSON of `/brain_search`. Raises a SearchProblem."""
        async with self.gate.enter():
            started = time.perf_counter()
            try:
                answer = await self._answer(params, started)
            except (psycopg.Error, PoolTimeout, DatabaseError) as error:
                raise self.problem_of(error) from error
        for listen in self.listeners:
            listen(answer)
        return answer

    async def _answer(self, params: SearchParams, started: float) -> dict[str, Any]:
        self._check_database()
        tuned = self.state.tuned
        weights: dict[ListName, float] = dict(params.weights or self._stored_weights() or EQUAL_WEIGHTS)
        work = _Work(params, weights, params.per_list or max(tuned.per_list, params.k))
        topics = await self.state.topic_ids(params.topic)
        without = await self.state.topic_ids(params.exclude_topic)
        kinds, dropped = effective_kinds(params.kind, params.exclude_kind)
        work.filters = Filters(topics, without, kinds, dropped, params.year_from, params.year_to)
        named, _ = await asyncio.gather(find_asked_papers(self.pool, params.q), self._ask_lists(work))
        asked_lists = [name for name in LISTS if weights.get(name, 0) > 0]
        if work.n_timeouts and work.n_timeouts == len(asked_lists):
            raise TimedOut("No list answered within its time.", mend="Ask again, or ask fewer lists.")
        fused = await self._fuse(work)
        fused = await self._finish(work, fused, named)
        rows = await hit_rows(self.pool, fused[: params.k + _MORE_ROWS])
        hits = [to_hit(row, rows[row.paper_pk], work.lists) for row in fused if row.paper_pk in rows][: params.k]
        for rank, hit in enumerate(hits, 1):
            hit["rank"] = rank
        work.took["total"] = (time.perf_counter() - started) * 1000
        return {
            "query": params.q, "k": params.k, "n_hits": len(hits),
            "took_ms": {name: round(work.took.get(name, 0.0), 2) for name in ("encode", *LISTS, "total")},
            "encoder": self.state.encoder_row.name if self.state.encoder_row else None,
            "degraded": work.degraded, "hits": hits,
        }  # fmt: skip

    def _stored_weights(self) -> dict[ListName, float] | None:
        stored = self.state.tuned.weights
        return {name: float(stored.get(name, 0.0)) for name in LISTS} if stored else None

    async def _ask_lists(self, work: _Work) -> None:
        """Ask every list that has a weight, side by side."""
        jobs: list[Coroutine[Any, Any, None]] = []
        if work.weights.get("passage_bm25", 0) > 0:
            jobs.append(self._guarded(work, "passage_bm25", self._ask_words(work)))
        wanted: list[ListName] = [n for n in ("passage_vector", "paper_vector") if work.weights.get(n, 0) > 0]
        if wanted:
            jobs.append(self._ask_vectors(work, wanted))
        await asyncio.gather(*jobs)

    async def _ask_vectors(self, work: _Work, names: list[ListName]) -> None:
        started = time.perf_counter()
        try:
            work.encoded = await asyncio.wait_for(self.encoder.encode(work.params.q), _LIST_TIMEOUT_S)
        except EncoderNotReady as error:
            for name in names:
                work.miss(name, error.reason, error.detail)
            return
        except TimeoutError:
            for name in names:
                work.miss(name, "timeout", "The encoder took too long.")
                work.n_timeouts += 1
            return
        finally:
            work.took["encode"] = (time.perf_counter() - started) * 1000
        await asyncio.gather(*(self._guarded(work, name, self._ask_vector(work, name)) for name in names))

    async def _ask_vector(self, work: _Work, name: ListName) -> None:
        assert work.encoded is not None
        what = "passage" if name == "passage_vector" else "paper"
        if not (self.state.has_passages if what == "passage" else self.state.has_papers):
            await self.state.refresh()
            if not (self.state.has_passages if what == "passage" else self.state.has_papers):
                work.miss(name, "no_embeddings", f"No {what} has been embedded with {work.encoded.name} yet.")
                return
        rows = await vectors.scan(
            self.pool, what, work.encoded.embedding, encoder_id=work.encoded.encoder_id, filters=work.filters,
            n=work.per_list, n_left=await self._n_left(what, work.filters), settings=self.state.tuned.scan,
        )  # fmt: skip
        work.lists[name] = entries((row.paper_pk, row.passage_id, row.score) for row in rows)

    async def _n_left(self, what: str, filters: Filters) -> int | None:
        """How many passages or papers a filter leaves: counted in the word index, which holds all filters."""
        reader = self.words.reader
        if reader is not None:
            n = await self._in_thread(lambda: reader.count(filters))
            # A paper has a passage at least; so this is never too low for papers.
            return n if filters.is_narrow or n <= self.state.tuned.scan.exact_below else None
        return None if what == "passage" else await vectors.count_papers(self.pool, filters, 50_000)

    async def _ask_words(self, work: _Work) -> None:
        reader = self.words.reader
        if reader is None:
            state = self.words.state
            work.miss("passage_bm25", "index_building", state.why or f"The word index is {state.state}.")
            return

        def ask() -> list[tuple[int, int, float]]:
            work.asked = reader.ask(work.params.q)
            hits = reader.search(work.asked, work.filters, work.per_list)
            return [(hit.paper_pk, hit.passage_id, hit.score) for hit in hits]

        try:
            work.lists["passage_bm25"] = entries(await self._in_thread(ask))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            self.words.report_damage(repr(error))
            work.miss("passage_bm25", "index_building", "The word index could not be read and is built anew.")

    async def _guarded(self, work: _Work, name: ListName, job: Coroutine[Any, Any, None]) -> None:
        """Give a list its time and no more; what fails is said, never silent."""
        started = time.perf_counter()
        try:
            await asyncio.wait_for(job, _LIST_TIMEOUT_S)
        except (TimeoutError, psycopg.errors.QueryCanceled):
            work.n_timeouts += 1
            work.miss(name, "timeout", f"The list did not answer within {_LIST_TIMEOUT_S:g} s.")
        except (psycopg.Error, PoolTimeout) as error:
            if isinstance(error, PoolTimeout) or is_connection_loss(error):
                raise
            work.miss(name, "database", str(error).splitlines()[0] if str(error) else repr(error))
        finally:
            work.took[name] = (time.perf_counter() - started) * 1000

    async def _fuse(self, work: _Work) -> list[Fused]:
        """Fuse as asked for; one list alone, and lists that are missing, keep their own order."""
        name = work.params.fusion or self.state.tuned.fusion
        present = [n for n in LISTS if work.weights.get(n, 0) > 0 and work.lists.get(n)]
        if name == "rrf" or len(present) < 2:
            return fusion.fuse_rrf(work.lists, work.weights)
        return await self._rescore(work)

    async def _rescore(self, work: _Work) -> list[Fused]:
        """Score every candidate exactly on both sides, whatever list brought it: two small reads."""
        papers = sorted({entry.paper_pk for entries_ in work.lists.values() for entry in entries_})
        reader, asked = self.words.reader, work.asked
        by_words: list[WordHit] = []
        if reader is not None and asked is not None and work.weights.get("passage_bm25", 0) > 0:
            by_words = await self._in_thread(lambda: reader.score_papers(asked, papers))
        candidates = rescore.gather(work.lists, by_words)
        if work.encoded is not None:
            asked_of = (
                [p for c in candidates.values() for p in c.passages]
                if work.weights.get("passage_vector", 0) > 0
                else []
            )
            asked_papers = papers if work.weights.get("paper_vector", 0) > 0 else []
            near, near_papers = await vectors.cosines(
                self.pool,
                work.encoded.embedding,
                encoder_id=work.encoded.encoder_id,
                passages=asked_of,
                papers=asked_papers,
            )
        else:
            near, near_papers = {}, {}
        idfs = [reader.idf(asked.field, word)[0] for word, _ in asked.words] if reader and asked else []
        return rescore.fuse(
            candidates, near, near_papers, work.weights, idfs=idfs, n_words=asked.n_words if asked else 0
        )

    async def _finish(self, work: _Work, fused: list[Fused], named: list[int]) -> list[Fused]:
        """Boosts, papers that the question names, and ties by paper id."""
        params = work.params
        if params.boosts and fused:
            factors = await boosts.factors(self.pool, [row.paper_pk for row in fused], params.boosts)
            fused = fusion.apply_boosts(fused, factors)
        pinned = dict.fromkeys(named[:20], "identifier")
        reader = self.words.reader
        if reader is not None and params.weights is None and params.fusion is None:
            titled = await self._in_thread(lambda: reader.papers_titled(params.q))
            pinned = {**dict.fromkeys(titled, "title"), **pinned}
        if pinned:
            allowed = await self._allowed(list(pinned), work.filters)
            fused = fusion.put_first(fused, {pk: why for pk, why in pinned.items() if pk in allowed})
        edge = params.k + _MORE_ROWS
        if len(fused) > edge:
            last = fused[edge - 1].score
            edge += next((i for i, row in enumerate(fused[edge:]) if row.score < last), len(fused) - edge)
        fused = fused[: min(edge, params.k + 200)]
        await self._name(fused)
        return fusion.order(fused)

    async def _allowed(self, pks: list[int], filters: Filters) -> set[int]:
        where, values = vectors.filter_sql(filters)
        from psycopg import sql

        from sql.files import queries

        statement = sql.SQL(queries("search")["papers_allowed"]).format(filters=where)
        async with self.pool.connection() as connection:
            cursor = await connection.execute(statement, {**values, "papers": pks})
            return {int(row[0]) for row in await cursor.fetchall()}

    async def _name(self, fused: list[Fused]) -> None:
        """Learn the ids of papers whose score another one shares: they order equal scores."""
        scores = [row.score for row in fused]
        equal = [row for row in fused if scores.count(row.score) > 1] if len(set(scores)) != len(scores) else []
        if equal:
            from sql.files import queries

            async with self.pool.connection() as connection:
                cursor = await connection.execute(
                    queries("search")["paper_ids"], {"papers": [row.paper_pk for row in equal]}
                )
                names = {int(pk): str(paper_id) for pk, paper_id in await cursor.fetchall()}
            for row in equal:
                row.paper_id = names.get(row.paper_pk, "")

    # -- trouble --------------------------------------------------------------------------------------------------------

    def _check_database(self) -> None:
        """Refuse at once while the database is known to be gone, instead of waiting for it with every question."""
        failure = self.state.failure
        if (
            self.state.failed_at is not None
            and isinstance(failure, DatabaseError)
            and not isinstance(failure, DatabaseUnavailable)
        ):
            raise self.problem_of(failure)

    def problem_of(self, error: Exception) -> SearchProblem:
        """What a caller is told about an error of the database."""
        if isinstance(error, PoolTimeout):
            return DatabaseGone(
                f"The database {self.database.url.masked} does not answer.",
                mend="Start it, or wait: the server goes on by itself when it is back.",
            )
        known = translate(error, self.database) if isinstance(error, psycopg.Error) else error
        if isinstance(known, DatabaseUnavailable):
            return DatabaseGone(known.what, mend=known.mend)
        if isinstance(known, BrainError):
            return DatabaseUnsupported(known.what, mend=known.mend)
        return DatabaseGone(str(known))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
