"""`brain mark`: the reader's own marks on papers."""

from __future__ import annotations

from typing import Literal

from brain.common import Db, get_database, say


def mark(paper_id: str, what: Literal["star", "read", "skip", "none"], /, *, db: Db = None) -> int:
    """Mark a paper with star, read or skip; `none` takes the mark away. It is written into the seed files on export.

    Example: `brain mark arxiv:2005.11401 star`.
    """
    from corpus.errors import UsageError
    from ingest.acquire.desk import SQL

    with get_database(db).connect() as connection:
        row = connection.execute(SQL["set_mark"], {"id": paper_id, "mark": None if what == "none" else what}).fetchone()
    if row is None:
        raise UsageError(f"There is no paper {paper_id!r}.", mend="`brain papers` lists them.")
    say(f"{row[0]}\t{what}\t{row[1] or ''}")
    return 0


def split(paper_id: str, identifier: str, /, *, db: Db = None) -> int:
    """Undo a merge: take the works with an identifier out of a paper; they stay apart for good.

    Example: `brain split arxiv:2005.11401 10.1000/other-paper`.
    """
    from ingest.acquire.split import split_paper

    with get_database(db).connect() as connection:
        own, parted = split_paper(connection, paper_id, identifier)
    say(f"{own} and {parted} are two papers now")
    return 0
