"""Running a model over many texts: batches by token budget, sorted by length, results in the order of the texts."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from corpus.errors import EncoderOutOfMemory
from encoders.base import DIM, Embeddings, EncoderSpec, Kind, check_embeddings, normalised
from encoders.tokens import Pieces

_STEP = 8
_FINE = 64


class Budget:
    """How many tokens, padding counted, a device takes at once. It shrinks when memory runs out.

    It grows, up to `most`, while batches fill it, and never again to a size that did not fit. A window shorter than
    `least_fill` of its batch's longest starts a batch of its own: padding costs a CPU as much as words do, and costs a
    GPU less than another batch does.

    `few_shapes` is for a runtime that keeps what it prepared for each shape that it has seen (OpenVINO: some 1 MB each,
    for as long as the process lives): lengths are then padded to a multiple of 16 (8 up to 64) and the rows of a batch
    are a power of two, which leaves about 130 shapes at 512 tokens instead of thousands.
    """

    def __init__(self, tokens: int, most: int, least_fill: float, *, few_shapes: bool = False) -> None:
        self.tokens = tokens
        self.least_fill = least_fill
        self.few_shapes = few_shapes
        self._most = max(tokens, most)

    def padded(self, length: int, most: int) -> int:
        """Return the length that a batch gets whose longest window has `length` pieces, at most `most`."""
        step = 1 if not self.few_shapes else _STEP if length <= _FINE else 2 * _STEP
        return max(length, min(most, -(-length // step) * step))

    def shrink(self, failed: int) -> None:
        """Remember that a batch of `failed` tokens did not fit."""
        self._most = max(1, failed // 2)
        self.tokens = min(self.tokens, self._most)

    def grow(self, used: int) -> None:
        """Remember that a batch of `used` tokens did fit."""
        if used * 2 > self.tokens:
            self.tokens = min(self._most, self.tokens * 2)


def next_batch(lengths: Sequence[int], start: int, budget: Budget, most_pieces: int) -> tuple[int, int]:
    """Return where the batch that begins at `start` ends, and its padded length.

    `lengths` fall and none is above `most_pieces`. A batch holds at least one window.
    """
    longest = lengths[start]
    padded = budget.padded(longest, most_pieces)
    most = min(len(lengths), start + max(1, budget.tokens // max(1, padded)))
    end = start + 1
    while end < most and lengths[end] >= longest * budget.least_fill:
        end += 1
    if budget.few_shapes:
        end = start + (1 << ((end - start).bit_length() - 1))
    return end, padded


class WindowedEncoder(ABC):
    """What the local backends share. Subclasses compute one batch; calls from several threads take turns there."""

    def __init__(self, spec: EncoderSpec, pieces: Pieces, budget: Budget, *, backend: str, device: str) -> None:
        self.spec = spec
        self.backend = backend
        self.device = device
        self.n_windowed = 0
        self._pieces = pieces
        self._budget = budget
        self._pad = 1
        self._turn = threading.Lock()

    @abstractmethod
    def _compute(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Embed (n, length) int64 piece ids; `mask` is 0 over padding. MemoryError when it does not fit."""

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:
        """One float32 unit vector a text, in their order. Tokenising is done outside the turn, computing inside."""
        if not texts:
            return np.zeros((0, DIM), dtype=np.float32)
        windows = self._pieces.windows(texts, self.spec.prompt(kind))
        order = sorted(range(len(windows.ids)), key=lambda number: -len(windows.ids[number]))
        vectors = np.empty((len(order), self.spec.dim), dtype=np.float32)
        with self._turn:
            for rows, found in self._batches(windows.ids, order):
                vectors[rows] = found
            self.n_windowed += windows.n_windowed
        vectors = normalised(vectors, len(order), dim=self.spec.dim)
        if len(order) == len(texts):
            return vectors
        sums = np.zeros((len(texts), self.spec.dim), dtype=np.float64)
        np.add.at(sums, windows.owners, vectors)
        return check_embeddings(normalised(sums, len(texts), dim=self.spec.dim), len(texts), dim=self.spec.dim)

    def _batches(self, ids: list[list[int]], order: list[int]) -> Iterator[tuple[list[int], np.ndarray]]:
        lengths = [len(ids[number]) for number in order]
        start = 0
        while start < len(order):
            end, length = next_batch(lengths, start, self._budget, self.spec.max_tokens)
            rows = order[start:end]
            size = (end - start) * length
            block = np.full((len(rows), length), self._pad, dtype=np.int64)
            mask = np.zeros_like(block)
            for place, number in enumerate(rows):
                block[place, : len(ids[number])] = ids[number]
                mask[place, : len(ids[number])] = 1
            try:
                found = self._compute(block, mask)
            except MemoryError as error:
                self._budget.shrink(size)
                if len(rows) == 1:
                    raise EncoderOutOfMemory(
                        f"One text of {lengths[start]} tokens does not fit the memory of {self.device}.",
                        mend="Free memory there, or let another device do the work.",
                    ) from error
                continue
            self._budget.grow(size)
            yield rows, found
            start = end

    @abstractmethod
    def close(self) -> None:
        """Give back the model's memory."""
