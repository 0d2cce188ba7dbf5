"""What is known of the paper that a file is asked to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from corpus.ids import implied_identifiers


@dataclass(frozen=True, slots=True)
class Wanted:
    """A paper to be found. All may be empty; `dois` hold those of its preprint and of its article."""

    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    arxiv: str | None = None
    dois: frozenset[str] = field(default_factory=frozenset)
    other_titles: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        identifiers: Mapping[str, str],
        *,
        title: str | None = None,
        authors: Iterable[str] = (),
        year: int | None = None,
        other_dois: Iterable[str] = (),
        other_titles: Iterable[str] = (),
    ) -> Wanted:
        """Make one from identifiers in any dress."""
        known = implied_identifiers(identifiers)
        dois = {known["doi"]} if "doi" in known else set[str]()
        for doi in other_dois:
            dois.update(v for k, v in implied_identifiers({"doi": doi}).items() if k == "doi")
        return cls(
            title=(title or "").strip() or None,
            authors=tuple(a for a in authors if a.strip()),
            year=year,
            arxiv=known.get("arxiv"),
            dois=frozenset(dois),
            other_titles=tuple(t for t in other_titles if t.strip()),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Every title that it goes by."""
        return ((self.title,) if self.title else ()) + self.other_titles
