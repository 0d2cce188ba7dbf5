"""The question's embedding: encoded off the event loop, in small batches, once for equal questions, with a small cache.

The encoder is loaded in a thread while the server answers by words already. Which one, the database says; when it
activates another, that one is loaded beside and takes over when it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from corpus.encoders import EncoderRow
from corpus.errors import BrainError, EncoderRefused
from encoders.base import Encoder
from search_server.vectors import Halfvec

log = structlog.get_logger()
_CACHE_SIZE = 2048
_BATCH = 16
_RETRY_S = 15.0


@dataclass(frozen=True, slots=True)
class Encoded:
    """An embedding, and under which encoder row it may be compared."""

    encoder_id: int
    name: str
    embedding: Halfvec


class EncoderNotReady(Exception):
    """There is no embedding now: `reason` is encoder_loading or encoder_down."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class QueryEncoder:
    """Loads what `want` names and encodes questions with it."""

    def __init__(self, *, cache: Path | None, load: Callable[..., Encoder] | None = None) -> None:
        self._cache_dir = cache
        self._load = load
        self._wanted: EncoderRow | None = None
        self._encoder: Encoder | None = None
        self._row: EncoderRow | None = None
        self._beside: tuple[EncoderRow, Encoder] | None = None
        self._failed: str | None = None
        self._failed_at = float("-inf")
        self._loading = False
        self._known: OrderedDict[tuple[int, str], Halfvec] = OrderedDict()
        self._waiting: dict[str, asyncio.Future[tuple[EncoderRow, Halfvec]]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self.n_encoded = 0
        self.n_cached = 0

    @property
    def ready(self) -> EncoderRow | None:
        """The encoder that serves."""
        return self._row

    @property
    def state(self) -> dict[str, Any]:
        """For health: name, state, what went wrong."""
        wanted = self._wanted
        return {
            "name": wanted.name if wanted else None,
            "state": "ready" if self._row and wanted and self._row.encoder_id == wanted.encoder_id
            else "loading" if self._loading else "down" if self._failed else "none",
            "backend": self._encoder.backend if self._encoder else None,
            "device": self._encoder.device if self._encoder else None,
            "detail": self._failed,
        }  # fmt: skip

    def want(self, row: EncoderRow | None) -> None:
        """Let this encoder serve; loads it in a thread when it is another one, or again after a failure."""
        self._wanted = row
        if row is not None and self._beside is not None and self._beside[0].encoder_id == row.encoder_id:
            beside, self._beside = self._beside, None
            self._serve(*beside)
        if row is None or self._loading or (self._row and self._row.encoder_id == row.encoder_id):
            return
        if self._failed and time.monotonic() - self._failed_at < _RETRY_S:
            return
        self._loading = True
        threading.Thread(target=self._load_now, args=(row,), name="load-encoder", daemon=True).start()

    def prepare(self, row: EncoderRow | None) -> None:
        """Load this encoder beside the one that serves, so that it can take over at once; None: it is not coming after all."""
        if row is None:
            beside, self._beside = self._beside, None
            if beside is not None:
                with contextlib.suppress(Exception):
                    beside[1].close()
        elif not self._loading and row.encoder_id not in self.loaded and time.monotonic() - self._failed_at >= _RETRY_S:
            self._loading = True
            threading.Thread(target=self._load_now, args=(row, False), name="load-encoder", daemon=True).start()

    @property
    def loaded(self) -> list[int]:
        """The encoders that could serve at once."""
        beside = self._beside
        return [row.encoder_id for row in (self._row, beside[0] if beside else None) if row is not None]

    def _load_now(self, row: EncoderRow, is_wanted: bool = True) -> None:
        started = time.monotonic()
        try:
            encoder = self._load_encoder(row)
            encoder.encode(["warm up"], kind="query")
        except BaseException as error:
            said, self._failed_at = str(error) or repr(error), time.monotonic()
            if is_wanted:
                self._failed = said
            log.warning("encoder_load_failed", encoder=row.name, why=said)
        else:
            log.info("encoder_loaded", encoder=row.name, seconds=round(time.monotonic() - started, 2))
            if is_wanted:
                self._serve(row, encoder)
            else:
                self._beside = (row, encoder)
        finally:
            self._loading = False

    def _serve(self, row: EncoderRow, encoder: Encoder) -> None:
        old, self._encoder, self._row, self._failed = self._encoder, encoder, row, None
        if old is not None:
            with contextlib.suppress(Exception):
                old.close()

    def _load_encoder(self, row: EncoderRow) -> Encoder:
        from encoders.load import load_encoder

        load = self._load or load_encoder
        encoder = load(str(row.spec.get("source") or row.name), cache=self._cache_dir)
        identity = {"weights_sha256": row.weights_sha256, "max_tokens": row.max_tokens, "prompts": row.prompts}
        if differences := encoder.spec.differences(identity):
            raise EncoderRefused(
                f"The encoder {row.name} here is not the one that the database serves: {'; '.join(differences)}.",
                mend="Use the same weights on every machine.",
            )
        return encoder

    async def encode(self, question: str) -> Encoded:
        """Return the question's embedding. Raises EncoderNotReady."""
        row = self._row
        if row is None or self._encoder is None:
            if self._failed and not self._loading:
                raise EncoderNotReady("encoder_down", self._failed)
            if self._wanted is None:
                raise EncoderNotReady("encoder_down", "The database has no active encoder.")
            raise EncoderNotReady("encoder_loading", f"{self._wanted.name} is being loaded.")
        known = self._known.get((row.encoder_id, question))
        if known is not None:
            self._known.move_to_end((row.encoder_id, question))
            self.n_cached += 1
            return Encoded(row.encoder_id, row.name, known)
        future = self._waiting.get(question)
        if future is None:
            future = asyncio.get_running_loop().create_future()
            self._waiting[question] = future
            self._wake.set()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work())
        try:
            by, embedding = await asyncio.shield(future)
        except BrainError as error:
            raise EncoderNotReady("encoder_down", str(error)) from error
        return Encoded(by.encoder_id, by.name, embedding)

    async def _work(self) -> None:
        """Encode what waits, a small batch at a time; equal questions wait for one embedding."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = list(self._waiting.items())[:_BATCH]
            row, encoder = self._row, self._encoder
            assert row is not None
            assert encoder is not None
            try:
                texts = [text for text, _ in batch]
                rows = await loop.run_in_executor(self._executor, lambda t=texts, e=encoder: e.encode(t, kind="query"))
            except Exception as error:
                said = error if isinstance(error, BrainError) else BrainError(f"Encoding failed: {error!r}.")
                for text, future in batch:
                    self._waiting.pop(text, None)
                    if not future.done():
                        future.set_exception(said)
                        future.exception()  # a caller that gave up is no unhandled error
                continue
            for (text, future), row_of_text in zip(batch, rows, strict=True):
                embedding = Halfvec(row_of_text)
                self._waiting.pop(text, None)
                self.n_encoded += 1
                self._known[row.encoder_id, text] = embedding
                while len(self._known) > _CACHE_SIZE:
                    self._known.popitem(last=False)
                if not future.done():
                    future.set_result((row, embedding))

    def close(self) -> None:
        """Give the encoder's memory back."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.prepare(None)
        if self._encoder is not None:
            with contextlib.suppress(Exception):
                self._encoder.close()
