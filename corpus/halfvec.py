"""Embeddings on their way to and from the database in its own binary form, built for many rows at once by numpy.

A halfvec is sent as its width, a reserved number, and its elements as big-endian half-precision floats (pgvector,
`halfvec_send`). One row at a time this costs more than the rest of a completion; as a structured array it costs a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg import AsyncConnection, Connection, pq
from psycopg.adapt import Dumper

DIM = 768
_BODY = 4 + 2 * DIM
_ELEMENT = np.dtype([("length", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", ">f2", (DIM,))])
_ROW = np.dtype([
    ("n_fields", ">i2"), ("hash_length", ">i4"), ("hash", "V32"),
    ("length", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", ">f2", (DIM,)),
])  # fmt: skip

COPY_HEAD = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
"""What a binary COPY begins with (PostgreSQL manual, COPY, "Binary Format")."""
COPY_TAIL = struct.pack(">h", -1)
"""What a binary COPY ends with."""

Vectors = np.ndarray[tuple[int, int], np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class HalfvecArray:
    """A parameter of type halfvec[], ready to send."""

    data: bytes


class _HalfvecArrayDumper(Dumper):
    format = pq.Format.BINARY
    oid = 0  # the cast in the query says the type; its number differs between databases

    def dump(self, obj: HalfvecArray) -> bytes:
        return obj.data


psycopg.adapters.register_dumper(HalfvecArray, _HalfvecArrayDumper)


def pack_array(vectors: Vectors, halfvec_oid: int) -> HalfvecArray:
    """An (n, 768) array as one halfvec[] parameter. Values are rounded to half precision; the caller checked them."""
    n = len(vectors)
    if n == 0:
        return HalfvecArray(struct.pack(">iii", 0, 0, halfvec_oid))
    body = np.empty(n, dtype=_ELEMENT)
    body["length"] = _BODY
    body["dim"] = DIM
    body["unused"] = 0
    body["values"] = vectors
    return HalfvecArray(struct.pack(">iiiii", 1, 0, halfvec_oid, n, 1) + body.tobytes())


def pack_copy_rows(hashes: Sequence[bytes], vectors: Vectors) -> bytes:
    """Rows (text_sha256 bytea, embedding halfvec) of a binary COPY, without head and tail."""
    rows = np.empty(len(hashes), dtype=_ROW)
    rows["n_fields"] = 2
    rows["hash_length"] = 32
    rows["hash"] = np.frombuffer(b"".join(hashes), dtype="V32")
    rows["length"] = _BODY
    rows["dim"] = DIM
    rows["unused"] = 0
    rows["values"] = vectors
    return rows.tobytes()


def unpack(sent: Sequence[bytes]) -> Vectors:
    """What `halfvec_send` gave for n rows, as an (n, 768) float16 array."""
    if not sent:
        return np.empty((0, DIM), dtype=np.float16)
    raw = np.frombuffer(b"".join(sent), dtype=np.dtype([("head", "V4"), ("values", ">f2", (DIM,))]))
    return raw["values"].astype(np.float16)


_OID = "SELECT 'halfvec'::regtype::oid::integer"


def fetch_halfvec_oid(connection: Connection[Any]) -> int:
    """The number of the type in this database."""
    row = connection.execute(_OID).fetchone()
    assert row is not None
    return row[0]


async def fetch_halfvec_oid_async(connection: AsyncConnection[Any]) -> int:
    """As `fetch_halfvec_oid`."""
    row = await (await connection.execute(_OID)).fetchone()
    assert row is not None
    return row[0]
