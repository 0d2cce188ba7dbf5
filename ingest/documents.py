"""Stores what extraction made of a file, and finds out which paper the file is.

A file that names an arXiv id or DOI which another paper owns is that paper's full text if it has none yet, else another
copy of it, and says so. Titles must agree: a number that only looks like the paper's own hides nothing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from corpus.ids import implied_identifiers
from corpus.texts import paper_text, storable, text_sha256
from ingest.files import SQL
from ingest.papers import PRIORITY_BACKLOG, PRIORITY_NEW, lock_papers, remove_orphan_embeddings, write_abstracts
from ingest.text.result import Extraction

_NOT_WORD = re.compile(r"[\W_]+")
_NEW_ARXIV = re.compile(r"(\d\d)(?:0[1-9]|1[0-2])\.\d{4,5}")
_OLD_ARXIV = re.compile(r"[a-z.\-]+/(\d\d)(?:0[1-9]|1[0-2])\d{3}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Document:
    """A document with what is known of its paper."""

    document_id: int
    paper_pk: int
    sha256: str
    file_name: str | None
    verdict: str | None
    paper_id: str
    is_prefixed: bool
    title: str | None
    abstract: str | None
    text_sha256: bytes | None
    year: int | None
    url: str | None


@dataclass(frozen=True, slots=True)
class _Owner:
    """The paper that a file belongs to by its identifiers or its text."""

    paper_pk: int
    paper_id: str
    title: str | None
    has_document: bool = True


@dataclass(frozen=True, slots=True)
class Words:
    """A paper's title and abstract, and the text that they make."""

    title: str | None
    abstract: str | None

    @property
    def text(self) -> str | None:
        """What is embedded and searched of the paper."""
        return paper_text(self.title, self.abstract)

    @property
    def text_sha256(self) -> bytes | None:
        """The text's hash; None without one."""
        return text_sha256(self.text) if self.text is not None else None


@dataclass(frozen=True, slots=True)
class Stored:
    """Which paper a document ended with, and whether it is another copy of one."""

    paper_id: str
    verdict: str
    is_copy: bool = False


def store_extraction(
    connection: Connection[Any], document_id: int, extraction: Extraction, *, is_backlog: bool = True
) -> Stored | None:
    """Write an extraction in the caller's transaction; None when the document is gone meanwhile. Idempotent."""
    lock_papers(connection)
    document = _find_document(connection, document_id)
    if document is None:
        return None
    update_document(connection, document_id, extraction)
    if not extraction.is_ok:
        return Stored(document.paper_id, extraction.verdict)
    year, url = document.year, document.url
    if not document.is_prefixed:
        identifiers = _identifiers(extraction)
        owner = _find_owner(connection, document.paper_pk, identifiers, extraction)
        if owner is not None and owner.has_document:
            _mark_copy(connection, document, owner, extraction)
            return Stored(document.paper_id, extraction.verdict, is_copy=True)
        if owner is not None:
            document = _move(connection, document, owner)
        for kind, value in identifiers.items():
            connection.execute(SQL["insert_identifier"], [kind, value, document.paper_pk])
        year = document.year or _arxiv_year(identifiers.get("arxiv"))
        url = document.url or _url(identifiers)
    priority = PRIORITY_BACKLOG if is_backlog else PRIORITY_NEW
    words = Words(document.title or _storable(extraction.title), document.abstract or _storable(extraction.abstract))
    if words.text_sha256 != document.text_sha256:
        write_words(
            connection, document.paper_pk, words, old_hash=document.text_sha256, year=year, url=url, priority=priority
        )
    connection.execute(SQL["enqueue_chunk"], {"priority": priority, "document_id": document_id})
    return Stored(document.paper_id, extraction.verdict)


def write_words(
    connection: Connection[Any], paper_pk: int, words: Words, *, old_hash: bytes | None, year: int | None = None,
    url: str | None = None, priority: int,
) -> None:  # fmt: skip
    """Give the paper the words that its file states, with their passages and the work that follows."""
    values = {
        "paper_pk": paper_pk, "title": words.title, "abstract": words.abstract, "text": words.text,
        "text_sha256": words.text_sha256, "year": year, "url": url,
    }  # fmt: skip
    connection.execute(SQL["update_paper_from_document"], values)
    write_abstracts(connection, [(paper_pk, words.text)], old_hashes=[old_hash] if old_hash else [], priority=priority)


def _find_document(connection: Connection[Any], document_id: int) -> _Document | None:
    with connection.cursor(row_factory=class_row(_Document)) as cursor:
        return cursor.execute(SQL["select_document"], [document_id]).fetchone()


