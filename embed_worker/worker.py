"""A farm node: claims, cuts, encodes, completes, for as long as it is let.

Four tasks run side by side, each with a connection of its own where it needs one: `_side` renews leases, gives signs of
life, sweeps up after dead nodes and listens; `_feed` claims and reads; `_work` cuts and encodes; `_write` completes.
Reading the next batch and writing the last one overlap the encoding of this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import AsyncConnection

from corpus import jobs
from corpus.database import Database
from corpus.encoders import EncoderRow
from corpus.errors import EncoderError, EncoderRefused, EncoderThrottled
from corpus.halfvec import fetch_halfvec_oid_async
from corpus.jobs import Cursors, Job
from corpus.nodes import BEAT_S, Beat, beat, register
from embed_worker import cut
from embed_worker.batch import Batch, outcome_of, read_batch
from embed_worker.encode import EncodeThread
from embed_worker.link import CALL_TIMEOUT_S, Link, Stopping
from embed_worker.rates import Rates
from embed_worker.served import Served, list_wanted, load_and_prove, wait_until
from encoders.base import Encoder
from sql.files import queries

log = structlog.get_logger()

LEASE_S = 30.0
CLAIM_S = 10.0
"""A claim takes about so long at the node's own rate, so that a slow node never holds the tail."""
MOST_SLICES = 32
"""Most slices of a claim, and of a batch: memory stays small however fast the node is."""
BATCH_S = 2.0
FIRST_ITEMS, FEWEST_ITEMS = 16, 4
"""Items of a claim before the rate is known, and at the lowest rate."""
N_DOCUMENTS = 8
SWEEP_S = 5.0
POLL_S = 2.0
FULL_LOOK_S = 10.0
STOP_S = 4.0
"""How long a stopping worker waits for the call that runs; then it gives its slices back and leaves."""


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


@dataclass(order=True, slots=True)
class _Slice:
    priority: int
    encoder_id: int
    kind: str
    job_id: int
    job: Job = field(compare=False)


