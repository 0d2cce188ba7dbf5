"""Registers files: bytes into the store, a paper and a document row at once, and an extract job.

The same bytes are one document, under whatever name they come and in however many topics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.errors import InputError
from ingest.papers import PRIORITY_BACKLOG, lock_papers
from ingest.papers import SQL as PAPERS
from ingest.store import Store
from sql import files as sql_files

SQL = sql_files.queries("documents")
PDF_SUFFIXES = (".pdf",)
TEXT_SUFFIXES = (".pdf", ".md", ".markdown", ".html", ".htm", ".txt", ".xml")
_CONTENT_TYPES = {
    ".pdf": "application/pdf", ".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html",
    ".htm": "text/html", ".txt": "text/plain", ".xml": "application/xml",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Registered:
    """What became of one file."""

    document_id: int
    is_new: bool


def list_files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The regular files below a folder that end in one of the suffixes, sorted; or the one file that is named.

    Raises InputError when there is no such file or folder.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"There is no file or folder {path}.", file=str(path))
    return sorted(_walk(path, tuple(suffixes)))


def _walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for root, names, found in os.walk(folder, followlinks=False):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in found:
            path = Path(root) / name
            if name.lower().endswith(suffixes) and not name.startswith(".") and path.is_file():
                yield path


def register_file(
    connection: Connection[Any], store: Store, path: Path, *, topics: Sequence[str] = (), paper_pk: int | None = None,
    source_url: str | None = None, priority: int = PRIORITY_BACKLOG, name: str | None = None, licence: str | None = None,
    content_type: str | None = None,
) -> Registered:  # fmt: skip
    """Put one file into the store and the database, in a transaction of its own. Idempotent.

    `paper_pk` names the paper whose full text it is; without it, bytes that are known already stay with their paper and
    new ones become a paper with the key `file:<sha256>`. `name` stands for the path's own. Raises InputError when the file cannot be read.
    """
    try:
        n_bytes = path.stat().st_size
        sha256 = store.put_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.", file=str(path)) from error
    digest = bytes.fromhex(sha256)
    with connection.transaction():
        lock_papers(connection)
        known = connection.execute(SQL["find_by_sha256"], [digest]).fetchone()
        if paper_pk is None:
            paper_pk = known[1] if known else _file_paper(connection, sha256)
        row = connection.execute(
            SQL["insert_document"],
            {
                "paper_pk": paper_pk, "sha256": digest, "file_name": name or path.name, "source_url": source_url,
                "content_type": content_type or _CONTENT_TYPES.get(path.suffix.lower()), "n_bytes": n_bytes, "licence": licence,
            },
        ).fetchone()  # fmt: skip
        assert row is not None
        document_id, verdict = row
        if topics:
            connection.execute(PAPERS["insert_topics"], {"names": sorted(set(topics))})
            connection.execute(SQL["add_topic"], {"paper_pk": paper_pk, "names": list(topics)})
        if verdict is None:
            connection.execute(SQL["enqueue_extract"], {"priority": priority, "document_id": document_id})
    return Registered(document_id, is_new=known is None or known[1] != paper_pk)


def _file_paper(connection: Connection[Any], sha256: str) -> int:
    owner = connection.execute(
        PAPERS["find_paper_by_identifier"], {"kinds": ["key"], "values": [f"file:{sha256}"]}
    ).fetchone()
    if owner is not None:
        return owner[0]
    row = connection.execute(SQL["insert_file_paper"], [f"file:{sha256}"]).fetchone()
    assert row is not None
    return row[0]
