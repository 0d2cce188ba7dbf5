"""The user's cache: where weights and converted models lie, shared by every checkout, safe for two processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from corpus.errors import EncoderUnavailable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how far it is, and how far it goes (bytes or steps; 0 when unknown)."""

_BLOCK = 1 << 20
_LOCK_POLL_S = 0.2


def silent(what: str, done: int, total: int) -> None:
    """Show nothing: the Progress of who does not care."""


def default_cache() -> Path:
    """Return `BRAIN_CACHE`, else `research-brain` in the folder where this platform keeps users' caches."""
    if given := os.environ.get("BRAIN_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "research-brain" / "cache"
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "research-brain"


def sha256_of(path: Path, progress: Progress = silent) -> str:
    """Hash a file, as lower-case hex."""
    total, done = path.stat().st_size, 0
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            progress(f"checking {path.name}", done, total)
    return digest.hexdigest()


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def locked(path: Path, *, what: str, progress: Progress = silent) -> Iterator[None]:
    """Hold a lock that dies with its process; wait while another process holds it.

    The lock file stays: removing it would let two processes hold "the" lock on two files of one name.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise EncoderUnavailable(
            f"The cache folder {path.parent} cannot be written: {error.strerror}.",
            mend="Set BRAIN_CACHE to a folder that can.",
        ) from error
    with file:
        while not _try_lock(file):
            progress(f"waiting for another process: {what}", 0, 0)
            time.sleep(_LOCK_POLL_S)
        yield


def replace_folder(new: Path, place: Path) -> None:
    """Put a finished folder in its place in one step; what stood there goes. The caller holds the lock."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = place.with_name(f"{place.name}.old-{os.getpid()}")
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or folder, present or not."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
