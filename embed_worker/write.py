"""The writing of a worker: encoded batches are completed, while the next one is encoded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import psycopg
import structlog
from psycopg import AsyncConnection

from corpus.jobs import MAX_ATTEMPTS
from embed_worker.batch import Batch, Outcome, outcome_of
from embed_worker.context import Context
from embed_worker.work import Finished
from sql.files import queries

log = structlog.get_logger()


class Write:
    """Completes what is encoded."""

    def __init__(self, context: Context, finished: Finished) -> None:
        self._context = context
        self._finished = finished

    async def run(self) -> None:
        """Until nothing more comes."""
        while (batch := await self._finished.get()) is not None:
            await self._complete(batch)

    async def _complete(self, batch: Batch) -> None:
        context = self._context
        if context.halfvec_oid == 0:
            await context.writing.call(context.learn_types)
        outcome = outcome_of(batch, context.node_id, context.node_name, context.halfvec_oid)
        began = time.perf_counter()
        if outcome.finished:
            is_stopping = context.stop.is_set()
            try:
                ended = await context.writing.call(lambda c: _end(c, outcome.values), even_stopping=is_stopping)
            except psycopg.Error as error:
                if is_stopping:
                    raise
                await self._unwritable(batch, error)
                return
            self._note(batch, outcome, ended, time.perf_counter() - began)
        if outcome.unfinished and not context.stop.is_set():
            await context.give_back(outcome.unfinished)

    def _note(self, batch: Batch, outcome: Outcome, ended: set[int], seconds: float) -> None:
        context = self._context
        context.held.forget([job.job_id for job in outcome.finished])
        n_texts = sum(len(job.item_ids) for job in outcome.finished if job.job_id in ended)
        context.rates.completed(n_texts)
        if outcome.n_bad:
            context.error = next(iter(outcome.values["bad_reasons"]))
        log.info(
            "slices_completed", kind=batch.kind, n_jobs=len(ended), n_texts=n_texts, n_encoded=len(batch.texts),
            n_bad=outcome.n_bad, n_discarded=len(outcome.finished) - len(ended), encode_s=round(batch.seconds, 3),
            write_s=round(seconds, 3),
        )  # fmt: skip

    async def _unwritable(self, batch: Batch, error: psycopg.Error) -> None:
        """The database refuses the rows themselves: they are tried again, and set aside when that was often enough."""
        context = self._context
        context.error = why = f"the database refused: {error}".strip()
        log.warning("slices_refused", kind=batch.kind, n_jobs=len(batch.jobs), error=why)
        worn = [job for job in batch.jobs if job.n_attempts >= MAX_ATTEMPTS]
        for job in worn:
            await context.set_aside(job, error)
        await context.give_back([job for job in batch.jobs if job not in worn], wait_s=1, is_counted=True, why=why)


async def _end(connection: AsyncConnection[Any], values: Mapping[str, Any]) -> set[int]:
    return {row[0] for row in await (await connection.execute(queries("jobs")["embed_complete"], values)).fetchall()}
