"""Papers as a database had them: what an exported seed entry says, exactly, and how it is written back.

Ordinary intake decides what a record means: whose identifier it has, which copy a file is. Here all that was decided
before; nothing is merged, moved or completed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection

from corpus.errors import InputError
from corpus.ids import implied_identifiers, parse_identifier
from ingest.papers import Written, lock_papers, write_papers
from ingest.records import IDENTIFIER_KINDS, KINDS, PaperRecord, parse_year
from sql import files

SQL = files.queries("rebuild")
_MARKS = {"star", "read", "skip"}


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One full-text file of a paper, by its bytes."""

    paper_id: str
    sha256: str
    file_name: str | None = None
    source_url: str | None = None
    licence: str | None = None
    content_type: str | None = None
    reason: str | None = None
    n_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class StoredPaper:
    """One paper with everything that the database had of it, its words and files by their hash."""

    record: PaperRecord
    facts: Mapping[str, Any]
    identifiers: Sequence[tuple[str, str]]
    documents: Sequence[StoredDocument]
    same_as: str | None = None
    is_wordless: bool = False


def is_stored(entry: Mapping[str, Any]) -> bool:
    """Whether a database wrote this entry."""
    return entry.get("is_stored") is True and isinstance(entry.get("id"), str) and bool(entry["id"])


def read_stored(entry: Mapping[str, Any]) -> StoredPaper:
    """Read an entry that a database wrote. Raises InputError for values of a wrong type, as after an edit by hand."""
    paper_id = entry["id"]
    try:
        by_kind = {kind: str(entry[kind]) for kind in IDENTIFIER_KINDS if entry.get(kind)}
        own = parse_identifier(paper_id) if not entry.get("is_prefixed") else None
        if own is not None and own.kind in IDENTIFIER_KINDS:
            by_kind.setdefault(own.kind, own.value)
        more = [tuple(str(text).split(":", 1)) for text in entry.get("identifiers") or ()]
        record = PaperRecord(
            paper_id=paper_id, is_prefixed=entry.get("is_prefixed") is True, title=_text(entry, "title"),
            kind=entry["kind"] if entry.get("kind") in KINDS else "paper", abstract=_text(entry, "abstract"),
            authors=tuple(str(name) for name in entry.get("authors") or ()), year=parse_year(entry.get("year")),
            venue=_text(entry, "venue"), url=_text(entry, "url"), identifiers=implied_identifiers(by_kind),
            raw=dict(entry.get("raw") or {}),
        )  # fmt: skip
        facts = {
            "published_on": _text(entry, "published_on"), "n_citations": entry.get("n_citations"),
            "velocity": entry.get("velocity"), "tldr": _text(entry, "tldr"), "licence": _text(entry, "licence"),
            "is_retracted": entry.get("is_retracted") is True, "mark": entry["mark"] if entry.get("mark") in _MARKS else None,
            "provenance": json.dumps(entry.get("provenance") or {}, ensure_ascii=False),
        }  # fmt: skip
        identifiers = [(kind, value) for kind, value in more if value]
        identifiers += [("key", str(value)) for value in entry.get("aliases") or ()]
        documents = [_document(paper_id, row) for row in _documents(entry)]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"the entry {str(paper_id)[:80]!r} cannot be read: {type(error).__name__}: {error}") from error
    return StoredPaper(record, facts, identifiers, documents, _text(entry, "same_as"), entry.get("is_wordless") is True)


def _text(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"its {name} is no text")
    return value


def _documents(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    first = entry.get("document")
    if first is None and entry.get("sha256"):
        first = {"sha256": entry["sha256"], "file_name": entry.get("file_name"), "source_url": entry.get("pdf_url")}
    return [*([first] if first else []), *(entry.get("documents") or ())]


def _document(paper_id: str, row: Mapping[str, Any]) -> StoredDocument:
    sha256 = str(row["sha256"]).lower()
    bytes.fromhex(sha256)
    names = ("file_name", "source_url", "licence", "content_type", "reason")
    return StoredDocument(paper_id, sha256, n_bytes=row.get("n_bytes"), **{name: _text(row, name) for name in names})


def write_stored(connection: Connection[Any], papers: Sequence[StoredPaper], topic: str | None) -> Written:
    """Write a batch of papers of one topic's file in one transaction. Idempotent."""
    with connection.transaction():
        written = write_papers(connection, [paper.record for paper in papers if not paper.is_wordless], is_exact=True)
        written.add(_write_wordless(connection, [paper.record for paper in papers if paper.is_wordless]))
        ids = [paper.record.paper_id for paper in papers]
        columns = {name: [paper.facts[name] for paper in papers] for name in papers[0].facts}
        connection.execute(SQL["set_facts"], {"ids": ids, **columns})
        more = [(paper.record.paper_id, kind, value) for paper in papers for kind, value in paper.identifiers]
        if more:
            values = {"ids": [m[0] for m in more], "kinds": [m[1] for m in more], "values": [m[2] for m in more]}
            connection.execute(SQL["insert_identifiers"], values)
        if topic is not None:
            connection.execute(SQL["insert_paper_topics"], {"ids": ids, "names": [topic] * len(ids)})
    return written


def _write_wordless(connection: Connection[Any], records: Sequence[PaperRecord]) -> Written:
    """Papers that have a title and no text of their own, because another paper has it."""
    known = {row[0] for row in connection.execute(SQL["list_keys"], [[r.paper_id for r in records]]).fetchall()}
    fresh = [r for r in records if r.paper_id not in known]
    written = write_papers(connection, [replace(r, title=None, abstract=None) for r in fresh], is_exact=True)
    if fresh:
        values = {
            "ids": [r.paper_id for r in fresh],
            "titles": [r.title for r in fresh],
            "abstracts": [r.abstract for r in fresh],
        }
        connection.execute(SQL["set_wordless"], values)
    written.n_unchanged += len(records) - len(fresh)
    return written


def write_same_as(connection: Connection[Any], pairs: Iterable[tuple[str, str]]) -> None:
    """Say which paper each copy is another copy of, once all of them are there."""
    known = list(pairs)
    if known:
        with connection.transaction():
            lock_papers(connection)
            values = {"ids": [pair[0] for pair in known], "owners": [pair[1] for pair in known]}
            connection.execute(SQL["set_same_as"], values)


def write_documents(connection: Connection[Any], documents: Sequence[StoredDocument], sizes: Mapping[str, int]) -> None:
    """Write the rows of files that the store has; they are read afterwards. Idempotent."""
    rows = [
        {
            "paper_id": each.paper_id, "sha256": bytes.fromhex(each.sha256), "file_name": each.file_name,
            "source_url": each.source_url, "licence": each.licence, "content_type": each.content_type, "reason": each.reason,
            "n_bytes": each.n_bytes if each.n_bytes is not None else sizes.get(each.sha256, 0),
        }
        for each in documents
    ]  # fmt: skip
    if rows:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(SQL["insert_document"], rows)