class Worker:
    """One node. `run` returns the exit code; `stop` may be called from a signal handler of the loop."""

    def __init__(self, database: Database, options: Options) -> None:
        self._options = options
        self._stop = asyncio.Event()
        self._stop_thread = threading.Event()
        self._wake = asyncio.Event()
        patience = options.call_timeout_s
        side_patience = min(patience, max(5.0, options.lease_s / 2))
        self._side_link = Link(database, "side", self._stop, prepare=self._listen, call_timeout_s=side_patience)
        self._read_link = Link(database, "read", self._stop, call_timeout_s=patience)
        self._write_link = Link(database, "write", self._stop, prepare=self._learn_types, call_timeout_s=patience)
        self._thread = EncodeThread()
        self._held: dict[int, uuid.UUID] = {}
        self._slices: list[_Slice] = []
        self._prepared: asyncio.Queue[Batch | list[Job] | None] = asyncio.Queue(maxsize=1)
        self._finished: asyncio.Queue[Batch | None] = asyncio.Queue(maxsize=2)
        self._cursors: dict[int, Cursors] = {}
        self._served: dict[int, Served] = {}
        self._rates = Rates()
        self._loads: set[asyncio.Task[None]] = set()
        self._halfvec_oid = 0
        self._node_id = 0
        self._node_name = ""
        self._exit_code: int | None = None
        self._error: str | None = None
        self._full_look_at = float("-inf")
        self._full_look_s = 0.0
        self._is_idle = True
        self._shown_state = ""

    # -- life --------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Finish the call that runs, give everything else back, and end."""
        self._stop.set()
        self._stop_thread.set()
        self._wake.set()

    async def run(self) -> int:
        """Work until stopped or, draining, until nothing is left. Raises DatabaseUnavailable when it cannot even begin."""
        tasks: list[asyncio.Task[None]] = []
        try:
            self._node_id, self._node_name = await self._side_link.call(self._register)
            log.info("worker_started", node=self._node_name, lease_s=self._options.lease_s)
            await self._side_link.call(self._look_at_encoders)
            tasks = [asyncio.create_task(part()) for part in (self._side, self._feed, self._work, self._write)]
            await self._until_over(tasks)
        except Stopping:
            pass
        finally:
            self.stop()
            await self._leave(tasks)
        return self._exit_code or 0

    async def _until_over(self, tasks: list[asyncio.Task[None]]) -> None:
        """Until the writer ended (all is done), a part failed, or the stop came and its patience is over."""
        writer = tasks[-1]
        running = set(tasks)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            while not writer.done() and not self._stop.is_set():
                done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
                running -= done
                if any(task.exception() for task in done if task is not stopping):
                    return
            if self._stop.is_set():
                await asyncio.wait([writer], timeout=STOP_S)
        finally:
            stopping.cancel()

    async def _leave(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in [*tasks, *self._loads]:
            task.cancel()
        ended = await asyncio.gather(*tasks, *self._loads, return_exceptions=True)
        failure = next((e for e in ended if isinstance(e, Exception) and not isinstance(e, Stopping)), None)
        with contextlib.suppress(psycopg.Error, TimeoutError, OSError):
            if self._held:
                n = len(await self._write_link.call(lambda c: jobs.release(c, self._held), even_stopping=True))
                log.info("jobs_released", n_jobs=n)
            if self._node_id:
                sign = self._sign()
                sign.state = "refused-by-canary" if self._exit_code == EncoderRefused.exit_code else "stopped"
                await self._write_link.call(lambda c: beat(c, self._node_id, sign), even_stopping=True)
        for link in (self._side_link, self._read_link, self._write_link):
            await link.close()
        self._thread.close()
        log.info("worker_ended", node=self._node_name, exit_code=self._exit_code or 0)
        if failure is not None:
            raise failure

    # -- the side: signs of life, leases, news -------------------------------------------------------------------------

    async def _register(self, connection: AsyncConnection[Any]) -> tuple[int, str]:
        return await register(connection, role="worker", name=self._options.name, version=self._options.version)

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        self._wake.set()  # what was called out while nobody listened
        for kind in jobs.KINDS:
            await connection.execute(f"LISTEN job_{kind}")  # pyright: ignore[reportArgumentType] - one of three constants

    async def _learn_types(self, connection: AsyncConnection[Any]) -> None:
        self._halfvec_oid = await fetch_halfvec_oid_async(connection)

    async def _side(self) -> None:
        now = time.monotonic()
        renew_at, beat_at, sweep_at = now, now, now + random.uniform(0, SWEEP_S)  # noqa: S311 - jitter
        while not self._stop.is_set() or self._held:
            now = time.monotonic()
            if now >= renew_at:
                await self._side_link.call(self._renew)
                renew_at = time.monotonic() + self._options.lease_s / 3
            if now >= beat_at or self._sign().state != self._shown_state:
                await self._side_link.call(self._beat)
                beat_at = time.monotonic() + BEAT_S
            if now >= sweep_at:
                await self._side_link.call(self._sweep)
                sweep_at = time.monotonic() + SWEEP_S * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            pause = max(0.01, min(renew_at, beat_at, sweep_at, time.monotonic() + 1) - time.monotonic())
            await self._side_link.call(lambda c, s=pause: self._hear(c, s))

    async def _hear(self, connection: AsyncConnection[Any], seconds: float) -> None:
        async for _ in connection.notifies(timeout=seconds, stop_after=1):
            self._wake.set()

    async def _renew(self, connection: AsyncConnection[Any]) -> None:
        held = dict(self._held)
        if not held:
            return
        kept = await jobs.renew(connection, held, self._options.lease_s)
        lost = {job_id for job_id in held if job_id not in kept and self._held.get(job_id) == held[job_id]}
        # What is being completed just now may be gone rightly; of what waits here it means that the lease was lost.
        waiting = {each.job_id for each in self._slices} & lost
        if waiting:
            self._slices = [each for each in self._slices if each.job_id not in waiting]
            heapq.heapify(self._slices)
            self._forget(waiting)
            log.warning("leases_lost", n_jobs=len(waiting))

    async def _beat(self, connection: AsyncConnection[Any]) -> None:
        sign, self._error = self._sign(), None
        self._shown_state = sign.state
        if not await beat(connection, self._node_id, sign):
            self._node_id, self._node_name = await self._register(connection)
        await self._look_at_encoders(connection)

    def _sign(self) -> Beat:
        ready = next((s for s in self._served.values() if s.encoder is not None), None)
        first = next(iter(self._served.values()), None)
        state = "idle" if self._is_idle else "working"
        if first is not None and first.state in {"loading", "unavailable", "refused"} and self._is_idle:
            state = {"loading": "loading", "unavailable": "waiting", "refused": "refused-by-canary"}[first.state]
        error = self._error or (str(first.error) if first is not None and first.error else None)
        return Beat(
            state=state, error=error, rate=self._rates.windows(),
            device=ready.encoder.device if ready and ready.encoder else None,
            backend=ready.encoder.backend if ready and ready.encoder else None,
            encoder_id=ready.encoder_id if ready else None,
            detail={"n_windowed": ready.encoder.n_windowed if ready and ready.encoder else 0, "n_held": len(self._held)},
        )  # fmt: skip

    async def _sweep(self, connection: AsyncConnection[Any]) -> None:
        swept = await jobs.sweep(connection)
        if swept.n_back or swept.n_halved or swept.n_failed:
            log.info("abandoned_jobs_swept", n_back=swept.n_back, n_halved=swept.n_halved, n_failed=swept.n_failed)
            self._full_look_at = float("-inf")
            self._wake.set()

    async def _look_at_encoders(self, connection: AsyncConnection[Any]) -> None:
        """Follow the database: a new active encoder is loaded, one that is wanted no more is dropped, the hour's proof made."""
        rows = {row.encoder_id: row for row in await list_wanted(connection)}
        for encoder_id in [each for each in self._served if each not in rows]:
            self._served.pop(encoder_id).close()
        served = {i: self._served.get(i) or Served(row, self._thread, self._stop_thread) for i, row in rows.items()}
        self._served = served
        for each in served.values():
            each.row = rows[each.encoder_id]
            if each.row.state == "active":
                self._load_when_due(each)
            if each.state == "ready" and time.monotonic() >= each.prove_at:
                self._begin(each.prove_again(), each)

    def _load_when_due(self, each: Served) -> None:
        if each.encoder is None and (
            each.state == "new" or (each.state == "unavailable" and time.monotonic() >= each.retry_at)
        ):
            self._begin(each.load(self._options.device, self._options.cache, self._options.loader), each)

    def _begin(self, work: Any, each: Served) -> None:
        async def then() -> None:
            await work
            if each.state == "refused" and each.row.state == "active":
                self._exit_code, self._error = EncoderRefused.exit_code, str(each.error)
                self.stop()
            elif (
                each.state == "unavailable"
                and self._options.is_draining
                and not getattr(each.error, "transient", False)
            ):
                self._exit_code = each.error.exit_code if each.error else 1
                self.stop()
            self._wake.set()

        task = asyncio.create_task(then())
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    # -- feeding: claim and read ---------------------------------------------------------------------------------------

    async def _feed(self) -> None:
        while not self._stop.is_set():
            batch = await self._next()
            if batch is not None:
                await self._prepared.put(batch)
                continue
            if self._options.is_draining and await self._is_drained():
                break
            pause = POLL_S if not self._options.is_draining else 0.3
            if await wait_until(self._wake, pause * random.uniform(0.5, 1)):  # noqa: S311 - jitter
                # Many idle nodes hear the same call: they come one after another.
                await asyncio.sleep(random.uniform(0, 0.1))  # noqa: S311 - jitter
        await self._prepared.put(None)

    async def _next(self) -> Batch | list[Job] | None:
        """The most urgent thing to do: documents to cut, or a batch that is read; None when there is nothing."""
        if not self._slices or self._wake.is_set():
            self._wake.clear()
            documents = await self._claim()
            if documents:
                return documents
        while self._slices:
            first = self._slices[0]
            served = self._served.get(first.encoder_id)
            taken: list[Job] = []
            most, _ = self._n_slices(BATCH_S)
            while self._slices and len(taken) < most and _like(self._slices[0], first):
                taken.append(heapq.heappop(self._slices).job)
            if served is None or served.state != "ready":
                await self._give_back(taken)
                continue
            return await self._read_link.call(lambda c, k=first.kind, s=served, t=taken: read_batch(c, k, s, t))
        return None

    async def _claim(self) -> list[Job] | None:
        """Claim the most urgent work there is; documents are returned, slices go to the heap."""
        below = self._slices[0].priority if self._slices else None
        found = await self._claim_once(below, is_full=below is None and self._is_full_look_due(FULL_LOOK_S))
        if not found and below is None and self._is_full_look_due(0.5):
            found = await self._claim_once(None, is_full=True)
        if found and found[0].kind == "chunk":
            return found
        if not found and below is None:
            self._wake_fillers()
        return None

    def _is_full_look_due(self, pause: float) -> bool:
        """A full look walks over what is dead: it may cost at most a hundredth of the time."""
        return time.monotonic() - self._full_look_at >= max(pause, 100 * self._full_look_s)

    async def _claim_once(self, below: int | None, *, is_full: bool) -> list[Job]:
        """Ask for each encoder in turn, and for documents alone while none is ready, until there is something."""
        ready = [each for each in self._served.values() if each.state == "ready"]
        began = time.monotonic()
        found: list[Job] = []
        for served in ready or [None]:
            n, _ = self._n_slices(CLAIM_S)
            wanted = {"chunk": N_DOCUMENTS} | ({"embed_papers": n, "embed_passages": n} if served else {})
            try:
                found = await self._read_link.call(
                    lambda c, s=served, w=wanted: self._claim_from(c, s, w, below, is_full)
                )
            except psycopg.errors.ForeignKeyViolation:
                # The database does not know this node any more: it went back in time, or somebody tidied up.
                self._node_id, self._node_name = await self._read_link.call(self._register)
            if found:
                break
        if is_full:
            self._full_look_at, self._full_look_s = time.monotonic(), time.monotonic() - began
        return found

    async def _claim_from(
        self,
        connection: AsyncConnection[Any],
        served: Served | None,
        wanted: Mapping[str, int],
        below: int | None,
        is_full: bool,
    ) -> list[Job]:
        encoder_id = served.encoder_id if served else None
        got = await jobs.claim(
            connection, n_wanted=wanted, encoder_id=encoder_id, node_id=self._node_id, lease_s=self._options.lease_s,
            cursors=self._cursors.setdefault(encoder_id or 0, Cursors()), is_full=is_full, below=below,
            most_items=self._n_slices(CLAIM_S)[1],
        )  # fmt: skip
        self._held |= {job.job_id: job.lease_token for job in got}
        for job in got:
            if job.kind != "chunk":
                heapq.heappush(self._slices, _Slice(job.priority, encoder_id or 0, job.kind, job.job_id, job))
        return got

    def _wake_fillers(self) -> None:
        """Nothing to do for what serves: time to load a generation that is being filled."""
        for each in self._served.values():
            if each.row.state == "filling":
                self._load_when_due(each)

    async def _is_drained(self) -> bool:
        if self._held or self._slices or self._loads:
            return False
        found = await self._read_link.call(lambda c: jobs.left(c, list(self._served)))
        if found.is_waiting or found.is_running:
            return False
        if found.n_failed and self._exit_code is None:
            self._exit_code = 3
            log.warning("jobs_failed", n_jobs=found.n_failed, mend="See `brain failures`.")
        return True

    def _n_slices(self, seconds: float) -> tuple[int, int | None]:
        """How many slices take so long at this node's rate; for less than one, how many items of it."""
        rate = self._rates.working
        n_items = FIRST_ITEMS if rate is None else max(FEWEST_ITEMS, int(rate * seconds))
        return max(1, min(MOST_SLICES, n_items // jobs.SLICE)), n_items if n_items < jobs.SLICE else None

    # -- working and writing -------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while (batch := await self._prepared.get()) is not None:
            self._is_idle = False
            if isinstance(batch, list):
                await self._cut(batch)
            else:
                await self._encode(batch)
            self._is_idle = self._prepared.empty() and not self._slices
        await self._finished.put(None)

    async def _cut(self, documents: list[Job]) -> None:
        found = await self._read_link.call(
            lambda c: cut.read_documents(c, [i for job in documents for i in job.item_ids])
        )
        for job in documents:
            if self._stop.is_set():
                return
            try:
                columns, seconds = await asyncio.to_thread(cut.cut, found.get(job.item_ids[0]))
                is_ours = await self._write_link.call(
                    lambda c, j=job, v=columns, s=seconds: cut.complete(c, j, self._node_id, v, s)
                )
            except Stopping:
                raise
            except Exception as error:
                await self._set_aside(job, error)
                continue
            self._forget([job.job_id])
            log.debug("document_cut", document_id=job.item_ids[0], n_passages=len(columns["starts"]), is_ours=is_ours)
        self._wake.set()

    async def _set_aside(self, job: Job, error: Exception) -> None:
        stack = traceback.format_exc(limit=8)
        detail = {"node": self._node_name, "stack": stack}
        why = f"{type(error).__name__}: {error}"
        await self._write_link.call(lambda c: jobs.fail(c, job, "poison", why, detail))
        self._forget([job.job_id])
        self._error = why
        log.warning("job_failed", job_id=job.job_id, kind=job.kind, error=why)

    async def _encode(self, batch: Batch) -> None:
        batches = batch.served.batches
        if batches is None:
            await self._give_back(batch.jobs)
            return
        try:
            batch.encoded = await self._thread.run(lambda: batches.encode(batch.texts))
        except EncoderError as error:
            await self._refused(batch, error)
            return
        batch.served.works()
        self._rates.encoded(len(batch.texts), batch.seconds)
        await self._finished.put(batch)

    async def _refused(self, batch: Batch, error: EncoderError) -> None:
        """The encoder cannot work now: everything that is held for it goes back, at no attempt's cost."""
        self._error = str(error)
        wait_s = error.retry_after_s if isinstance(error, EncoderThrottled) else None
        if isinstance(error, EncoderRefused):
            batch.served.state, batch.served.error = "refused", error
            pause = 0.0
        else:
            pause = batch.served.unavailable(error, wait_s)
        mine = [each for each in self._slices if each.encoder_id == batch.served.encoder_id]
        self._slices = [each for each in self._slices if each.encoder_id != batch.served.encoder_id]
        heapq.heapify(self._slices)
        failure_class = "throttled" if isinstance(error, EncoderThrottled) else "unavailable"
        await self._give_back(
            [*batch.jobs, *(each.job for each in mine)], wait_s=pause, why=f"{failure_class}: {error}"
        )
        if isinstance(error, EncoderRefused) and batch.served.row.state == "active":
            self._exit_code = error.exit_code
            self.stop()
        elif not isinstance(error, EncoderRefused):
            self._begin(self._rest(batch.served, pause), batch.served)

    async def _rest(self, served: Served, pause: float) -> None:
        await wait_until(self._stop, pause)
        if served.state == "unavailable" and served.encoder is not None:
            served.state = "ready"

    async def _give_back(self, given: list[Job], *, wait_s: float = 0, why: str | None = None) -> None:
        held = {job.job_id: job.lease_token for job in given}
        await self._write_link.call(lambda c: jobs.release(c, held, wait_s=wait_s, why=why))
        self._forget(held)

    async def _write(self) -> None:
        while (batch := await self._finished.get()) is not None:
            await self._complete(batch)

    async def _complete(self, batch: Batch) -> None:
        if self._halfvec_oid == 0:
            await self._write_link.call(self._learn_types)
        outcome = outcome_of(batch, self._node_id, self._node_name, self._halfvec_oid)
        began = time.perf_counter()
        if outcome.finished:
            try:
                ended = await self._write_link.call(
                    lambda c: _complete(c, outcome.values), even_stopping=self._stop.is_set()
                )
            except psycopg.Error as error:
                if self._stop.is_set():
                    raise
                await self._unwritable(batch, error)
                return
            self._forget([job.job_id for job in outcome.finished])
            n_texts = sum(len(job.item_ids) for job in outcome.finished if job.job_id in ended)
            self._rates.completed(n_texts)
            if outcome.n_bad:
                self._error = next(iter(outcome.values["bad_reasons"]))
            log.info(
                "slices_completed", kind=batch.kind, n_jobs=len(ended), n_texts=n_texts, n_encoded=len(batch.texts),
                n_bad=outcome.n_bad, n_discarded=len(outcome.finished) - len(ended),
                encode_s=round(batch.seconds, 3), write_s=round(time.perf_counter() - began, 3),
            )  # fmt: skip
        if outcome.unfinished and not self._stop.is_set():
            await self._give_back(outcome.unfinished)

    async def _unwritable(self, batch: Batch, error: psycopg.Error) -> None:
        """The database refuses the rows themselves: a slice alone is set aside in the end, several are tried one by one."""
        self._error = why = f"the database refused: {error}".strip()
        log.warning("slices_refused", kind=batch.kind, n_jobs=len(batch.jobs), error=why)
        worn = [job for job in batch.jobs if job.n_attempts >= jobs.MAX_ATTEMPTS]
        for job in worn:
            await self._set_aside(job, error)
        held = {job.job_id: job.lease_token for job in batch.jobs if job not in worn}
        await self._write_link.call(lambda c: jobs.release(c, held, wait_s=1, is_counted=True, why=why))
        self._forget(held)

    def _forget(self, job_ids: Any) -> None:
        for job_id in job_ids:
            self._held.pop(job_id, None)


def _like(one: _Slice, other: _Slice) -> bool:
    return (one.priority, one.encoder_id, one.kind) == (other.priority, other.encoder_id, other.kind)


async def _complete(connection: AsyncConnection[Any], values: Mapping[str, Any]) -> set[int]:
    return {row[0] for row in await (await connection.execute(queries("jobs")["embed_complete"], values)).fetchall()}
