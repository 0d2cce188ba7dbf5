"""What the parts of a worker share: how it was started, its connections, its leases, and how it ends."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from psycopg import AsyncConnection

from corpus import jobs
from corpus.database import Database
from corpus.encoders import EncoderRow
from corpus.halfvec import fetch_halfvec_oid_async
from corpus.jobs import KINDS, Job
from corpus.nodes import register
from embed_worker.encode import EncodeThread
from embed_worker.held import Held
from embed_worker.link import CALL_TIMEOUT_S, Link
from embed_worker.rates import Rates
from embed_worker.served import load_and_prove
from encoders.base import Encoder

log = structlog.get_logger()

LEASE_S = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a worker was started."""

    cache: Path
    version: str
    name: str | None = None
    device: str = "auto"
    is_draining: bool = False
    lease_s: float = LEASE_S
    loader: Callable[[EncoderRow, str, Path], Encoder] = load_and_prove
    call_timeout_s: float = CALL_TIMEOUT_S


class Context:
    """One worker's state. `stop` ends every wait; `wake` says that there may be work."""

    def __init__(self, database: Database, options: Options) -> None:
        self.options = options
        self.stop = asyncio.Event()
        self.stop_thread = threading.Event()
        self.wake = asyncio.Event()
        patience = options.call_timeout_s
        side_patience = min(patience, max(5.0, options.lease_s / 2))
        self.side = Link(database, "side", self.stop, prepare=self._listen, call_timeout_s=side_patience)
        self.reading = Link(database, "read", self.stop, call_timeout_s=patience)
        self.writing = Link(database, "write", self.stop, prepare=self.learn_types, call_timeout_s=patience)
        self.thread = EncodeThread()
        self.held = Held()
        self.rates = Rates()
        self.halfvec_oid = 0
        self.node_id = 0
        self.node_name = ""
        self.exit_code: int | None = None
        self.error: str | None = None
        self.is_idle = True
        self.is_swept = False
        """Set when abandoned jobs came back: time to look through the whole queue."""

    def end(self, exit_code: int | None = None) -> None:
        """Finish the call that runs, give everything else back, and end."""
        if exit_code is not None:
            self.exit_code = exit_code
        self.stop.set()
        self.stop_thread.set()
        self.wake.set()

    async def register(self, connection: AsyncConnection[Any]) -> None:
        """Make or take over this node's row."""
        self.node_id, self.node_name = await register(
            connection, role="worker", name=self.options.name, version=self.options.version
        )

    async def learn_types(self, connection: AsyncConnection[Any]) -> None:
        """The number of the vector type, which differs between databases."""
        self.halfvec_oid = await fetch_halfvec_oid_async(connection)

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        self.wake.set()  # what was called out while nobody listened
        for kind in KINDS:
            await connection.execute(f"LISTEN job_{kind}")  # pyright: ignore[reportArgumentType] - one of three constants

    async def give_back(
        self, given: Sequence[Job], *, wait_s: float = 0, is_counted: bool = False, why: str | None = None
    ) -> None:
        """Release jobs, to be claimed after so many seconds; at no attempt's cost unless it is counted."""
        tokens = {job.job_id: job.lease_token for job in given}
        await self.writing.call(lambda c: jobs.release(c, tokens, wait_s=wait_s, is_counted=is_counted, why=why))
        self.held.forget(tokens)

    async def set_aside(self, job: Job, error: Exception) -> None:
        """A job fails with its reason; call it where the error was caught."""
        detail = {"node": self.node_name, "stack": traceback.format_exc(limit=8)}
        self.error = why = f"{type(error).__name__}: {error}"
        await self.writing.call(lambda c: jobs.fail(c, job, "poison", why, detail))
        self.held.forget([job.job_id])
        log.warning("job_failed", job_id=job.job_id, kind=job.kind, error=why)

    async def close(self) -> None:
        """Close connections and thread."""
        for link in (self.side, self.reading, self.writing):
            await link.close()
        self.thread.close()
