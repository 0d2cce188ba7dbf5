"""Writes papers: rows, identifiers, topics, the passages of their abstracts, and the work that follows from them.

One batch is one transaction. Batches of all processes take turns by an advisory lock: two loads of the same papers in
opposite directions can then not wait for each other, and a batch takes a fraction of a second.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection

from corpus.passages import Section, cut_passages
from corpus.texts import text_sha256
from ingest.records import PaperRecord
from sql import files

SQL = files.queries("papers")
BATCH = 1000
PRIORITY_NEW = 10
PRIORITY_BACKLOG = 100
_SINGLE = 64  # that many papers at once are somebody waiting, not a backlog
_WRITE_LOCK = 0x70617065


@dataclass(slots=True)
class Written:
    """What became of the records of one or more batches."""

    n_new: int = 0
    n_changed: int = 0
    n_unchanged: int = 0

    def add(self, other: Written) -> None:
        """Sum up."""
        self.n_new += other.n_new
        self.n_changed += other.n_changed
        self.n_unchanged += other.n_unchanged


def lock_papers(connection: Connection[Any]) -> None:
    """Take this project's turn at writing papers, until the transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_WRITE_LOCK])


def write_papers(
    connection: Connection[Any], records: Sequence[PaperRecord], *, priority: int | None = None, is_exact: bool = False
) -> Written:
    """Write a batch, all or nothing. Idempotent; what changed is replaced, old words and embeddings go.

    Of several records with one key the last one counts. With `is_exact` records are papers as a database had them: each
    is its own key's paper, whoever else has one of its identifiers.
    """
    batch = sorted({record.paper_id: record for record in records}.values(), key=lambda record: record.paper_id)
    if not batch:
        return Written()
    if priority is None:
        priority = PRIORITY_NEW if len(batch) <= _SINGLE else PRIORITY_BACKLOG
    with connection.transaction():
        return _write_batch(connection, batch, priority, is_exact=is_exact)


def _write_batch(
    connection: Connection[Any], batch: list[PaperRecord], priority: int, *, is_exact: bool = False
) -> Written:
    lock_papers(connection)
    batch = batch if is_exact else _completed(connection, batch)
    _copy_incoming(connection, batch)
    old_text = dict(connection.execute(SQL["select_changed_texts"]).fetchall())
    rows = connection.execute(SQL["upsert_papers"]).fetchall()
    written = Written(n_new=sum(row[2] for row in rows), n_changed=sum(not row[2] for row in rows))
    written.n_unchanged = len(batch) - len(rows)
    pk_of = dict(connection.execute(SQL["select_incoming_pks"]).fetchall())
    _write_identifiers(connection, batch, pk_of)
    write_topics(connection, [(pk_of[r.paper_id], r.topics) for r in batch if r.topics is not None])
    is_new = {row[1] for row in rows if row[2]}
    refreshed = [r for r in batch if r.paper_id in is_new or r.paper_id in old_text]
    write_abstracts(
        connection,
        [(pk_of[r.paper_id], r.text) for r in refreshed],
        old_hashes=[digest for digest in old_text.values() if digest is not None],
        priority=priority,
    )
    return written


