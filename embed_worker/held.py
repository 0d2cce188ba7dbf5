"""What a worker holds: the tokens of its leases, and the slices that wait here for their turn, the most urgent first."""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from corpus.jobs import Job


@dataclass(order=True, slots=True)
class Slice:
    """A claimed embed job in its order of urgency."""

    priority: int
    encoder_id: int
    kind: str
    job_id: int
    job: Job = field(compare=False)

    def is_like(self, other: Slice) -> bool:
        """Whether the two can be encoded together."""
        return (self.priority, self.encoder_id, self.kind) == (other.priority, other.encoder_id, other.kind)


class Held:
    """Leases and waiting slices. A job is held from its claim until it is completed, released, failed or lost."""

    def __init__(self) -> None:
        self.tokens: dict[int, uuid.UUID] = {}
        self._slices: list[Slice] = []

    def __bool__(self) -> bool:
        return bool(self.tokens)

    @property
    def first(self) -> Slice | None:
        """The most urgent slice that waits here."""
        return self._slices[0] if self._slices else None

    def add(self, jobs: Iterable[Job], encoder_id: int | None) -> None:
        """These were claimed; embed jobs wait for their turn, documents go on at once."""
        for job in jobs:
            self.tokens[job.job_id] = job.lease_token
            if job.kind != "chunk":
                heapq.heappush(self._slices, Slice(job.priority, encoder_id or 0, job.kind, job.job_id, job))

    def take(self, most: int) -> list[Job]:
        """Up to so many slices that can be encoded together, the most urgent first; they are held on."""
        first, taken = self.first, []
        while first is not None and self._slices and len(taken) < most and self._slices[0].is_like(first):
            taken.append(heapq.heappop(self._slices).job)
        return taken

    def take_of_encoder(self, encoder_id: int) -> list[Job]:
        """Every slice that waits for this encoder; they are held on."""
        taken = [each.job for each in self._slices if each.encoder_id == encoder_id]
        self._keep(lambda each: each.encoder_id != encoder_id)
        return taken

    def forget(self, job_ids: Iterable[int]) -> None:
        """These are held no more."""
        for job_id in job_ids:
            self.tokens.pop(job_id, None)

    def lose(self, job_ids: set[int]) -> int:
        """The leases of these were lost: those that wait here are dropped; how many.

        What is encoded or completed just now may be gone rightly, and its completion decides.
        """
        waiting = {each.job_id for each in self._slices} & job_ids
        if waiting:
            self._keep(lambda each: each.job_id not in waiting)
            self.forget(waiting)
        return len(waiting)

    def _keep(self, is_kept: Callable[[Slice], bool]) -> None:
        self._slices = [each for each in self._slices if is_kept(each)]
        heapq.heapify(self._slices)
