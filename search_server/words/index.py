"""One word index on disk: opened when it is whole and of this database, changed in commits that hold their own memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import tantivy

from search_server.words import layout
from search_server.words.folder import WordFolder, damage, field_names, n_documents
from search_server.words.layout import IndexRow, Memory
from search_server.words.search import Reader

_BUILD_HEAP = 50_000_000
_FOLLOW_HEAP = 20_000_000


class IndexDamaged(Exception):
    """The index's files cannot be believed."""


class Generation:
    """One generation: a Tantivy index with its memory. Written by one thread, read by many."""

    def __init__(self, path: Path, index: tantivy.Index, memory: Memory | None, *, may_write: bool) -> None:
        self.path = path
        self.memory = memory
        self._index = index
        self._may_write = may_write
        self._writer: tantivy.IndexWriter | None = None
        self._heap = _FOLLOW_HEAP
        self.reader: Reader | None = None

    @classmethod
    def create(cls, path: Path) -> Generation:
        """Begin an empty index in an empty folder."""
        made = cls(path, layout.open_index(str(path), create=True), None, may_write=True)
        made._heap = _BUILD_HEAP
        return made

    @classmethod
    def open(cls, path: Path, *, may_write: bool) -> Generation:
        """Open an index that was committed before. Raises IndexDamaged with what is wrong."""
        if said := damage(path):
            raise IndexDamaged(said)
        if field_names(path) != list(layout.FIELDS):
            raise IndexDamaged("it has the fields of another version")
        try:
            index = layout.open_index(str(path), create=False)
            found = cls(path, index, None, may_write=may_write)
            found._load_memory()
            found.refresh()
        except IndexDamaged:
            raise
        except BaseException as error:
            # Tantivy's panics are no Exception; those of the interpreter are not for us.
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise IndexDamaged(f"{type(error).__name__}: {error}") from error
        return found

    def _load_memory(self) -> None:
        self._index.reload()
        searcher = self._index.searcher()
        query = tantivy.Query.term_query(layout.schema(), "state", layout.STATE, "basic")
        hits = searcher.search(query, 2, count=False).hits
        if len(hits) != 1:
            raise IndexDamaged(f"it holds {len(hits)} memories")
        memory = searcher.doc(hits[0][1]).get_first("memory")
        try:
            self.memory = Memory.from_json(str(memory))
        except (ValueError, TypeError, KeyError) as error:
            raise IndexDamaged(f"its memory is of another version: {error}") from error

    def refresh(self) -> None:
        """Let searches see the last commit."""
        self._index.reload()
        everything, _ = n_documents(self.path)
        self.reader = Reader(self._index.searcher(), n_all=everything)

    def replace(self, pks: Iterable[int], rows: Iterable[IndexRow]) -> int:
        """Take out the papers and put the rows in; nothing is seen before `commit`. Returns the rows put in."""
        writer = self._get_writer()
        if papers := list(pks):
            # By query: a term made from a Python int would be of the signed kind and meet nothing.
            writer.delete_documents_by_query(tantivy.Query.term_set_query(layout.schema(), "paper", papers))
        n = 0
        for row in rows:
            writer.add_document(layout.to_document(row))
            n += 1
        return n

    def commit(self, memory: Memory) -> None:
        """Make all changes since the last commit durable, together with the memory of the snapshot they are from."""
        writer = self._get_writer()
        writer.delete_documents_by_term("state", layout.STATE)
        writer.add_document(layout.state_document(memory))
        writer.commit()
        self.memory = memory
        self.refresh()

    def rollback(self) -> None:
        """Forget changes that were not committed."""
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.rollback()

    def needs_rebuild(self) -> bool:
        """Whether deleted passages take too much of the disk, or weigh too much where scores are not asked for exactly."""
        everything, deleted = n_documents(self.path)
        return deleted > 64 + 0.2 * (everything - deleted)

    def close(self) -> None:
        """Give the writer's lock back. Readers stay usable."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(Exception):
                writer.rollback()
            del writer

    def finish_build(self) -> None:
        """After the first commit: go on with the small memory of a follower."""
        self.close()
        self._heap = _FOLLOW_HEAP

    def _get_writer(self) -> tantivy.IndexWriter:
        if not self._may_write:
            raise RuntimeError("this index is another process's: it is read only")
        if self._writer is None:
            self._writer = self._index.writer(self._heap, 1)
        return self._writer


def open_current(folder: WordFolder) -> Generation | None:
    """The generation that serves; None where there is none yet. Raises IndexDamaged."""
    path = folder.current()
    return None if path is None else Generation.open(path, may_write=folder.is_owned)
