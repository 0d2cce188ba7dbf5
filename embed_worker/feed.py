"""The feeding of a worker: it claims, and reads the next batch while the last one is encoded.

A claim takes about ten seconds of work at the node's own rate, so that a slow node never holds the tail of a queue.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import psycopg
import structlog
from psycopg import AsyncConnection

from corpus import jobs
from corpus.jobs import Cursors, Job
from embed_worker.batch import Batch, read_batch
from embed_worker.context import Context
from embed_worker.followed import Followed
from embed_worker.served import Served, wait_until

log = structlog.get_logger()

CLAIM_S = 10.0
BATCH_S = 2.0
MOST_SLICES = 32
"""Most slices of a claim, and of a batch: memory stays small however fast the node is."""
FIRST_ITEMS, FEWEST_ITEMS = 16, 4
"""Items of a claim before the rate is known, and at the lowest rate."""
N_DOCUMENTS = 8
POLL_S, DRAIN_POLL_S = 2.0, 0.3
FULL_LOOK_S, DRY_LOOK_S = 10.0, 0.5
"""How often the whole queue is looked through while there is work, and while the cursors lead to nothing."""
FAILED_CODE = 3

Prepared = asyncio.Queue[Batch | list[Job] | None]


class Feed:
    """Puts what is to be done next into a queue; None when there will be nothing more."""

    def __init__(self, context: Context, followed: Followed, prepared: Prepared) -> None:
        self._context = context
        self._followed = followed
        self._prepared = prepared
        self._cursors: dict[int, Cursors] = {}
        self._looked_at = float("-inf")
        self._looks_s = deque([0.0], maxlen=2)

    async def run(self) -> None:
        """Until the worker stops or, draining, until nothing is left."""
        context = self._context
        while not context.stop.is_set():
            batch = await self._next()
            if batch is not None:
                await self._prepared.put(batch)
                continue
            if context.options.is_draining and await self._is_drained():
                break
            pause = DRAIN_POLL_S if context.options.is_draining else POLL_S
            if await wait_until(context.wake, pause * random.uniform(0.5, 1)):  # noqa: S311 - jitter
                # Many idle nodes hear the same call: they come one after another.
                await asyncio.sleep(random.uniform(0, 0.1))  # noqa: S311 - jitter
        await self._prepared.put(None)

    async def _next(self) -> Batch | list[Job] | None:
        """The most urgent thing to do: documents to cut, or a batch that is read; None when there is nothing."""
        context = self._context
        if context.held.first is None or context.wake.is_set():
            context.wake.clear()
            documents = await self._claim()
            if documents:
                return documents
        while (first := context.held.first) is not None:
            served = self._followed.find(first.encoder_id)
            taken = context.held.take(self._n_slices(BATCH_S)[0])
            if served is None or served.state != "ready":
                await context.give_back(taken)
                continue
            return await context.reading.call(lambda c, k=first.kind, s=served, t=taken: read_batch(c, k, s, t))
        return None

    async def _claim(self) -> list[Job] | None:
        """Claim the most urgent work there is; documents are returned, slices wait among what is held."""
        first = self._context.held.first
        below = first.priority if first else None
        found = await self._claim_once(below, is_full=first is None and self._is_look_due(FULL_LOOK_S))
        if not found and first is None and self._is_look_due(DRY_LOOK_S):
            found = await self._claim_once(None, is_full=True)
        if found and found[0].kind == "chunk":
            return found
        if not found and first is None:
            self._followed.load_fillers()
        return None

    def _is_look_due(self, pause: float) -> bool:
        """A full look walks over what is dead: it may cost at most a hundredth of the time.

        One long look says little, be it an outage, a paused process or a busy machine; two in a row are believed.
        """
        return self._context.is_swept or time.monotonic() - self._looked_at >= max(pause, 100 * min(self._looks_s))

    async def _claim_once(self, below: int | None, *, is_full: bool) -> list[Job]:
        """Ask for each encoder in turn, and for documents alone while none is ready, until there is something."""
        context, found = self._context, []
        if is_full:
            context.is_swept = False
            self._looks_s.append(0.0)
        for served in self._followed.ready or [None]:
            n, _ = self._n_slices(CLAIM_S)
            wanted = {"chunk": N_DOCUMENTS} | ({"embed_papers": n, "embed_passages": n} if served else {})
            try:
                found = await context.reading.call(lambda c, s=served, w=wanted: self._ask(c, s, w, below, is_full))
            except psycopg.errors.ForeignKeyViolation:
                # The database does not know this node any more: it went back in time, or somebody tidied up.
                await context.reading.call(context.register)
            if found:
                break
        if is_full:
            self._looked_at = time.monotonic()
        return found

    async def _ask(
        self,
        connection: AsyncConnection[Any],
        served: Served | None,
        wanted: Mapping[str, int],
        below: int | None,
        is_full: bool,
    ) -> list[Job]:
        context, encoder_id = self._context, served.encoder_id if served else None
        began = time.monotonic()
        got = await jobs.claim(
            connection, n_wanted=wanted, encoder_id=encoder_id, node_id=context.node_id, lease_s=context.options.lease_s,
            cursors=self._cursors.setdefault(encoder_id or 0, Cursors()), is_full=is_full, below=below,
            most_items=self._n_slices(CLAIM_S)[1],
        )  # fmt: skip
        if is_full:  # the look alone: an outage that came between made none of it longer
            self._looks_s[-1] += time.monotonic() - began
        context.held.add(got, encoder_id)
        return got

    async def _is_drained(self) -> bool:
        context = self._context
        if context.held or self._followed.is_busy:
            return False
        found = await context.reading.call(lambda c: jobs.left(c, self._followed.ids))
        if found.is_waiting or found.is_running:
            return False
        if found.n_failed and context.exit_code is None:
            context.exit_code = FAILED_CODE
            log.warning("jobs_failed", n_jobs=found.n_failed, mend="See `brain failures`.")
        return True

    def _n_slices(self, seconds: float) -> tuple[int, int | None]:
        """How many slices take so long at this node's rate; for less than one, how many items of it."""
        rate = self._context.rates.working
        n_items = FIRST_ITEMS if rate is None else max(FEWEST_ITEMS, int(rate * seconds))
        return max(1, min(MOST_SLICES, n_items // jobs.SLICE)), n_items if n_items < jobs.SLICE else None
