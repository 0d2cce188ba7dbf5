"""Chunk jobs: a document's text is cut into passages, which are written and queued in one statement with the job's end."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from corpus.jobs import Job
from corpus.passages import Section, cut_passages
from sql.files import queries


@dataclass(frozen=True, slots=True)
class Document:
    """What cutting needs of a document."""

    document_id: int
    text: str
    text_sha256: bytes | None
    sections: Sequence[Section]
    page_starts: Sequence[int]


async def read_documents(connection: AsyncConnection[Any], ids: Sequence[int]) -> dict[int, Document]:
    """The documents that are there and have a text, by number."""
    async with connection.cursor(binary=True) as cursor:
        rows = await (await cursor.execute(queries("jobs")["chunk_read"], {"ids": list(ids)})).fetchall()
    return {
        row[0]: Document(row[0], row[1], row[2], [Section.from_json(each) for each in row[3] or []], row[4] or [])
        for row in rows
    }


def cut(document: Document | None) -> tuple[Mapping[str, Any], float]:
    """The columns of the document's passages, and the seconds that cutting took; nothing for a document that is gone."""
    began = time.perf_counter()
    text = document.text if document else ""
    slices = cut_passages(text, document.sections, document.page_starts) if document else []
    texts = [text[each.char_start : each.char_end] for each in slices]
    columns = {
        "starts": [each.char_start for each in slices], "ends": [each.char_end for each in slices],
        "sections": [each.section for each in slices], "pages_from": [each.page_from for each in slices],
        "pages_to": [each.page_to for each in slices], "texts": texts,
        "hashes": [hashlib.sha256(each.encode()).digest() for each in texts],
        "document_id": document.document_id if document else 0, "cut_sha256": document.text_sha256 if document else None,
    }  # fmt: skip
    return columns, time.perf_counter() - began


async def complete(
    connection: AsyncConnection[Any], job: Job, node_id: int, columns: Mapping[str, Any], seconds: float
) -> bool:
    """End the job with its passages; false when the lease is gone and nothing was written."""
    values = {"id": job.job_id, "token": job.lease_token, "node_id": node_id, "seconds": seconds, **columns}
    row = await (await connection.execute(queries("jobs")["chunk_complete"], values)).fetchone()
    assert row is not None
    return row[0]
