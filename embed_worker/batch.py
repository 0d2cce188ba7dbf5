"""A batch: slices of one kind under one encoder that are encoded together and ended in one statement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from psycopg import AsyncConnection

from corpus.halfvec import HalfvecArray, pack_array
from corpus.jobs import Job
from embed_worker.encode import Encoded
from embed_worker.served import Served
from sql.files import queries


@dataclass(slots=True)
class Batch:
    """Claimed slices with what they still need; `texts[i]` has the hash `hashes[i]`, each text once."""

    kind: str
    served: Served
    jobs: list[Job]
    hashes: list[bytes]
    texts: list[str]
    needs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By job_id: (item_id, place in `texts`) of every item that has no embedding yet."""
    encoded: Encoded | None = None

    @property
    def seconds(self) -> float:
        """How long encoding took."""
        return self.encoded.seconds if self.encoded else 0.0

    @property
    def n_texts(self) -> int:
        """Items of the slices, with those that had an embedding already."""
        return sum(len(job.item_ids) for job in self.jobs)


async def read_batch(connection: AsyncConnection[Any], kind: str, served: Served, jobs: Sequence[Job]) -> Batch:
    """Adopt what is known by content and read the texts that are left. Items that are no more are left out."""
    values = {
        "kind": kind, "encoder_id": served.encoder_id, "item_ids": [item for job in jobs for item in job.item_ids],
    }  # fmt: skip
    async with connection.cursor(binary=True) as cursor:
        rows = await (await cursor.execute(queries("jobs")["embed_read"], values)).fetchall()
    batch = Batch(kind, served, list(jobs), [], [])
    places: dict[bytes, int] = {}
    by_item: dict[int, int] = {}
    for item_id, text_sha256, text in rows:
        place = places.get(text_sha256)
        if place is None:
            place = places[text_sha256] = len(batch.texts)
            batch.hashes.append(text_sha256)
            batch.texts.append(text)
        by_item[item_id] = place
    for job in jobs:
        batch.needs[job.job_id] = [(item, by_item[item]) for item in job.item_ids if item in by_item]
    return batch


@dataclass(slots=True)
class Outcome:
    """What is to be written of a batch, and which of its slices were not finished."""

    finished: list[Job]
    unfinished: list[Job]
    values: Mapping[str, Any]
    n_bad: int


def outcome_of(batch: Batch, node_id: int, node_name: str, halfvec_oid: int) -> Outcome:
    """The parameters of `embed_complete`: rows of the finished slices, their bad items, nothing of the others."""
    done = batch.encoded
    assert done is not None
    finished: list[Job] = []
    unfinished: list[Job] = []
    row_jobs: list[int] = []
    row_places: list[int] = []
    bad: list[tuple[int, int, int]] = []
    for job in batch.jobs:
        needs = batch.needs[job.job_id]
        if any(not done.is_done[place] and place not in done.bad for _, place in needs):
            unfinished.append(job)
            continue
        finished.append(job)
        places = {place for _, place in needs if place not in done.bad}
        row_jobs += [job.job_id] * len(places)
        row_places += places
        bad += [(job.job_id, item, place) for item, place in needs if place in done.bad]
    rows: HalfvecArray = pack_array(done.embeddings[np.asarray(row_places, dtype=np.intp)], halfvec_oid)
    values = {
        "kind": batch.kind, "encoder_id": batch.served.encoder_id, "node_id": node_id,
        "ids": [job.job_id for job in finished], "tokens": [job.lease_token for job in finished], "seconds": done.seconds,
        "row_jobs": row_jobs, "row_hashes": [batch.hashes[place] for place in row_places], "row_embeddings": rows,
        "bad_jobs": [job_id for job_id, _, _ in bad], "bad_items": [item for _, item, _ in bad],
        "bad_classes": ["poison"] * len(bad), "bad_reasons": [done.bad[place] for _, _, place in bad],
        "bad_details": [
            json.dumps({
                "text_sha256": batch.hashes[place].hex(), "node": node_name, "n_chars": len(batch.texts[place]),
                "stack": done.stacks.get(place, ""),
            })
            for _, _, place in bad
        ],
    }  # fmt: skip
    return Outcome(finished, unfinished, values, len(bad))
