"""One question while it is being answered."""

from __future__ import annotations

from dataclasses import dataclass, field

from search_server.encoding import Encoded
from search_server.filters import Filters
from search_server.fusion import Entry, ListName
from search_server.params import SearchParams
from search_server.words.search import Asked


@dataclass(slots=True)
class Work:
    """What was asked, what the lists gave, what was missing, how long each part took."""

    params: SearchParams
    weights: dict[ListName, float]
    per_list: int
    fusion: str
    filters: Filters = field(default_factory=Filters)
    took: dict[str, float] = field(default_factory=dict)
    degraded: list[dict[str, str]] = field(default_factory=list)
    lists: dict[ListName, list[Entry]] = field(default_factory=dict)
    encoded: Encoded | None = None
    asked: Asked | None = None
    n_timeouts: int = 0

    @property
    def asked_lists(self) -> list[ListName]:
        """The lists that have a weight."""
        return [name for name, weight in self.weights.items() if weight > 0]

    @property
    def is_exact(self) -> bool:
        """Whether word scores are wanted to the last digit: where their order alone is meant to decide, or where they are shown."""
        return self.fusion == "rrf" or self.params.explain or len(self.asked_lists) == 1

    def miss(self, name: str, reason: str, detail: str) -> None:
        """Say that a list is missing and why; the first reason of a list stands."""
        if all(said["list"] != name for said in self.degraded):
            self.degraded.append({"list": name, "reason": reason, "detail": detail})
