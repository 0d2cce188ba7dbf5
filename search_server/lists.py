"""Asks the three lists side by side; a list that fails or takes too long is said, never silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from search_server import fusion, rescore, vectors
from search_server.encoding import EncoderNotReady, QueryEncoder
from search_server.filters import Filters
from search_server.fusion import LISTS, Entry, Fused, ListName, entries
from search_server.state import ServerState
from search_server.words.follow import Follower
from search_server.words.search import Reader, WordHit
from search_server.work import Work

T = TypeVar("T")
LIST_TIMEOUT_S = 3.0
_UNREADABLE = "The word index could not be read and is built anew."


class Lists:
    """The lists of one server."""

    def __init__(self, pool: AsyncConnectionPool, encoder: QueryEncoder, words: Follower, state: ServerState) -> None:
        self.pool = pool
        self.encoder = encoder
        self.words = words
        self.state = state
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="words")

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ask_index(self, work: Work | None, ask: Callable[[Reader], T]) -> T | None:
        """Ask the word index off the event loop; None where there is none, which the question's answer then says.

        One that cannot be read is given up and built anew, and answers None too. Without `work` nothing lacks.
        """
        reader = self.words.reader
        if reader is None:
            if work is not None:
                state = self.words.state
                building = _UNREADABLE if state.state == "ready" else f"The word index is {state.state}."
                work.miss("passage_bm25", "index_building", state.why or building)
            return None
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, ask, reader)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # the library's panics are no Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            self.words.report_damage(reader, repr(error))
            if work is not None:
                work.miss("passage_bm25", "index_building", _UNREADABLE)
            return None

    async def ask(self, work: Work) -> None:
        """Ask every list that has a weight, side by side."""
        jobs: list[Coroutine[Any, Any, None]] = []
        if work.weights.get("passage_bm25", 0) > 0:
            jobs.append(self._guarded(work, "passage_bm25", self._ask_words(work)))
        wanted: list[ListName] = [n for n in ("passage_vector", "paper_vector") if work.weights.get(n, 0) > 0]
        if wanted:
            jobs.append(self._ask_vectors(work, wanted))
        await asyncio.gather(*jobs)

    async def _ask_vectors(self, work: Work, names: list[ListName]) -> None:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                work.encoded = await self.encoder.encode(work.params.q)
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

    async def _ask_vector(self, work: Work, name: ListName) -> None:
        assert work.encoded is not None
        what = "passage" if name == "passage_vector" else "paper"
        if not (self.state.has_passages if what == "passage" else self.state.has_papers):
            await self.state.refresh()
            if not (self.state.has_passages if what == "passage" else self.state.has_papers):
                work.miss(name, "no_embeddings", f"No {what} has been embedded with {work.encoded.name} yet.")
                return
        rows = await vectors.scan(
            self.pool, what, work.encoded.embedding, encoder_id=work.encoded.encoder_id, filters=work.filters,
            n=work.per_list, n_left=await self.n_left(what, work.filters), settings=self.state.scan,
        )  # fmt: skip
        work.lists[name] = entries((row.paper_pk, row.passage_id, row.score) for row in rows)

    async def n_left(self, what: str, filters: Filters) -> int | None:
        """How many passages or papers a filter leaves: counted in the word index, which holds all filters."""
        reader = self.words.reader
        n = reader.known_count(filters) if reader is not None else None
        if n is None:
            n = await self.ask_index(None, lambda reader: reader.count(filters))
        if n is not None:
            # A paper has a passage at least; so this is never too low for papers.
            return n if filters.is_narrow or n <= self.state.tuned.scan.exact_below else None
        return None if what == "passage" else await vectors.count_papers(self.pool, filters, 50_000)

    async def _ask_words(self, work: Work) -> None:
        def ask(reader: Reader) -> list[tuple[int, int, float]]:
            work.asked = reader.ask(work.params.q)
            hits = reader.search(work.asked, work.filters, work.per_list, is_exact=work.is_exact)
            return [(hit.paper_pk, hit.passage_id, hit.score) for hit in hits]

        hits = await self.ask_index(work, ask)
        if hits is not None:
            work.lists["passage_bm25"] = entries(hits)

    async def _guarded(self, work: Work, name: ListName, job: Coroutine[Any, Any, None]) -> None:
        """Give a list its time and no more; what fails is said, never silent."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                await job
        except (TimeoutError, psycopg.errors.QueryCanceled):
            work.n_timeouts += 1
            work.miss(name, "timeout", f"The list did not answer within {LIST_TIMEOUT_S:g} s.")
        except (psycopg.Error, PoolTimeout) as error:
            if isinstance(error, PoolTimeout) or vectors.may_ask_again(error):
                raise
            work.miss(name, "database", str(error).splitlines()[0] if str(error) else repr(error))
        finally:
            work.took[name] = (time.perf_counter() - started) * 1000

    async def fuse(self, work: Work) -> list[Fused]:
        """Fuse as asked for; one list alone, and lists that are missing, keep their own order."""
        present = [n for n in LISTS if work.weights.get(n, 0) > 0 and work.lists.get(n)]
        if work.fusion == "rrf" or len(present) < 2:
            return fusion.fuse_rrf(work.lists, work.weights)
        return await self._rescore(work)

    async def _rescore(self, work: Work) -> list[Fused]:
        """Score every candidate exactly on both sides, whatever list brought it: two small reads side by side."""
        papers = sorted({entry.paper_pk for rows in work.lists.values() for entry in rows})
        listed = {entry.passage_id for rows in work.lists.values() for entry in rows} - {0}
        near = _scores(work.lists.get("passage_vector", ()), lambda entry: entry.passage_id)
        near_papers = _scores(work.lists.get("paper_vector", ()), lambda entry: entry.paper_pk)
        (by_words, idfs), _ = await asyncio.gather(
            self._score_words(work, papers, listed),
            self._add_cosines(work, near, near_papers, listed, papers),
        )
        candidates = rescore.gather(work.lists, by_words)
        # The words may have found a better passage of a paper than the lists did.
        more = {passage for candidate in candidates.values() for passage in candidate.passages} - listed
        await self._add_cosines(work, near, near_papers, more, ())
        n_words = work.asked.n_words if work.asked else 0
        return rescore.fuse(candidates, near, near_papers, work.weights, idfs=idfs, n_words=n_words)

    async def _score_words(
        self, work: Work, papers: Sequence[int], listed: Collection[int]
    ) -> tuple[list[WordHit], list[float]]:
        """Word scores of the candidates and the rarities of the question's words, where words have a weight and answered."""
        asked = work.asked
        if asked is None or work.weights.get("passage_bm25", 0) <= 0:
            return [], []

        def ask(reader: Reader) -> tuple[list[WordHit], list[float]]:
            hits = reader.score_papers(asked, papers, listed, is_exact=work.is_exact)
            return hits, [reader.idf(asked.in_field, word)[0] for word, _ in asked.words]

        return await self.ask_index(work, ask) or ([], [])

    async def _add_cosines(
        self,
        work: Work,
        near: dict[int, float],
        near_papers: dict[int, float],
        passages: Collection[int],
        papers: Collection[int],
    ) -> None:
        """Learn the exact cosines that the vector lists did not bring, of the sides that have a weight."""
        wanted = sorted(set(passages) - near.keys()) if work.weights.get("passage_vector", 0) > 0 else []
        wanted_papers = sorted(set(papers) - near_papers.keys()) if work.weights.get("paper_vector", 0) > 0 else []
        if work.encoded is None or not (wanted or wanted_papers):
            return
        of_passages, of_papers = await vectors.cosines(
            self.pool, work.encoded.embedding, encoder_id=work.encoded.encoder_id, passages=wanted, papers=wanted_papers
        )
        near.update(of_passages)
        near_papers.update(of_papers)


def _scores(rows: Iterable[Entry], key: Callable[[Entry], int]) -> dict[int, float]:
    return {key(entry): entry.score for entry in rows}
