"""What a run of `brain ingest` is asked for, what it tells meanwhile, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ingest.papers import Written


class Progress(Protocol):
    """What a run tells the person who waits."""

    def begin(self, what: str, total: int | None) -> None:
        """A stage begins; `total` is None where nobody knows."""
        ...

    def step(self, n: int = 1, note: str = "") -> None:
        """So much more of it is done."""
        ...


class Quiet:
    """Tells nothing."""

    def begin(self, what: str, total: int | None) -> None:
        """Ignore."""

    def step(self, n: int = 1, note: str = "") -> None:
        """Ignore."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one `brain ingest` was asked for."""

    topics: Sequence[str] = ()
    is_all_topics: bool = False
    pdfs: Sequence[Path] = ()
    files: Sequence[Path] = ()
    jsonl: Sequence[Path] = ()
    prefix: str | None = None
    limit: int | None = None
    has_full_texts: bool = True
    has_searches: bool = True
    is_ocr: bool = False


@dataclass(slots=True)
class Report:
    """What became of it. `problems` are named by file and line; exit code 3 when there are any.

    `notes` say what goes on by itself later, or what a source said: nothing is lost by it.
    """

    papers: Written = field(default_factory=Written)
    n_files: int = 0
    n_new_files: int = 0
    n_fetched: int = 0
    n_later: int = 0
    n_absent: int = 0
    n_found: int = 0
    n_found_new: int = 0
    n_replaced_chars: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
