"""What a question may leave out: topics, kinds, years."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("paper", "book", "news", "note", "session", "exam")
HIDDEN_KINDS = ("session", "exam")
"""Kinds that answers leave out unless they are asked for by name."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Resolved filters: topics by their ids, kinds as they apply. Papers of unknown year pass no year filter."""

    topics: tuple[int, ...] = ()
    without_topics: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    without_kinds: tuple[str, ...] = HIDDEN_KINDS
    year_from: int | None = None
    year_to: int | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether anything beyond the default is left out."""
        return bool(
            self.topics or self.without_topics or self.kinds or set(self.without_kinds) - set(HIDDEN_KINDS)
            or self.year_from is not None or self.year_to is not None
        )  # fmt: skip


def effective_kinds(kinds: tuple[str, ...], without: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return kinds to keep and kinds to drop: sessions and exams are dropped unless `kinds` names them."""
    return kinds, tuple(dict.fromkeys((*without, *(k for k in HIDDEN_KINDS if k not in kinds))))
