"""Encoding a stream of lines: as many embeddings as lines, in their order, whatever a line holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO

import numpy as np

from encoders.base import Encoder, Kind

_LINES_AT_ONCE = 256


def iter_lines(stream: IO[bytes]) -> Iterator[str]:
    """Read the lines of a byte stream. Only a line feed ends a line; a carriage return before it goes with it.

    Other characters that some programs end lines at (U+2028, form feed …) stay inside. Bytes that are no UTF-8 become
    replacement characters.
    """
    for line in stream:
        yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")


def encode_lines(encoder: Encoder, lines: Iterable[str], *, kind: Kind = "document") -> Iterator[np.ndarray]:
    """Give the embedding of each line, float32 of shape (768,). An empty line has one too.

    Lines are read in blocks, so that a long stream is answered as it goes and a block's lengths can be sorted.
    """
    source = iter(lines)
    while block := list(islice(source, _LINES_AT_ONCE)):
        yield from encoder.encode(block, kind=kind)
