"""The folder of a word index: one owner at a time, generations side by side, damage seen before it is read.

    word-index/<database>-<slot>/lock        held by the process that owns the slot
    word-index/<database>-<slot>/current     name of the generation that serves
    word-index/<database>-<slot>/g-000003/   one Tantivy index

A new generation is built beside the old one and becomes current by one rename, so that a killed build leaves the old one
in place. Several servers with one home take a slot each.
"""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path

from corpus.errors import BrainError
from search_server.words.lock import FolderLock

_MAGIC = 1337  # Tantivy's footer ends with its length and this number
MAX_SLOTS = 64
_CHUNK = 1 << 22


class WordIndexError(BrainError):
    """The word index's folder cannot be used."""


class WordFolder:
    """One slot below `word-index`, owned by this process until `release`."""

    def __init__(self, path: Path, lock: FolderLock | None) -> None:
        self.path = path
        self._lock = lock

    @property
    def is_owned(self) -> bool:
        """Whether this process may write."""
        return self._lock is not None

    @classmethod
    def take(cls, root: Path, database: str) -> WordFolder:
        """Take the first free slot of a database. Raises WordIndexError when the folder cannot be written."""
        for slot in range(MAX_SLOTS):
            path = root / f"{database}-{slot}"
            try:
                path.mkdir(parents=True, exist_ok=True)
                lock = FolderLock(path / "lock")
                if lock.acquire():
                    return cls(path, lock)
            except OSError as error:
                raise WordIndexError(
                    f"The word index's folder {path} cannot be written: {error.strerror or error}.",
                    mend="Free space there, or choose another BRAIN_HOME.",
                ) from error
        raise WordIndexError(
            f"{MAX_SLOTS} processes follow this database from {root} already.",
            mend="Stop some, or give another BRAIN_HOME.",
        )

    @classmethod
    def share(cls, root: Path, database: str) -> WordFolder | None:
        """The first slot that another process keeps in step, to be read only; None when there is none."""
        for slot in range(MAX_SLOTS):
            path = root / f"{database}-{slot}"
            if not (path / "lock").exists():
                return None
            lock = FolderLock(path / "lock")
            if lock.acquire():
                lock.release()
                continue
            folder = cls(path, None)
            if folder.current() is not None:
                return folder
        return None

    def release(self) -> None:
        """Let another process own the slot."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def current(self) -> Path | None:
        """The generation that serves."""
        try:
            name = (self.path / "current").read_text().strip()
        except OSError:
            return None
        path = self.path / name
        return path if name.startswith("g-") and "/" not in name and path.is_dir() else None

    def begin(self) -> Path:
        """An empty folder for the next generation; what killed builds left is removed."""
        serving = self.current()
        self.path.mkdir(parents=True, exist_ok=True)
        numbers = [int(p.name[2:]) for p in self.path.glob("g-*") if p.name[2:].isdigit()]
        for old in self.path.glob("g-*"):
            if old != serving:
                shutil.rmtree(old, ignore_errors=True)
        path = self.path / f"g-{max(numbers, default=0) + 1:06d}"
        path.mkdir()
        return path

    def switch(self, path: Path) -> None:
        """Let a finished generation serve, by one rename."""
        fresh = self.path / "current.new"
        fresh.write_text(path.name)
        fresh.replace(self.path / "current")

    def drop_old(self) -> None:
        """Remove all generations but the current one; searches that still hold an old one keep their open files."""
        serving = self.current()
        for old in self.path.glob("g-*"):
            if old != serving:
                shutil.rmtree(old, ignore_errors=True)


def damage(path: Path) -> str | None:
    """Say what is wrong with an index's files, or None: every segment file's checksum is compared with its footer."""
    try:
        meta = json.loads((path / "meta.json").read_bytes())
        segments = {s["segment_id"].replace("-", "") for s in meta["segments"]}
        present = {f.name.partition(".")[0] for f in path.iterdir() if len(f.name.partition(".")[0]) == 32}
        if missing := segments - present:
            return f"segment {min(missing)} is missing"
        for segment in segments:
            for suffix in ("idx", "term", "store", "fast", "fieldnorm"):
                if not (path / f"{segment}.{suffix}").exists():
                    return f"{segment}.{suffix} is missing"
        for file in path.iterdir():
            if file.name.partition(".")[0] in segments and (said := _file_damage(file)):
                return said
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _file_damage(file: Path) -> str | None:
    size = file.stat().st_size
    if size < 8:
        return f"{file.name} is cut off"
    with file.open("rb") as stream:
        stream.seek(size - 8)
        length, magic = struct.unpack("<II", stream.read(8))
        if magic != _MAGIC or length > size - 8:
            return f"{file.name} has no footer"
        stream.seek(size - 8 - length)
        footer = json.loads(stream.read(length))
        stream.seek(0)
        left, crc = size - 8 - length, 0
        while left > 0:
            part = stream.read(min(left, _CHUNK))
            crc = zlib.crc32(part, crc)
            left -= len(part)
    if crc != footer["crc"]:
        return f"{file.name} has another checksum than it promises"
    return None


def field_names(path: Path) -> list[str]:
    """The fields of an index, in their order, from its meta file. Raises what reading it raises."""
    return [field["name"] for field in json.loads((path / "meta.json").read_bytes())["schema"]]


def n_documents(path: Path) -> tuple[int, int]:
    """All documents of an index with the deleted ones, and the deleted ones, from its meta file."""
    meta = json.loads((path / "meta.json").read_bytes())
    everything = sum(s["max_doc"] for s in meta["segments"])
    deleted = sum((s.get("deletes") or {}).get("num_deleted_docs", 0) for s in meta["segments"])
    return everything, deleted
