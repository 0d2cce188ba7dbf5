"""Two papers that turn out to be one: the older keeps its key and gets everything that the other had."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from ingest.papers import remove_orphan_embeddings
from sql import files

SQL = files.queries("works")
_MOVES = (
    "move_topics", "move_identifiers", "move_found", "move_lookups", "move_citations", "move_attempts", "move_copies",
    "move_works", "move_mark", "delete_fetch_jobs",
)  # fmt: skip


def absorb(connection: Connection[Any], from_pk: int, to_pk: int) -> None:
    """Move what a paper has to another one and delete it, in the caller's transaction; its key stays an alias.

    Passages of its document go along where the other has no full text; else the document is kept as another copy.
    """
    values = {"from_pk": from_pk, "to_pk": to_pk}
    row = connection.execute(SQL["has_ok_document"], [to_pk]).fetchone()
    is_copy = bool(row and row[0])
    connection.execute(SQL["move_documents"], values)
    if not is_copy:
        connection.execute(SQL["move_passages"], values)
    gone = [row[0] for row in connection.execute(SQL["delete_passages"], values).fetchall()]
    for name in _MOVES:
        connection.execute(SQL[name], values)
    gone += [row[0] for row in connection.execute(SQL["delete_paper"], values).fetchall() if row[0] is not None]
    remove_orphan_embeddings(connection, gone)