def _move(connection: Connection[Any], document: _Document, owner: _Owner) -> _Document:
    """Make the document the full text of its owner; the file's own paper goes, its key stays an alias."""
    values = {"from_pk": document.paper_pk, "to_pk": owner.paper_pk, "document_id": document.document_id}
    for query in ("move_document", "move_topics", "move_identifiers"):
        connection.execute(SQL[query], values)
    connection.execute(SQL["delete_paper"], [document.paper_pk])
    moved = _find_document(connection, document.document_id)
    assert moved is not None
    return moved


def update_document(connection: Connection[Any], document_id: int, extraction: Extraction) -> None:
    """Write the text of a document and how reading it went; its passages have to be cut again."""
    discard_draft(connection, document_id)
    connection.execute(SQL["update_extracted"], {"document_id": document_id, **extracted_columns(extraction)})


def extracted_columns(extraction: Extraction) -> dict[str, Any]:
    """What a document's row holds of an extraction, as the database can hold it."""
    text, n_replaced = storable(extraction.text)
    warnings = [storable(w)[0] for w in extraction.warnings]
    if n_replaced:
        warnings.append(f"unstorable_characters:{n_replaced}")
    return {
        "verdict": extraction.verdict, "reason": _storable(extraction.reason) or None, "warnings": warnings,
        "n_pages": extraction.n_pages or None, "text": text or None, "text_sha256": text_sha256(text) if text else None,
        "page_starts": list(extraction.page_starts),
        "sections": storable(json.dumps([s.to_json() for s in extraction.sections], ensure_ascii=False))[0].replace("\\u0000", "\ufffd"),
        "extractor_version": extraction.extractor_version,
    }  # fmt: skip


def discard_draft(connection: Connection[Any], document_id: int) -> None:
    """Let go of a text that was read anew and does not serve yet, with the embeddings that nobody else needs."""
    remove_orphan_embeddings(connection, take_draft(connection, document_id))


def take_draft(connection: Connection[Any], document_id: int) -> list[bytes]:
    """Remove a draft; the hashes of its passages, whose embeddings may be nobody's any more."""
    return [row[0] for row in connection.execute(SQL["discard_draft"], {"document_id": document_id}).fetchall()]


def _identifiers(extraction: Extraction) -> dict[str, str]:
    stated = {"doi": extraction.doi, "arxiv": extraction.arxiv_id}
    return implied_identifiers({kind: value for kind, value in stated.items() if value})


def _find_owner(
    connection: Connection[Any], paper_pk: int, identifiers: dict[str, str], extraction: Extraction
) -> _Owner | None:
    values: dict[str, Any] = {"paper_pk": paper_pk, "kinds": list(identifiers), "values": list(identifiers.values())}
    with connection.cursor(row_factory=class_row(_Owner)) as cursor:
        owner = cursor.execute(SQL["find_owner"], values).fetchone()
        if owner is not None and _agree(owner.title, extraction.title):
            return owner
        if not extraction.text.strip():
            return None
        values["text_sha256"] = text_sha256(storable(extraction.text)[0])
        return cursor.execute(SQL["find_same_text"], values).fetchone()


def _mark_copy(connection: Connection[Any], document: _Document, owner: _Owner, extraction: Extraction) -> None:
    connection.execute(
        SQL["set_same_as"],
        {"same_as": owner.paper_pk, "paper_pk": document.paper_pk, "title": _storable(extraction.title)},
    )
    reason = f"another copy of {owner.paper_id}" + (f" ({owner.title})" if owner.title else "")
    connection.execute(SQL["set_document_reason"], {"reason": reason, "document_id": document.document_id})


def _agree(one: str | None, other: str | None) -> bool:
    """Whether two titles can be the same: equal letters, or one begins with the other; an unknown one contradicts nothing."""
    a, b = (_NOT_WORD.sub("", unicodedata.normalize("NFKC", t or "")).casefold() for t in (one, other))
    return not a or not b or a == b or (min(len(a), len(b)) >= 20 and (a.startswith(b) or b.startswith(a)))


def _arxiv_year(arxiv_id: str | None) -> int | None:
    """The year of an arXiv id: its first two digits since 2007, and in the old form since 1991."""
    if not arxiv_id:
        return None
    if found := _NEW_ARXIV.fullmatch(arxiv_id):
        return 2000 + int(found.group(1))
    if found := _OLD_ARXIV.fullmatch(arxiv_id):
        year = int(found.group(1))
        return 1900 + year if year >= 91 else 2000 + year
    return None


def _url(identifiers: dict[str, str]) -> str | None:
    if arxiv := identifiers.get("arxiv"):
        return f"https://arxiv.org/abs/{arxiv}"
    return f"https://doi.org/{identifiers['doi']}" if identifiers.get("doi") else None


def _storable(text: str | None) -> str | None:
    return storable(text)[0] if text else None
