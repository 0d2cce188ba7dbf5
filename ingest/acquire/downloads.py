"""Downloads that outlive the run: what came whole is kept until its paper is written, so that no kill costs it again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from ingest.http.body import Downloaded
from ingest.http.fetcher import Fetcher

_KEPT_FOR_S = 7 * 86400.0


class Downloads:
    """What the finder downloads through; `folder` belongs to the user's state and survives the process."""

    def __init__(self, fetcher: Fetcher, folder: Path) -> None:
        self._fetcher = fetcher
        self._folder = folder
        self._base = fetcher.settings.base_url or ""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._drop_old()

    async def download(
        self, url: str, to_dir: str | Path, max_bytes: int | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Downloaded:
        """As `Fetcher.download`; a file that an earlier run got and did not come to write is taken without asking."""
        if (kept := self._find(url, Path(to_dir))) is not None:
            return kept
        got = await self._fetcher.download(url, to_dir, max_bytes, headers=headers)
        self._keep(url, got)
        return got

    def forget(self, urls: Iterable[str]) -> None:
        """Let files go whose fate is written."""
        for url in urls:
            for path in self._paths(url):
                path.unlink(missing_ok=True)

    def _paths(self, url: str) -> tuple[Path, Path]:
        name = hashlib.sha256(f"{self._base} {url}".encode()).hexdigest()[:40]
        return self._folder / f"{name}.bytes", self._folder / f"{name}.json"

    def _find(self, url: str, to_dir: Path) -> Downloaded | None:
        data, note = self._paths(url)
        try:
            said = json.loads(note.read_text())
            if data.stat().st_size != said["n_bytes"]:
                return None
            to_dir.mkdir(parents=True, exist_ok=True)
            path = to_dir / said["path"]
            if not path.exists():
                _link(data, path)
            return Downloaded(path, said["sha256"], said["content_type"], said["final_url"], said["n_bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _keep(self, url: str, got: Downloaded) -> None:
        data, note = self._paths(url)
        with contextlib.suppress(OSError):  # a full disk costs the memory of the download, not the download
            fresh = data.with_suffix(f".{os.getpid()}")
            fresh.unlink(missing_ok=True)
            _link(got.path, fresh)
            fresh.replace(data)
            told = note.with_suffix(f".{os.getpid()}.json")
            told.write_text(json.dumps({**asdict(got), "path": got.path.name}))
            told.replace(note)

    def _drop_old(self) -> None:
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - _KEPT_FOR_S:
                    path.unlink()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
