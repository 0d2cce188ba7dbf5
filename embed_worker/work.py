"""The work of a worker: documents are cut, batches are encoded, in the order in which they were prepared."""

from __future__ import annotations

import asyncio

import structlog

from corpus.errors import EncoderError, EncoderRefused, EncoderThrottled
from corpus.jobs import Job
from embed_worker import cut
from embed_worker.batch import Batch
from embed_worker.context import Context
from embed_worker.feed import Prepared
from embed_worker.followed import Followed
from embed_worker.link import Stopping

log = structlog.get_logger()

Finished = asyncio.Queue[Batch | None]


class Work:
    """Takes what is prepared and hands encoded batches on; None when there will be nothing more."""

    def __init__(self, context: Context, followed: Followed, prepared: Prepared, finished: Finished) -> None:
        self._context = context
        self._followed = followed
        self._prepared = prepared
        self._finished = finished

    async def run(self) -> None:
        """Until nothing more is prepared."""
        context = self._context
        while (batch := await self._prepared.get()) is not None:
            context.is_idle = False
            if isinstance(batch, list):
                await self._cut(batch)
            else:
                await self._encode(batch)
            context.is_idle = self._prepared.empty() and context.held.first is None
        await self._finished.put(None)

    async def _cut(self, documents: list[Job]) -> None:
        context = self._context
        ids = [number for job in documents for number in job.item_ids]
        found = await context.reading.call(lambda c: cut.read_documents(c, ids))
        for job in documents:
            if context.stop.is_set():
                return
            try:
                columns, seconds = await asyncio.to_thread(cut.cut, found.get(job.item_ids[0]))
                is_ours = await context.writing.call(
                    lambda c, j=job, v=columns, s=seconds: cut.complete(c, j, context.node_id, v, s)
                )
            except Stopping:
                raise
            except Exception as error:
                await context.set_aside(job, error)
                continue
            context.held.forget([job.job_id])
            log.debug("document_cut", document_id=job.item_ids[0], n_passages=len(columns["starts"]), is_ours=is_ours)
        context.wake.set()

    async def _encode(self, batch: Batch) -> None:
        context, batches = self._context, batch.served.batches
        if batches is None:
            await context.give_back(batch.jobs)
            return
        try:
            batch.encoded = await context.thread.run(lambda: batches.encode(batch.texts))
        except EncoderError as error:
            await self._no_encoder(batch, error)
            return
        batch.served.works()
        context.rates.encoded(len(batch.texts), batch.seconds)
        await self._finished.put(batch)

    async def _no_encoder(self, batch: Batch, error: EncoderError) -> None:
        """The encoder cannot work now: everything that is held for it goes back, at no attempt's cost."""
        context, served = self._context, batch.served
        context.error = str(error)
        given = [*batch.jobs, *context.held.take_of_encoder(served.encoder_id)]
        if isinstance(error, EncoderRefused):
            served.state, served.error = "refused", error
            await context.give_back(given, why=f"refused: {error}")
            if served.row.state == "active":
                context.end(error.exit_code)
            return
        is_throttled = isinstance(error, EncoderThrottled)
        pause = served.unavailable(error, error.retry_after_s if is_throttled else None)
        await context.give_back(given, wait_s=pause, why=f"{'throttled' if is_throttled else 'unavailable'}: {error}")
        self._followed.rest(served, pause)
