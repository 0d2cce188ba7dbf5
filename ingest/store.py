"""The store: every full text once, by the sha256 of its bytes, under a folder or any fsspec URL.

A file `aa/bb/<sha256>` is whole or not there: bytes go to a temporary name, are flushed to the disk, and are renamed.
What is read is checked against its name. Together with the seed files the store is all that a rebuild needs.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

from corpus.errors import StoreDamaged, StoreError, StoreMissing

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BLOCK = 1 << 20
_TEMPORARY = "tmp"


class _Backend(Protocol):
    """Where the bytes lie; names are relative, with `/`."""

    def open(self, name: str) -> BinaryIO: ...
    def write(self, name: str, source: BinaryIO) -> str: ...
    def remove(self, name: str) -> None: ...
    def iter_names(self) -> Iterator[str]: ...


class Store:
    """Full-text files by sha256 under a folder or an fsspec URL (`s3://bucket/brain`, `memory://x`, …)."""

    def __init__(self, url: str | Path) -> None:
        text = str(url)
        self.url = text
        if "://" in text and not text.startswith("file://"):
            self._backend: _Backend = _RemoteFiles(text)
            self.folder: Path | None = None
        else:
            self.folder = Path(text.removeprefix("file://")).expanduser().absolute()
            self._backend = _LocalFiles(self.folder)
        self._fetched: tempfile.TemporaryDirectory[str] | None = None

    def put_file(self, path: str | Path) -> str:
        """Keep a copy of the file and give its sha256; a file that is there already is not written again."""
        with Path(path).open("rb") as source:
            return self._put(source)

    def put_bytes(self, content: bytes) -> str:
        """Keep the bytes and give their sha256; see `put_file`."""
        return self._put(io.BytesIO(content))

    def _put(self, source: BinaryIO) -> str:
        sha256 = _digest(source)
        if not self.has(sha256, intact=True):
            source.seek(0)
            written = self._backend.write(_name(sha256), source)
            if written != sha256:
                self._backend.remove(_name(sha256))
                raise StoreError("A file changed while it was copied into the store.", mend="Put it again.")
        return sha256

    def has(self, sha256: str, *, intact: bool = False) -> bool:
        """Whether the store holds the file; with `intact`, whether it also holds the right bytes."""
        try:
            with self._backend.open(_name(sha256)) as file:
                return not intact or _digest(file) == sha256
        except FileNotFoundError:
            return False

    def open(self, sha256: str) -> BinaryIO:
        """Open the file for reading, after its bytes were checked. Raises StoreMissing, StoreDamaged."""
        try:
            file = self._backend.open(_name(sha256))
        except FileNotFoundError as cause:
            raise StoreMissing(
                f"The store {self.url} has no file {sha256}.",
                mend="`brain ingest` fetches it again; see `brain doctor`.",
            ) from cause
        found = _digest(file)
        if found != sha256:
            file.close()
            raise StoreDamaged(
                f"The file {sha256} in the store {self.url} holds other bytes (sha256 {found}).",
                mend="Put the right file again: a good copy replaces it.",
            )
        file.seek(0)
        return file

    def read(self, sha256: str) -> bytes:
        """Give the file's bytes, checked. Raises StoreMissing, StoreDamaged."""
        with self.open(sha256) as file:
            return file.read()

    def local_path(self, sha256: str) -> Path:
        """Give a path of this machine that holds the checked bytes; for a remote store, of a copy that ends with it.

        The file is read-only for the caller. Raises StoreMissing, StoreDamaged.
        """
        with self.open(sha256) as file:
            if self.folder is not None:
                return self.folder / _name(sha256)
            if self._fetched is None:
                self._fetched = tempfile.TemporaryDirectory(prefix="brain-store-")
            path = Path(self._fetched.name) / sha256
            if not path.exists():
                part = path.with_suffix(f".{uuid.uuid4().hex}")
                part.write_bytes(file.read())
                part.replace(path)
            return path

    def iter_sha256(self) -> Iterator[str]:
        """Stream the names of all files, in no order; bytes are not checked."""
        for name in self._backend.iter_names():
            sha256 = name.rpartition("/")[2]
            if _SHA256.fullmatch(sha256) and name == _name(sha256):
                yield sha256

    def remove(self, sha256: str) -> None:
        """Forget the file; nothing happens when it is not there."""
        self._backend.remove(_name(sha256))


def _name(sha256: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise StoreMissing(f"{sha256[:80]!r} is no sha256.", mend="Files are named by 64 lower-case hex digits.")
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


def _digest(file: BinaryIO) -> str:
    return hashlib.file_digest(cast("Any", file), "sha256").hexdigest()


def _copy(source: BinaryIO, target: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := source.read(_BLOCK):
        digest.update(block)
        target.write(block)
    return digest.hexdigest()


class _LocalFiles:
    """Files below one folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str) -> BinaryIO:
        try:
            return (self._folder / name).open("rb")
        except NotADirectoryError as cause:
            raise FileNotFoundError(name) from cause

    def write(self, name: str, source: BinaryIO) -> str:
        target = self._folder / name
        part = self._folder / _TEMPORARY / uuid.uuid4().hex
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            with part.open("xb") as file:
                sha256 = _copy(source, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
            # The name itself must survive a power cut as well, up to the store's own folder.
            for folder in (target.parent, target.parent.parent, self._folder):
                _flush_folder(folder)
        except OSError as cause:
            raise StoreError(
                f"The store {self._folder} cannot be written: {cause.strerror or cause}.",
                mend="Give it room and the right to write, then run the command again.",
            ) from cause
        finally:
            part.unlink(missing_ok=True)
        return sha256

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def iter_names(self) -> Iterator[str]:
        for path in self._folder.glob("??/??/*"):
            yield path.relative_to(self._folder).as_posix()


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _RemoteFiles:
    """Files below an fsspec URL; reading takes the whole file, because it has to be checked anyway."""

    def __init__(self, url: str) -> None:
        import fsspec.core

        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as cause:
            raise StoreError(
                f"The store {url} cannot be used: {cause}.", mend="Install the package it names."
            ) from cause

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def open(self, name: str) -> BinaryIO:
        # Listings of remote folders are kept by fsspec and would hide what another machine has put.
        self._fs.invalidate_cache()
        return io.BytesIO(cast("bytes", self._fs.cat_file(self._path(name))))

    def write(self, name: str, source: BinaryIO) -> str:
        part, target = self._path(f"{_TEMPORARY}/{uuid.uuid4().hex}"), self._path(name)
        try:
            self._fs.makedirs(part.rpartition("/")[0], exist_ok=True)
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            with self._fs.open(part, "wb") as file:
                sha256 = _copy(source, cast("IO[bytes]", file))
            self._fs.mv(part, target)
        except OSError as cause:
            raise StoreError(
                f"The store {self._root} cannot be written: {cause}.", mend="Check its rights and room."
            ) from cause
        finally:
            self._fs.invalidate_cache()
            if self._fs.exists(part):
                self._fs.rm(part)
        return sha256

    def remove(self, name: str) -> None:
        if self._fs.exists(self._path(name)):
            self._fs.rm(self._path(name))

    def iter_names(self) -> Iterator[str]:
        self._fs.invalidate_cache()
        if not self._fs.exists(self._root):
            return
        for path in cast("list[str]", self._fs.find(self._root)):
            yield path.removeprefix(self._root.rstrip("/") + "/")
