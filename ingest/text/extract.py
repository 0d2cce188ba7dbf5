"""The text of a file, made in a child process under limits. A bad file gives a verdict, never an exception.

    with ExtractorPool(2) as pool:
        for path, extraction in pool.extract_many(paths): ...
    extraction = extract_file(path)              # one file, one child

A pool's `extract` may be called from many threads (and so through `asyncio.to_thread`); each call waits for an idle
child. A child that dies, hangs or eats too much is replaced, its file gets the verdict.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from ingest.text.limits import Limits
from ingest.text.result import Extraction
from ingest.text.worker import ExtractorChild

DEFAULT_LIMITS = Limits.from_environment()


def extract_file(
    path: Path, *, limits: Limits = DEFAULT_LIMITS, name: str | None = None, is_ocr: bool = False
) -> Extraction:
    """Return what extraction makes of a file; never raises for a bad one and leaves no child behind.

    The content decides what a file is; `name` (else the path's own) only tells that a PDF was meant.
    """
    with ExtractorChild(limits) as child:
        return child.extract(path, name=name or path.name, is_ocr=is_ocr)


def extract_many(
    paths: Iterable[Path], n_children: int = 2, *, limits: Limits = DEFAULT_LIMITS, is_ocr: bool = False
) -> Iterator[tuple[Path, Extraction]]:
    """Yield each path with its outcome, in the order in which they finish."""
    with ExtractorPool(n_children, limits=limits) as pool:
        yield from pool.extract_many(paths, is_ocr=is_ocr)


class ExtractorPool:
    """A few children that extract one file after the other; started when first needed, gone after `close`."""

    def __init__(self, n_children: int = 2, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._children = [ExtractorChild(limits) for _ in range(max(n_children, 1))]
        self._idle: queue.LifoQueue[ExtractorChild] = queue.LifoQueue()
        for child in self._children:
            self._idle.put(child)

    def extract(self, path: Path, *, name: str | None = None, is_ocr: bool = False) -> Extraction:
        """Return what extraction makes of a file; waits for an idle child."""
        child = self._idle.get()
        try:
            return child.extract(path, name=name or path.name, is_ocr=is_ocr)
        finally:
            self._idle.put(child)

    def extract_many(self, paths: Iterable[Path], *, is_ocr: bool = False) -> Iterator[tuple[Path, Extraction]]:
        """Yield each path with its outcome as they finish; reads `paths` only a little ahead."""
        width = len(self._children)
        running: dict[Future[Extraction], Path] = {}
        with ThreadPoolExecutor(width, thread_name_prefix="extract") as threads:
            for path in paths:
                running[threads.submit(self.extract, path, is_ocr=is_ocr)] = path
                if len(running) >= 2 * width:
                    yield from _finished(running)
            while running:
                yield from _finished(running)

    def close(self) -> None:
        """End every child; one at work is killed."""
        for child in self._children:
            child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _finished(running: dict[Future[Extraction], Path]) -> list[tuple[Path, Extraction]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    return [(running.pop(future), future.result()) for future in done]
