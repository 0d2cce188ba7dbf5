"""The encoders that a worker serves: what the database asks for, loaded away from the event loop, each proven first.

The active encoder is loaded at once; a generation that is being filled only when there is nothing else to do. An
encoder that disagrees with the database's row or with its reference embeddings is refused: it never claims.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import structlog
from psycopg import AsyncConnection
from psycopg.rows import class_row

from corpus.encoders import EncoderRow
from corpus.errors import BrainError, EncoderRefused
from embed_worker.encode import Batches, EncodeThread
from encoders.base import Encoder, EncoderSpec
from sql.files import queries

log = structlog.get_logger()

State = Literal["new", "loading", "ready", "refused", "unavailable"]
PROOF_EVERY_S = 3600.0
"""A worker proves itself again this often: memory, drivers and services change under a running process."""


def load_and_prove(row: EncoderRow, device: str, cache: Path) -> Encoder:
    """The encoder of a database row, identical and proven. Raises EncoderRefused, EncoderUnavailable, UsageError."""
    from encoders.load import load_encoder

    encoder = load_encoder(EncoderSpec.from_dict(row.spec), device=device, cache=cache)
    if differing := encoder.spec.differences(identity_of(row)):
        raise EncoderRefused(
            f"The encoder {row.name!r} here is not the database's: {'; '.join(differing)}.",
            mend="Give this machine the same weights, or add these as an encoder of their own.",
        )
    prove(encoder, row)
    return encoder


def prove(encoder: Encoder, row: EncoderRow) -> None:
    """Raise EncoderRefused unless the encoder agrees with its reference embeddings.

    Without a reference, neither in the database nor in the project, it must at least agree with itself alone and in a
    crowd.
    """
    from encoders import canary

    reference = row.canary or canary.find_reference(encoder.spec)
    if reference is not None:
        canary.prove(encoder, reference)
    else:
        canary.make_reference(encoder)


def identity_of(row: EncoderRow) -> dict[str, Any]:
    """The row as the identity that vector shards carry."""
    return {
        "name": row.name, "revision": row.revision, "weights_sha256": row.weights_sha256, "max_tokens": row.max_tokens,
        "prompts": row.prompts,
    }  # fmt: skip


class Served:
    """One encoder of the database and what this worker has of it."""

    def __init__(self, row: EncoderRow, thread: EncodeThread, stop: threading.Event) -> None:
        self.row = row
        self.state: State = "new"
        self.error: BrainError | None = None
        self.encoder: Encoder | None = None
        self.batches: Batches | None = None
        self.retry_at = 0.0
        self.prove_at = 0.0
        self.n_tries = 0
        self._thread = thread
        self._stop = stop

    @property
    def encoder_id(self) -> int:
        """Its number in the database."""
        return self.row.encoder_id

    async def load(self, device: str, cache: Path, loader: Callable[[EncoderRow, str, Path], Encoder]) -> None:
        """Load and prove it; the outcome is its `state`."""
        self.state = "loading"
        began = time.monotonic()
        try:
            self.encoder = await self._thread.run(lambda: loader(self.row, device, cache))
        except EncoderRefused as error:
            self.state, self.error = "refused", error
            log.error("encoder_refused", encoder=self.row.name, error=str(error))  # noqa: TRY400 - the message says it all
        except Exception as error:
            self.unavailable(error)
        else:
            assert self.encoder is not None
            self.batches = Batches(self.encoder, self._stop)
            self.works()
            self.prove_at = time.monotonic() + PROOF_EVERY_S * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
            log.info(
                "encoder_loaded", encoder=self.row.name, backend=self.encoder.backend, device=self.encoder.device,
                seconds=round(time.monotonic() - began, 2),
            )  # fmt: skip

    async def prove_again(self) -> None:
        """The hourly proof; the outcome is its `state`."""
        encoder = self.encoder
        assert encoder is not None
        try:
            await self._thread.run(lambda: prove(encoder, self.row))
        except EncoderRefused as error:
            self.state, self.error = "refused", error
            log.error("encoder_refused", encoder=self.row.name, error=str(error))  # noqa: TRY400 - the message says it all
        except BrainError as error:
            self.unavailable(error)
        self.prove_at = time.monotonic() + PROOF_EVERY_S

    def unavailable(self, error: Exception, wait_s: float | None = None) -> float:
        """It cannot be used now; returns the seconds until the next try, growing with each failure."""
        if self.state != "unavailable" or str(error) != str(self.error):
            log.warning("encoder_unavailable", encoder=self.row.name, error=str(error))
        self.state = "unavailable"
        self.error = error if isinstance(error, BrainError) else BrainError(f"{type(error).__name__}: {error}")
        self.n_tries += 1
        pause = wait_s if wait_s is not None else min(60.0, 0.5 * 2 ** min(self.n_tries, 10)) * random.uniform(0.5, 1)  # noqa: S311
        self.retry_at = time.monotonic() + pause
        return pause

    def works(self) -> None:
        """It did what it was asked."""
        self.state, self.error, self.n_tries = "ready", None, 0

    def close(self) -> None:
        """Give back its memory."""
        if self.encoder is not None:
            self.encoder.close()
        self.encoder = self.batches = None
        self.state = "new"


async def list_wanted(connection: AsyncConnection[Any]) -> Sequence[EncoderRow]:
    """The encoders that the database wants served: the active one first, then those being filled."""
    async with connection.cursor(row_factory=class_row(EncoderRow)) as cursor:
        return await (await cursor.execute(queries("farm")["encoders_wanted"])).fetchall()


async def wait_until(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event at most so long; whether it came."""
    try:
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    except TimeoutError:
        return False
    return True
