"""The side of a worker, on a connection of its own: leases renewed, signs of life, dead nodes swept up after, calls heard."""

from __future__ import annotations

import random
import time
from typing import Any

import structlog
from psycopg import AsyncConnection

from corpus import jobs
from corpus.nodes import BEAT_S, Beat, beat
from embed_worker.context import Context
from embed_worker.followed import Followed

log = structlog.get_logger()

SWEEP_S = 5.0
_SHOWN = {"loading": "loading", "unavailable": "waiting", "refused": "refused-by-canary"}


class Side:
    """Runs beside the work, so that a long call of the encoder delays none of it."""

    def __init__(self, context: Context, followed: Followed) -> None:
        self._context = context
        self._followed = followed
        self._shown_state = ""

    async def run(self) -> None:
        """Until the worker stops and holds nothing."""
        context, call = self._context, self._context.side.call
        now = time.monotonic()
        renew_at, beat_at, sweep_at = now, now, now + random.uniform(0, SWEEP_S)  # noqa: S311 - jitter
        while not context.stop.is_set() or context.held:
            now = time.monotonic()
            if now >= renew_at:
                await call(self._renew)
                renew_at = time.monotonic() + context.options.lease_s / 3
            if now >= beat_at or self.sign().state != self._shown_state:
                await call(self._beat)
                beat_at = time.monotonic() + BEAT_S
            if now >= sweep_at:
                await call(self._sweep)
                sweep_at = time.monotonic() + SWEEP_S * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            pause = max(0.01, min(renew_at, beat_at, sweep_at, time.monotonic() + 1) - time.monotonic())
            await call(lambda c, s=pause: self._hear(c, s))

    async def _hear(self, connection: AsyncConnection[Any], seconds: float) -> None:
        async for _ in connection.notifies(timeout=seconds, stop_after=1):
            self._context.wake.set()

    async def _renew(self, connection: AsyncConnection[Any]) -> None:
        held = self._context.held
        asked = dict(held.tokens)
        if not asked:
            return
        kept = await jobs.renew(connection, asked, self._context.options.lease_s)
        lost = {job_id for job_id in asked if job_id not in kept and held.tokens.get(job_id) == asked[job_id]}
        if n := held.lose(lost):
            log.warning("leases_lost", n_jobs=n)

    async def _beat(self, connection: AsyncConnection[Any]) -> None:
        context, sign = self._context, self.sign()
        context.error, self._shown_state = None, sign.state
        if not await beat(connection, context.node_id, sign):
            await context.register(connection)
        await self._followed.look(connection)

    def sign(self) -> Beat:
        """How the node is now."""
        context, first, loaded = self._context, self._followed.first, self._followed.loaded
        encoder = loaded.encoder if loaded else None
        state = "idle" if context.is_idle else "working"
        if first is not None and context.is_idle:
            state = _SHOWN.get(first.state, state)
        return Beat(
            state=state, error=context.error or (str(first.error) if first is not None and first.error else None),
            rate=context.rates.windows(), encoder_id=loaded.encoder_id if loaded else None,
            device=encoder.device if encoder else None, backend=encoder.backend if encoder else None,
            detail={"n_windowed": encoder.n_windowed if encoder else 0, "n_held": len(context.held.tokens)},
        )  # fmt: skip

    async def _sweep(self, connection: AsyncConnection[Any]) -> None:
        swept = await jobs.sweep(connection)
        if swept.n_back or swept.n_halved or swept.n_failed:
            log.info("abandoned_jobs_swept", n_back=swept.n_back, n_halved=swept.n_halved, n_failed=swept.n_failed)
            self._context.is_swept = True
            self._context.wake.set()
