"""Jobs: what a node may do with a unit of the farm's work.

Every function is one statement on a connection in autocommit: either it happened or it did not, and no transaction is
open while a model runs. A job is held by its lease token; whatever the token no longer matches is simply not done,
which is why completing, renewing and releasing return the jobs for which they were.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from psycopg import AsyncConnection
from psycopg.rows import class_row

from sql.files import queries

Kind = Literal["chunk", "embed_papers", "embed_passages"]
"""Kinds of work that a worker does; `fetch` and `extract` are the ingest's."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they are claimed at equal priority."""

PRIORITY_NEW = 10
"""Single new papers: they overtake everything."""
PRIORITY_BACKLOG = 100
"""Loads of many papers."""
PRIORITY_FILL = 200
"""A generation that is filled in the background."""

SLICE = 64
"""Texts of one embed job at most."""

MAX_ATTEMPTS = 5
"""How often workers may die while they hold a job before it is halved, and at one item fails."""

FailureClass = Literal["poison", "lost", "throttled", "unavailable"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its holder sees it."""

    job_id: int
    kind: str
    item_ids: list[int]
    n_attempts: int
    priority: int
    lease_token: uuid.UUID


@dataclass(frozen=True, slots=True)
class BadItem:
    """One item that cannot be embedded, and why: it becomes a failed job of its own."""

    job_id: int
    item_id: int
    reason: str
    detail: Mapping[str, Any]
    failure_class: FailureClass = "poison"


@dataclass(slots=True)
class Cursors:
    """Where the living part of the queue begins, by priority and kind, as far as this node knows.

    Finished jobs leave dead rows at the head of the queue that cannot be cleaned up while an old snapshot is open.
    Claims begin behind what was claimed last; a full look through the queue, now and then, finds what came back.
    """

    _from: dict[tuple[int, str], int] = field(default_factory=dict)
    _priorities: list[int] = field(default_factory=lambda: [PRIORITY_NEW, PRIORITY_BACKLOG, PRIORITY_FILL])

    def steps(self, kinds: Sequence[str], below: int | None = None) -> tuple[list[int], list[int]]:
        """The priorities to try in turn and, priority by priority and kind by kind, the first job_id to look at."""
        priorities = [p for p in self._priorities if below is None or p < below]
        return priorities, [self._from.get((p, k), 0) for p in priorities for k in kinds]

    def passed(self, jobs: Iterable[Job]) -> None:
        """Remember that these were claimed."""
        for job in jobs:
            key = (job.priority, job.kind)
            if job.priority not in self._priorities:
                self._priorities = sorted([*self._priorities, job.priority])
            self._from[key] = max(self._from.get(key, 0), job.job_id + 1)

    def reset(self) -> None:
        """Look from the beginning again."""
        self._from.clear()


Connected = AsyncConnection[Any]


async def claim(
    connection: Connected,
    *,
    n_wanted: Mapping[str, int],
    encoder_id: int | None,
    node_id: int,
    lease_s: float,
    cursors: Cursors,
    is_full: bool = False,
    below: int | None = None,
    most_items: int | None = None,
) -> list[Job]:
    """Up to `n_wanted[kind]` jobs of the first kind that has any, the most urgent priority first.

    Kinds are tried in the order of the mapping. Without an encoder only kind `chunk` can be wanted. `is_full` looks
    through the whole queue when the cursors lead to nothing. `below` wants nothing but what is more urgent than that.
    `most_items` takes no more of a slice than that and leaves the rest.
    """
    if is_full:
        cursors.reset()
    priorities, from_ids = cursors.steps(list(n_wanted), below)
    if not priorities and not is_full:
        return []
    values = {
        "kinds": list(n_wanted), "n_wanted": list(n_wanted.values()), "encoder_id": encoder_id, "node_id": node_id,
        "lease_s": lease_s, "priorities": priorities, "from_ids": from_ids, "is_full": is_full, "most_items": most_items,
    }  # fmt: skip
    async with connection.cursor(row_factory=class_row(Job), binary=True) as cursor:
        await cursor.execute(queries("jobs")["claim"], values)
        jobs = sorted(await cursor.fetchall(), key=lambda job: (job.priority, job.job_id))
    cursors.passed(jobs)
    return jobs


async def renew(connection: Connected, held: Mapping[int, uuid.UUID], lease_s: float) -> set[int]:
    """Extend the leases; returns the jobs that are still held."""
    values = {"ids": list(held), "tokens": list(held.values()), "lease_s": lease_s}
    return await _ids(connection, "renew", values)


async def release(
    connection: Connected,
    held: Mapping[int, uuid.UUID],
    *,
    wait_s: float = 0,
    is_counted: bool = False,
    why: str | None = None,
) -> set[int]:
    """Give jobs back to the queue, to be claimed after `wait_s` seconds; by default the attempt is not counted."""
    values = {"ids": list(held), "tokens": list(held.values()), "wait_s": wait_s, "is_counted": is_counted, "why": why}
    return await _ids(connection, "release", values)


async def fail(
    connection: Connected, job: Job, failure_class: FailureClass, why: str, detail: Mapping[str, Any] | None = None
) -> bool:
    """Set a job aside with its reason; false when it is no longer held."""
    values = {
        "id": job.job_id, "token": job.lease_token, "class": failure_class, "why": why,
        "detail": json.dumps(detail or {}),
    }  # fmt: skip
    return bool(await _ids(connection, "fail", values))


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did with the jobs of dead holders."""

    n_back: int
    n_halved: int
    n_failed: int


async def sweep(connection: Connected, max_attempts: int = MAX_ATTEMPTS) -> Swept:
    """Take back the jobs whose lease ran out. One node does it at a time; the others return zeros at once."""
    async with connection.cursor(row_factory=class_row(Swept)) as cursor:
        row = await (await cursor.execute(queries("jobs")["sweep"], {"max_attempts": max_attempts})).fetchone()
    assert row is not None
    return row


@dataclass(frozen=True, slots=True)
class Left:
    """What is left for a node to do, and what failed."""

    is_waiting: bool
    is_running: bool
    n_failed: int


async def left(connection: Connected, encoder_ids: Sequence[int]) -> Left:
    """Whether anything waits or runs for these encoders, or to be cut, and how many jobs are set aside."""
    cursor = await connection.execute(queries("jobs")["left"], {"encoder_ids": list(encoder_ids)})
    row = await cursor.fetchone()
    assert row is not None
    return Left(*row)


async def _ids(connection: Connected, name: str, values: Mapping[str, Any]) -> set[int]:
    cursor = await connection.execute(queries("jobs")[name], values)
    return {row[0] for row in await cursor.fetchall()}