def write_topics(connection: Connection[Any], stated: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Make each paper's topics exactly the stated ones; names are used as given."""
    pairs = [(pk, name) for pk, names in stated for name in names]
    pks = sorted({pk for pk, _ in stated})
    if not pks:
        return
    connection.execute(SQL["insert_topics"], {"names": sorted({name for _, name in pairs})})
    values = {"pks": [pk for pk, _ in pairs], "names": [name for _, name in pairs], "all_pks": pks}
    connection.execute(SQL["delete_paper_topics"], values)
    connection.execute(SQL["insert_paper_topics"], values)


def write_abstracts(
    connection: Connection[Any], texts: Sequence[tuple[int, str | None]], *, old_hashes: Sequence[bytes], priority: int
) -> None:
    """Replace the abstract passages of papers, adopt the embeddings that are known already, queue the rest."""
    pks = [pk for pk, _ in texts]
    if not pks:
        return
    gone = [row[0] for row in connection.execute(SQL["delete_abstract_passages"], [pks]).fetchall()]
    hashes: list[bytes] = []
    with connection.cursor().copy(SQL["copy_abstract_passages"]) as copy:
        copy.set_types(["int8", "text", "int4", "int4", "int4", "text", "text", "bytea"])
        for pk, text in texts:
            if text is None:
                continue
            whole = Section(kind="abstract", title="abstract", char_start=0, char_end=len(text))
            for ordinal, piece in enumerate(cut_passages(text, [whole])):
                words = text[piece.char_start : piece.char_end]
                hashes.append(text_sha256(words))
                copy.write_row(
                    (pk, "abstract", ordinal, piece.char_start, piece.char_end, piece.section, words, hashes[-1])
                )
    remove_orphan_embeddings(connection, [*old_hashes, *gone])
    queue_embedding(
        connection, pks, hashes, [text_sha256(text) for _, text in texts if text is not None], priority=priority
    )


def queue_embedding(
    connection: Connection[Any], paper_pks: Sequence[int], passage_hashes: Sequence[bytes], paper_hashes: Sequence[bytes],
    *, priority: int,
) -> None:  # fmt: skip
    """Adopt known embeddings and queue the missing ones, for the active encoder and every one that is being filled."""
    for encoder_id, state in connection.execute(SQL["select_encoders"]).fetchall():
        values = {
            "encoder_id": encoder_id, "pks": list(paper_pks), "paper_hashes": list(paper_hashes),
            "passage_hashes": list(passage_hashes), "priority": priority if state == "active" else 200,
        }  # fmt: skip
        connection.execute(SQL["adopt"], values)
        connection.execute(SQL["enqueue"], values)


def remove_orphan_embeddings(connection: Connection[Any], hashes: Sequence[bytes]) -> None:
    """Let the embeddings of texts go that no paper and no passage has any more."""
    if hashes:
        connection.execute(SQL["delete_orphan_paper_embeddings"], [sorted(set(hashes))])
        connection.execute(SQL["delete_orphan_passage_embeddings"], [sorted(set(hashes))])


def _completed(connection: Connection[Any], batch: Sequence[PaperRecord]) -> list[PaperRecord]:
    """The batch as it will be stored.

    A record without prefix means the paper that owns one of its identifiers, and what it does not state stays as it is;
    a prefixed one is taken to the letter.
    """
    open_records = [r for r in batch if not r.is_prefixed]
    if not open_records:
        return list(batch)
    owners = find_owners(connection, open_records)
    done = {r.paper_id: r for r in batch if r.is_prefixed}
    # A key that stands for a paper already means that paper, whoever else has one of its identifiers.
    for (key,) in connection.execute(SQL["select_keys"], [sorted(owners)]).fetchall():
        owners[key] = key
    stored = {
        row[0]: row
        for row in connection.execute(
            SQL["select_stored"], [sorted({owners.get(r.paper_id, r.paper_id) for r in open_records})]
        )
    }
    for r in open_records:
        key = owners.get(r.paper_id, r.paper_id)
        old = stored.get(key)
        earlier = done.get(key)
        if old is not None or earlier is not None:
            _, title, abstract, authors, year, venue, url, raw = old or (None, None, None, [], None, None, None, {})
            base = earlier or PaperRecord(
                key, title=title, abstract=abstract, authors=tuple(authors), year=year, venue=venue, url=url, raw=raw
            )
            r = replace(  # noqa: PLW2901 - the completed record takes its place
                r, title=r.title or base.title, abstract=r.abstract or base.abstract, authors=r.authors or base.authors,
                year=r.year or base.year, venue=r.venue or base.venue, url=r.url or base.url,
                raw={**base.raw, **r.raw}, identifiers={**base.identifiers, **r.identifiers},
            )  # fmt: skip
        done[key] = replace(r, paper_id=key)
    return sorted(done.values(), key=lambda record: record.paper_id)


def find_owners(connection: Connection[Any], records: Sequence[PaperRecord]) -> dict[str, str]:
    """For each record's key the key of the paper that owns one of its identifiers already (the earliest one)."""
    asked = [(r.paper_id, kind, value) for r in records for kind, value in r.identifiers.items()]
    asked += [(r.paper_id, "key", r.paper_id) for r in records]
    rows = connection.execute(
        SQL["select_owners"],
        {"keys": [a[0] for a in asked], "kinds": [a[1] for a in asked], "values": [a[2] for a in asked]},
    )
    return dict(rows.fetchall())


def _copy_incoming(connection: Connection[Any], batch: Sequence[PaperRecord]) -> None:
    connection.execute(SQL["create_incoming"])
    with connection.cursor().copy(SQL["copy_incoming"]) as copy:
        for r in batch:
            text = r.text
            copy.write_row(
                (
                    r.paper_id, r.kind, r.is_prefixed, r.title, r.abstract, text,
                    text_sha256(text) if text is not None else None, list(r.authors), r.year, r.venue, r.url,
                    json.dumps(r.raw, ensure_ascii=False),
                )
            )  # fmt: skip


def _write_identifiers(connection: Connection[Any], batch: Sequence[PaperRecord], pk_of: dict[str, int]) -> None:
    rows = [(kind, value, pk_of[r.paper_id]) for r in batch for kind, value in sorted(r.identifiers.items())]
    connection.execute(
        SQL["replace_identifiers"],
        {
            "kinds": [row[0] for row in rows], "values": [row[1] for row in rows], "pks": [row[2] for row in rows],
            "all_pks": sorted(pk_of.values()),
        },
    )  # fmt: skip
