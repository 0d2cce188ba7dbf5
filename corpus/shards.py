"""Vector shards: `.npz` files of embeddings by content, read as what they are, files from somewhere else.

A shard holds `text_sha256` (n strings, lower-case hex), `vector` (n × 768 float16) and `encoder` (JSON: who made them).
Nothing in one is trusted: no pickles, sizes are looked at before anything is unpacked, every number is checked.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from corpus.errors import InputError
from corpus.halfvec import DIM, Vectors

MOST_BYTES = 4 << 30
"""Larger shards are refused: no machine of the farm should have to hold one."""
MOST_ROWS = 2_000_000
LENGTH_TOLERANCE = 2e-3
"""A unit vector in half precision is this near to length 1; what is farther off is scaled."""
HALF_TOLERANCE = 1e-3
"""Half precision rounds a 768-d unit vector by less than this."""

_HEX = re.compile(rb"[0-9a-f]{64}")
_PARTS = ("text_sha256", "vector", "encoder")


@dataclass(slots=True)
class Shard:
    """What is good in a shard: `vectors[i]` (float32, length 1) belongs to the text with hash `hashes[i]`."""

    encoder: Mapping[str, Any]
    hashes: list[bytes]
    vectors: Vectors
    n_refused: int = 0
    n_scaled: int = 0
    reasons: list[str] = field(default_factory=list)


def read_shard(path: Path) -> Shard:
    """Read and check a shard. Raises InputError, naming the file, when it is none or nothing in it can be used."""
    parts = _load(path)
    encoder = _encoder(path, parts["encoder"])
    hashes = _hashes(path, parts["text_sha256"])
    vectors = parts["vector"]
    if vectors.ndim != 2 or vectors.shape[1] != DIM or vectors.dtype.kind != "f":
        raise _bad(path, f"its vectors have shape {vectors.shape} and type {vectors.dtype}, not n × {DIM} floats")
    if len(vectors) != len(hashes):
        raise _bad(path, f"it has {len(hashes)} hashes and {len(vectors)} vectors")
    return _check_rows(path, encoder, hashes, vectors)


def _load(path: Path) -> dict[str, np.ndarray]:
    try:
        _check_sizes(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {part: arrays[part] for part in _PARTS}
    except InputError:
        raise
    except FileNotFoundError as error:
        raise _bad(path, "there is no such file") from error
    except Exception as error:  # numpy and zipfile raise whatever their parsers meet
        raise _bad(path, f"it is not a whole .npz file of plain arrays ({type(error).__name__}: {error})") from error


def _check_sizes(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    if missing := [part for part in _PARTS if f"{part}.npy" not in sizes]:
        raise _bad(path, f"it has no {', '.join(missing)}")
    if sum(sizes[f"{part}.npy"] for part in _PARTS) > MOST_BYTES:
        raise _bad(path, f"it holds more than {MOST_BYTES >> 30} GiB")


def _encoder(path: Path, part: np.ndarray) -> Mapping[str, Any]:
    try:
        encoder = json.loads(str(part.item()))
    except (ValueError, TypeError) as error:
        raise _bad(path, "its encoder is not one JSON object") from error
    if not isinstance(encoder, dict):
        raise _bad(path, "its encoder is not one JSON object")
    return encoder


def _hashes(path: Path, part: np.ndarray) -> list[bytes]:
    if part.ndim != 1 or part.dtype.kind not in "US" or len(part) > MOST_ROWS:
        raise _bad(path, f"its hashes have shape {part.shape} and type {part.dtype}, not n strings")
    found: list[bytes] = []
    for value in part.tolist():
        raw = value.encode("ascii", "replace") if isinstance(value, str) else bytes(value)
        if not _HEX.fullmatch(raw):
            raise _bad(path, f"{raw[:70]!r} is no sha256 in lower-case hex")
        found.append(bytes.fromhex(raw.decode()))
    return found


def _check_rows(path: Path, encoder: Mapping[str, Any], hashes: list[bytes], vectors: np.ndarray) -> Shard:
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    is_good = np.isfinite(lengths) & (lengths > 1e-6)
    shard = Shard(encoder, [], np.empty((0, DIM), dtype=np.float32), n_refused=int((~is_good).sum()))
    if shard.n_refused:
        n_zero = int((lengths <= 1e-6).sum())
        shard.reasons.append(
            f"{path.name}: {shard.n_refused - n_zero} vectors are not finite, {n_zero} are zero; they were refused"
        )
    if len(hashes) and not is_good.any():
        raise _bad(path, "none of its vectors can be used: they are not finite, or zero")
    is_off = is_good & (np.abs(lengths - 1) > LENGTH_TOLERANCE)
    shard.n_scaled = int(is_off.sum())
    kept = np.flatnonzero(is_good)
    first: dict[bytes, int] = {}
    for i in kept:
        first.setdefault(hashes[i], int(i))
    rows = np.fromiter(first.values(), dtype=np.intp, count=len(first))
    shard.hashes = list(first)
    # What half precision alone has done to a length stays: the same numbers come out as went in, bit for bit.
    scales = np.where(np.abs(lengths[rows] - 1) <= HALF_TOLERANCE, 1.0, lengths[rows])
    shard.vectors = (wide[rows] / scales[:, None]).astype(np.float32) if len(rows) else shard.vectors
    return shard


def write_shard(path: Path, encoder: Mapping[str, Any], hashes: Iterable[bytes], vectors: Vectors) -> None:
    """Write a shard in one step: nobody ever sees half of one."""
    fresh = path.with_name(f".{path.name}.fresh")
    with fresh.open("wb") as file:
        np.savez(
            file, text_sha256=np.array([each.hex() for each in hashes], dtype="U64"),
            vector=np.ascontiguousarray(vectors, dtype="<f2"),
            encoder=np.array(json.dumps(dict(encoder), ensure_ascii=True)),
        )  # fmt: skip
    fresh.replace(path)


def _bad(path: Path, what: str) -> InputError:
    return InputError(f"{path} cannot be imported: {what}.", file=str(path))
