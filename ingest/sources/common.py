"""What all sources share: the defaults of the Protocol, and the promise that only the five outcomes are raised."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TypeVar

from corpus.errors import SourceError
from ingest.sources.base import Access, Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import raise_for_status
from ingest.sources.outcomes import nonsense
from ingest.work import Location, Work

T = TypeVar("T")
NO_ACCESS = Access()


class Reader(ABC):
    """A source that can do nothing yet; its subclasses override what their service offers."""

    name: str
    hosts: tuple[HostRule, ...]

    def __init__(self, access: Access = NO_ACCESS) -> None:
        self.access = access

    def lacks(self) -> tuple[str, ...]:
        """Nothing is missing unless a source says so."""
        return ()

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Cannot search."""
        del query, since, cursor, limit
        return None

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Cannot look up."""
        del identifiers
        return None

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Cannot look up several at once."""
        del papers
        return None

    def locations(self, identifiers: Identifiers) -> Request | None:
        """Ask for the work itself: most services name full texts in their records."""
        return self.lookup(identifiers)

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Cannot name citing works."""
        del identifiers, cursor
        return None

    def parse(self, answer: Answer) -> Parsed:
        """Read an answer; raises one of the five outcomes and nothing else."""
        raise_for_status(self.name, answer)
        try:
            return self.read(answer)
        except SourceError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise nonsense(self.name, f"a shape that is not known ({error!r})", answer) from error

    @abstractmethod
    def read(self, answer: Answer) -> Parsed:
        """Read an answer whose status is a success or unknown."""


def works_of(items: Iterable[T], read: Callable[[T], Work | None]) -> list[Work]:
    """Read each record, leaving out those that hold nothing."""
    return [work for item in items if (work := read(item)) is not None]


def kind_of_address(url: str, content_type: str = "") -> str:
    """Guess what lies at an address: `pdf`, `xml`, `html` by content type or path, else `landing`."""
    said = content_type.lower()
    for word, kind in (("pdf", "pdf"), ("xml", "xml")):
        if word in said:
            return kind
    path = url.partition("#")[0].lower()
    if path.partition("?")[0].endswith((".pdf", "/pdf")) or "arxiv.org/pdf/" in path or "type=printable" in path:
        return "pdf"
    if "pdf=render" in path or "/pdf/" in path or path.endswith(("/document", "blobtype=pdf")):
        return "pdf"
    return "xml" if path.partition("?")[0].endswith((".xml", ".nxml")) else "landing"


def each_once(locations: Iterable[Location | None]) -> list[Location]:
    """Keep one location for each address and kind, the first, which is the source's own order."""
    kept: dict[tuple[str, str], Location] = {}
    for location in locations:
        if location is not None:
            kept.setdefault((location.url, location.kind), location)
    return list(kept.values())


_VERSIONS = {
    "publishedversion": "published", "published": "published", "vor": "published", "versionofrecord": "published",
    "acceptedversion": "accepted", "accepted": "accepted", "am": "accepted", "acceptedmanuscript": "accepted",
    "submittedversion": "submitted", "submitted": "submitted", "draft": "submitted", "preprint": "submitted",
}  # fmt: skip


def version_word(value: object) -> str | None:
    """Give `published`, `accepted` or `submitted` from the words of several services, or None."""
    return _VERSIONS.get(value.replace(" ", "").replace("_", "").lower()) if isinstance(value, str) else None
