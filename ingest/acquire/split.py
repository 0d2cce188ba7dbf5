"""Undoes a merge: what a person has taken apart stays apart, in this database and in every rebuild."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from corpus.errors import UsageError
from corpus.ids import parse_identifier
from ingest.acquire.desk import SQL
from ingest.acquire.facts import work_from_json
from ingest.acquire.works import WorksStored, merge_again
from ingest.merge import identifiers_of
from ingest.papers import lock_papers


def split_paper(connection: Connection[Any], paper: str, other: str) -> tuple[str, str]:
    """Make a paper of its own of the works with an identifier; gives both keys.

    The paper keeps its key, topics and documents. Raises UsageError when there is no such paper, or when no source
    gave a work with the identifier: then there is nothing that could be taken out.
    """
    found = parse_identifier(other)
    if found is None:
        raise UsageError(f"{other!r} is no identifier.", mend="Give the identifier that belongs to another paper.")
    with connection.transaction():
        lock_papers(connection)
        row = connection.execute(
            "SELECT p.paper_pk, p.paper_id FROM paper_resolve(ARRAY[%s]) r JOIN paper p USING (paper_pk) WHERE NOT p.is_prefixed",
            [paper],
        ).fetchone()
        if row is None:
            raise UsageError(f"There is no paper {paper!r}.", mend="`brain papers` lists them.")
        pk, own = row
        if found.key == own:
            raise UsageError(f"{own} is the paper's own key.", mend="Name an identifier of the other paper.")
        works = [
            (work_id, work_from_json(payload))
            for work_id, _, payload in connection.execute(
                SQL["select_works"], {"pks": [pk], "nodes": [], "title_keys": []}
            ).fetchall()
        ]
        out = [identifiers_of(work) for _, work in works if found.key in identifiers_of(work)]
        if not out:
            raise UsageError(
                f"No source gave a work of {own} with {found.key}.", mend="`brain paper ID --json` shows it."
            )
        kept = {node for _, work in works if found.key not in identifiers_of(work) for node in identifiers_of(work)}
        gone = {node for nodes in out for node in nodes} - kept - {own}
        connection.execute(SQL["insert_apart"], {"one": own, "other": found.key})
        connection.execute(SQL["delete_nodes"], {"pk": pk, "nodes": sorted(gone)})
        # What both were united by may be an identifier of the works that stay; each of them is kept apart from the other.
        merge_again(connection, sorted({own, *gone}), [], WorksStored())
        parted = connection.execute(
            "SELECT p.paper_id FROM paper_resolve(ARRAY[%s]) r JOIN paper p USING (paper_pk)", [found.key]
        ).fetchone()
    if parted is None or parted[0] == own:
        raise UsageError(f"{found.key} could not be taken out of {own}.")
    connection.execute(
        "INSERT INTO paper_topic (paper_pk, topic_id) SELECT n.paper_pk, t.topic_id FROM paper n, paper_topic t "
        "WHERE n.paper_id = %s AND t.paper_pk = %s ON CONFLICT DO NOTHING",
        [parted[0], pk],
    )
    return own, parted[0]
