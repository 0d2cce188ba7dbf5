"""Texts → embeddings in a thread of its own, with what cannot be embedded told apart from what cannot be embedded now.

A batch that fails is halved until each bad text stands alone, so that one poisonous text costs its slice a few more
calls and nobody else anything. When too many texts fail the encoder itself is asked to embed a plain sentence: if it
cannot, the texts are innocent.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import numpy as np

from corpus.errors import EncoderError, EncoderOutOfMemory, EncoderRefused, EncoderUnavailable
from encoders.base import DIM, Embeddings, Encoder, check_embeddings

CALL_S = 2.0
"""One call of the encoder takes about so long, so that a worker that is told to stop need not wait for a slice."""
FEWEST, MOST = 4, 1024
_PLAIN = "The encoder is asked whether it still works."


@dataclass(slots=True)
class Encoded:
    """What became of a batch: `is_done[i]` says whether row i of `embeddings` counts; `bad` holds the reasons."""

    embeddings: Embeddings
    is_done: np.ndarray[tuple[int], np.dtype[np.bool_]]
    bad: dict[int, str] = field(default_factory=dict)
    stacks: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0


class EncodeThread:
    """Runs one encoder's calls one after another, away from the event loop; a daemon, since a call cannot be broken off."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="encode", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], Any]) -> Any:
        """The work's result, computed in the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def call() -> None:
            try:
                result, error = work(), None
            except BaseException as caught:
                result, error = None, caught
            # The loop may be gone when a worker left without waiting for this call.
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future, result, error)

        self._calls.put(call)
        return await future

    def close(self) -> None:
        """End the thread after the calls that are queued."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class Batches:
    """Encodes batches with one encoder; learns how many texts a call can take."""

    def __init__(self, encoder: Encoder, stop: threading.Event) -> None:
        self._encoder = encoder
        self._stop = stop
        self._rate: float | None = None
        self.most_texts = MOST

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Embed the texts in calls of about two seconds, longest first; stops between calls when told to.

        Raises EncoderThrottled, EncoderUnavailable, EncoderRefused, or EncoderOutOfMemory when not even one text fits.
        """
        out = Encoded(np.zeros((len(texts), DIM), dtype=np.float32), np.zeros(len(texts), dtype=bool))
        began = time.perf_counter()
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        at = 0
        while at < len(order) and not self._stop.is_set():
            part = order[at : at + self._n_texts()]
            n_bad, called = len(out.bad), time.perf_counter()
            if not self._try(part, texts, out):
                continue
            at += len(part)
            self._learn(len(part) - (len(out.bad) - n_bad), time.perf_counter() - called)
        out.seconds = time.perf_counter() - began
        return out

    def _n_texts(self) -> int:
        fitting = FEWEST * 4 if self._rate is None else int(self._rate * CALL_S)
        return max(1, min(self.most_texts, max(FEWEST, fitting)))

    def _learn(self, n: int, seconds: float) -> None:
        if n > 0 and seconds > 0:
            self._rate = n / seconds if self._rate is None else 0.7 * self._rate + 0.3 * n / seconds

    def _try(self, part: list[int], texts: Sequence[str], out: Encoded) -> bool:
        """Whether the part was dealt with; False when it did not fit and is to be tried in smaller calls."""
        try:
            self._isolate(part, texts, out)
        except EncoderOutOfMemory:
            if len(part) == 1:
                raise
            self.most_texts = max(1, len(part) // 2)
            return False
        return True

    def _isolate(self, part: list[int], texts: Sequence[str], out: Encoded) -> None:
        error, stack = self._embed(part, texts, out)
        if error is None:
            return
        if len(part) > 1:
            half = len(part) // 2
            first = len(out.bad)
            self._isolate(part[:half], texts, out)
            if len(out.bad) - first == half and half >= FEWEST:
                self._ask_for_proof(error)  # every text of a good few failed: is it them?
            self._isolate(part[half:], texts, out)
            return
        self._ask_for_proof(error)
        out.bad[part[0]] = f"{type(error).__name__}: {error}"
        out.stacks[part[0]] = stack

    def _embed(self, part: list[int], texts: Sequence[str], out: Encoded) -> tuple[Exception | None, str]:
        try:
            found = check_embeddings(self._encoder.encode([texts[i] for i in part]), len(part))
        except MemoryError as error:
            raise EncoderOutOfMemory(f"{len(part)} texts do not fit into memory.") from error
        except EncoderError as error:
            if error.transient or isinstance(error, EncoderRefused):
                raise
            return error, traceback.format_exc(limit=8)
        except Exception as error:
            return error, traceback.format_exc(limit=8)
        out.embeddings[part] = found
        out.is_done[part] = True
        return None, ""

    def _ask_for_proof(self, error: Exception) -> None:
        """Raise EncoderUnavailable when not even a plain sentence can be embedded: the texts are not to blame."""
        try:
            check_embeddings(self._encoder.encode([_PLAIN]), 1)
        except EncoderError as now:
            if now.transient or isinstance(now, EncoderRefused):
                raise
            raise EncoderUnavailable(f"The encoder fails on every text: {error}") from now
        except Exception as now:
            raise EncoderUnavailable(f"The encoder fails on every text: {error}") from now
