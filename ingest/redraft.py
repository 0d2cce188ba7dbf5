"""Writes what today's extractor made of a document that an older one read before.

While the older text serves, the new one waits beside it as a draft with passages of its own, which are embedded like any
others. When the last one is, the database puts text, pages and passages in place at once (`sql/functions/drafts.sql`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection
from psycopg.rows import class_row

from corpus.passages import Section, cut_passages
from corpus.texts import storable, text_sha256
from ingest.documents import (
    Words,
    discard_draft,
    extracted_columns,
    store_extraction,
    take_draft,
    update_document,
    write_words,
)
from ingest.files import SQL as DOCUMENTS
from ingest.papers import PRIORITY_BACKLOG, lock_papers, remove_orphan_embeddings
from ingest.text.result import Extraction
from sql import files

SQL = files.queries("reextract")

Became = Literal["same", "changed", "waiting", "kept", "refused", "gone"]
"""same: the same text; changed: the new text serves; waiting: it does when it is embedded; kept: no usable text today, the
older one stays; refused: no usable text, as before; gone: no document any more, or read by somebody else meanwhile."""


@dataclass(frozen=True, slots=True)
class _Now:
    """A document and its paper as the database has them."""

    document_id: int
    paper_pk: int
    verdict: str | None
    text_sha256: bytes | None
    sections: list[dict[str, Any]]
    page_starts: list[int]
    is_cut: bool
    version: int | None
    is_copy: bool
    title: str | None
    abstract: str | None
    words_sha256: bytes | None
    is_title_of_file: bool
    is_abstract_of_file: bool


def store_reextraction(
    connection: Connection[Any], document_id: int, extraction: Extraction, *, is_all: bool = False
) -> Became:
    """Write an extraction beside, or in place of, an older one, in the caller's transaction. Idempotent.

    Without `is_all` a document that somebody else has read by the same version meanwhile is left alone.
    """
    lock_papers(connection)
    with connection.cursor(row_factory=class_row(_Now)) as cursor:
        now = cursor.execute(SQL["lock_document"], [document_id]).fetchone()
    is_meant = is_all or (now is not None and now.verdict == "needs_ocr" and extraction.is_ok)
    if now is None or (not is_meant and (now.version or 0) >= extraction.extractor_version):
        return "gone"
    columns = {"document_id": document_id, **extracted_columns(extraction)}
    if not extraction.is_ok:
        if now.text_sha256 is None:
            update_document(connection, document_id, extraction)
            return "refused"
        discard_draft(connection, document_id)
        connection.execute(SQL["set_kept"], {**columns, "warning": f"older_text:{extraction.verdict}"})
        return "kept"
    if now.text_sha256 is None:
        store_extraction(connection, document_id, extraction)
        return "changed"
    words = _words(now, extraction)
    is_same = (columns["text_sha256"], json.loads(columns["sections"]), columns["page_starts"]) == (
        now.text_sha256, now.sections, now.page_starts,
    )  # fmt: skip
    if is_same and words is None:
        discard_draft(connection, document_id)
        connection.execute(SQL["set_read"], columns)
        return "same"
    if not now.is_cut:  # nothing of the older text is searched for
        update_document(connection, document_id, extraction)
        if words is not None:
            write_words(connection, now.paper_pk, words, old_hash=now.words_sha256, priority=PRIORITY_BACKLOG)
        if not now.is_copy:
            connection.execute(DOCUMENTS["enqueue_chunk"], {"priority": PRIORITY_BACKLOG, "document_id": document_id})
        return "changed"
    gone = take_draft(connection, document_id)
    connection.execute(SQL["insert_draft"], {**columns, "base_sha256": now.words_sha256, **_columns_of(words)})
    _insert_passages(connection, document_id, "document", columns["text"], extraction.sections, extraction.page_starts)
    if words is not None and words.text is not None:
        whole = Section("abstract", "abstract", 0, len(words.text))
        _insert_passages(connection, document_id, "abstract", words.text, [whole], [])
    remove_orphan_embeddings(connection, gone)  # not before: the new draft needs most of them
    row = connection.execute(SQL["want"], {"document_id": document_id, "priority": PRIORITY_BACKLOG}).fetchone()
    return "changed" if row and row[0] else "waiting"


def _words(now: _Now, extraction: Extraction) -> Words | None:
    """The paper's words where the file gave them before and gives others now."""
    title, abstract = now.title, now.abstract
    if now.is_title_of_file and extraction.title:
        title = storable(extraction.title)[0]
    if now.is_abstract_of_file and extraction.abstract:
        abstract = storable(extraction.abstract)[0]
    words = Words(title, abstract)
    return words if words.text_sha256 not in {None, now.words_sha256} else None


def _columns_of(words: Words | None) -> dict[str, Any]:
    if words is None:
        return {"has_words": False, "title": None, "abstract": None, "paper_text": None}
    return {"has_words": True, "title": words.title, "abstract": words.abstract, "paper_text": words.text}


def _insert_passages(
    connection: Connection[Any], document_id: int, part: str, text: str, sections: Sequence[Section],
    page_starts: Sequence[int],
) -> None:  # fmt: skip
    slices = cut_passages(text, sections, page_starts)
    texts = [text[each.char_start : each.char_end] for each in slices]
    connection.execute(
        SQL["insert_passage_drafts"],
        {
            "document_id": document_id, "part": part, "texts": texts, "hashes": [text_sha256(each) for each in texts],
            "starts": [each.char_start for each in slices], "ends": [each.char_end for each in slices],
            "sections": [each.section for each in slices], "pages_from": [each.page_from for each in slices],
            "pages_to": [each.page_to for each in slices],
        },
    )  # fmt: skip
