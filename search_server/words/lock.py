"""A lock on a folder that ends with its process, however that ends, and also keeps out a second owner in one process."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


class FolderLock:
    """Exclusive; `acquire` never waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> bool:
        """Take the lock; False when another holder has it. Raises OSError when the file cannot be made."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Give the lock back; calling it twice is fine."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None
