"""A running check of the vector list: real questions, asked again by exact search now and then, recall shown.

Below the target the server raises ef_search in its own process and says so; only `brain tune` stores a setting.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import structlog
from psycopg_pool import AsyncConnectionPool

from search_server.state import ServerState
from search_server.vectors import ScanSettings, ask
from search_server.work import Work

log = structlog.get_logger()
N_NEAREST = 20
TARGET = 0.97
_EVERY_S = 20.0
_REST = 100
"""A look rests that many times as long as it took: exact search over millions must not slow questions down."""
_KEPT = 100
_ENOUGH = 10
_MAX_EF = 800
_EXACT_TIMEOUT_MS = 10_000
_SAME = 1e-6


class Audit:
    """Samples one question at a time; never more than one exact search is under way."""

    def __init__(self, pool: AsyncConnectionPool, state: ServerState, *, every_s: float = _EVERY_S) -> None:
        self._pool = pool
        self._state = state
        self._every_s = every_s
        self._offered: Work | None = None
        self._n_offered = 0
        self._recalls: deque[float] = deque(maxlen=_KEPT)
        self.n_samples = 0
        self.n_failed = 0

    @property
    def recall(self) -> float | None:
        """Mean recall@20 of the last samples; None before the first."""
        return float(np.mean(self._recalls)) if self._recalls else None

    def report(self) -> dict[str, Any]:
        """For health."""
        return {
            "recall_at_20": None if self.recall is None else round(self.recall, 4), "n_samples": self.n_samples,
            "n_failed": self.n_failed, "target": TARGET, "ef_search_raised_to": self._state.raised_ef,
        }  # fmt: skip

    def offer(self, work: Work) -> None:
        """A question that was just answered; each of those since the last look is as likely to be taken."""
        if work.encoded is None or not work.lists.get("passage_vector"):
            return
        self._n_offered += 1
        if random.randrange(self._n_offered) == 0:  # noqa: S311 - a sample, not a secret
            self._offered = work

    async def keep(self) -> None:
        """Look at a question now and then until cancelled."""
        took = 0.0
        while True:
            await asyncio.sleep(max(self._every_s, _REST * took))
            began = time.monotonic()
            try:
                await self.look()
            except Exception as error:
                self.n_failed += 1
                log.warning("audit_failed", why=str(error).strip() or repr(error))
            took = time.monotonic() - began

    async def look(self) -> float | None:
        """Compare one offered question with exact search; its recall, or None when there was none."""
        work, self._offered, self._n_offered = self._offered, None, 0
        if work is None or work.encoded is None:
            return None
        settings = self._state.scan
        exact = await self._ask("exact", work, replace(settings, timeout_ms=_EXACT_TIMEOUT_MS))
        nearest = await self._ask("nearest", work, settings)
        if not exact:
            return None
        # By scores: of passages that are equally near, as copies of one text are, any one counts.
        recall = sum(score >= exact[-1] - _SAME for score in nearest) / len(exact)
        self._recalls.append(recall)
        self.n_samples += 1
        self._raise_if_needed(settings)
        return recall

    async def _ask(self, how: str, work: Work, settings: ScanSettings) -> list[float]:
        assert work.encoded is not None
        async with self._pool.connection() as connection:
            rows = await ask(
                connection,
                "passage",
                how,
                work.encoded.embedding,
                work.encoded.encoder_id,
                work.filters,
                N_NEAREST,
                settings,
            )
        return [row.score for row in rows]

    def _raise_if_needed(self, settings: ScanSettings) -> None:
        recall = self.recall
        if recall is None or len(self._recalls) < _ENOUGH or recall >= TARGET or settings.ef_search >= _MAX_EF:
            return
        raised = min(_MAX_EF, int(settings.ef_search * 1.5))
        self._state.raised_ef = raised
        self._recalls.clear()
        log.warning(
            "recall_below_target", recall=round(recall, 3), target=TARGET, ef_search=raised, mend="Run `brain tune`."
        )
