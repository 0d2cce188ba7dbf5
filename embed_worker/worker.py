"""A farm node: claims, cuts, encodes, completes, for as long as it is let.

Four parts run side by side: `side` renews leases and gives signs of life, `feed` claims and reads, `work` cuts and
encodes, `write` completes. Reading the next batch and writing the last one overlap the encoding of this one.
"""

from __future__ import annotations

import asyncio
import contextlib

import psycopg
import structlog

from corpus import jobs
from corpus.database import Database
from corpus.errors import EncoderRefused
from corpus.nodes import beat
from embed_worker.context import Context, Options
from embed_worker.feed import Feed, Prepared
from embed_worker.followed import Followed
from embed_worker.link import Stopping
from embed_worker.side import Side
from embed_worker.work import Finished, Work
from embed_worker.write import Write

__all__ = ["Options", "Worker"]

log = structlog.get_logger()

STOP_S = 4.0
"""How long a stopping worker waits for the call that runs; then it gives its slices back and leaves."""


class Worker:
    """One node. `run` returns the exit code; `stop` may be called from a signal handler of the loop."""

    def __init__(self, database: Database, options: Options) -> None:
        self._context = Context(database, options)
        self._followed = Followed(self._context)
        self._side = Side(self._context, self._followed)
        prepared: Prepared = asyncio.Queue(maxsize=1)
        finished: Finished = asyncio.Queue(maxsize=2)
        self._parts = (
            self._side,
            Feed(self._context, self._followed, prepared),
            Work(self._context, self._followed, prepared, finished),
            Write(self._context, finished),
        )

    def stop(self) -> None:
        """Finish the call that runs, give everything else back, and end."""
        self._context.end()

    async def run(self) -> int:
        """Work until stopped or, draining, until nothing is left."""
        context = self._context
        tasks: list[asyncio.Task[None]] = []
        try:
            await context.side.call(context.register)
            log.info("worker_started", node=context.node_name, lease_s=context.options.lease_s)
            await context.side.call(self._followed.look)
            tasks = [asyncio.create_task(part.run()) for part in self._parts]
            await self._until_over(tasks)
        except Stopping:
            pass
        finally:
            was_stopped = context.stop.is_set()
            self.stop()
            failure = await self._leave(tasks)
        if failure is not None and not (was_stopped and isinstance(failure, psycopg.OperationalError | TimeoutError)):
            raise failure
        return context.exit_code or 0

    async def _until_over(self, tasks: list[asyncio.Task[None]]) -> None:
        """Until the writer ended (all is done), a part failed, or the stop came and its patience is over."""
        writer = tasks[-1]
        running = set(tasks)
        stopping = asyncio.create_task(self._context.stop.wait())
        try:
            while not writer.done() and not self._context.stop.is_set():
                done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
                running -= done
                if any(task.exception() for task in done if task is not stopping):
                    return
            if self._context.stop.is_set():
                await asyncio.wait([writer], timeout=STOP_S)
        finally:
            stopping.cancel()

    async def _leave(self, tasks: list[asyncio.Task[None]]) -> Exception | None:
        """Give everything back and say goodbye; what went wrong in a part, if anything did."""
        context = self._context
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await self._followed.close()
        with contextlib.suppress(psycopg.Error, TimeoutError, OSError):
            if context.held:
                tokens = dict(context.held.tokens)
                n = len(await context.writing.call(lambda c: jobs.release(c, tokens), even_stopping=True))
                log.info("jobs_released", n_jobs=n)
            if context.node_id:
                sign = self._side.sign()
                sign.state = "refused-by-canary" if context.exit_code == EncoderRefused.exit_code else "stopped"
                await context.writing.call(lambda c: beat(c, context.node_id, sign), even_stopping=True)
        await context.close()
        log.info("worker_ended", node=context.node_name, exit_code=context.exit_code or 0)
        return next((e for e in ended if isinstance(e, Exception) and not isinstance(e, Stopping)), None)
