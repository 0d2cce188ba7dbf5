"""A run of acquisition on the replayed internet, on a clock on which waiting takes no time."""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
import random
from datetime import timedelta
from pathlib import Path

import httpx2

from corpus.database import Database
from corpus.settings import Settings
from ingest.http import Fetcher, VirtualClock
from ingest.http.settings import HttpSettings
from ingest.pipeline import Ingest, Report, Wanted
from ingest.seeds import SeedFile, seed_path, write_seed_file
from ingest.store import Store
from tests.acquire.internet import Internet

LISTED = ("2007.01282", "https://arxiv.org/abs/2203.14465v1", "acl:N18-3011")
TOPIC = "retrieval"


class OrderedClock(VirtualClock):
    """A clock on which waiting takes no time, and whoever waits for an earlier moment wakes first."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[float, int]] = []
        self._n = 0

    async def sleep(self, seconds: float) -> None:
        self._n += 1
        mine = (self.now() + max(0.0, seconds), self._n)
        heapq.heappush(self._waiting, mine)
        try:
            await asyncio.sleep(0)
            while self._waiting[0] < mine:
                await asyncio.sleep(0)
            self.advance(max(0.0, mine[0] - self.now()))
        finally:
            self._waiting.remove(mine)
            heapq.heapify(self._waiting)


class Watch(httpx2.AsyncBaseTransport):
    """Notes when each host is asked, at the moment the request leaves."""

    def __init__(self, clock: VirtualClock, seen: list[tuple[float, str]]) -> None:
        self._clock = clock
        self._seen = seen
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._seen.append((self._clock.now(), request.url.path.split("/")[1]))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def write_topic(folder: Path, *, ids=LISTED, queries=("retrieval of scientific papers",), entries=()) -> Path:
    seeds = folder / "seeds"
    seed = SeedFile(seed_path(seeds, TOPIC), TOPIC, {"title": "Retrieval", "queries": list(queries)})
    seed.entries = [{"id": own} for own in ids] + list(entries)
    write_seed_file(seed)
    return seeds


def make_fetcher(clock: OrderedClock, seen=None):
    """What makes a fetcher on a clock."""

    def make(settings: HttpSettings, *, on_outcome=None) -> Fetcher:
        quick = dataclasses.replace(
            settings,
            read_timeout=timedelta(seconds=1),
            head_timeout=timedelta(seconds=1),
            contact_email="me@example.org",
        )
        return Fetcher(
            quick, clock=clock, random_source=random.Random(1), on_outcome=on_outcome,
            transport=Watch(clock, seen if seen is not None else []),
        )  # fmt: skip

    return make


def make_ingest(database: Database, folder: Path, internet: Internet, seen=None) -> Ingest:
    clock = OrderedClock()
    settings = Settings(
        home=folder / "home", seeds=folder / "seeds", store=str(folder / "store"), sources_base_url=internet.base_url
    )
    store = Store(folder / "store")
    return Ingest(database, store, settings, make_fetcher=make_fetcher(clock, seen), clock=clock)


def ingest(database: Database, folder: Path, internet: Internet, seen=None, **wanted) -> Report:
    return make_ingest(database, folder, internet, seen).run(Wanted(topics=[TOPIC], **wanted))


STATE = (
    "SELECT paper_id, kind, title, abstract, authors, year, published_on, venue, url, n_citations, tldr, is_retracted, provenance FROM paper ORDER BY 1",
    "SELECT p.paper_id, i.kind, i.value FROM paper_identifier i JOIN paper p USING (paper_pk) ORDER BY 1, 2, 3",
    "SELECT p.paper_id, t.name FROM paper_topic JOIN paper p USING (paper_pk) JOIN topic t USING (topic_id) ORDER BY 1, 2",
    "SELECT p.paper_id, encode(d.sha256, 'hex'), d.source_url, d.verdict, d.file_name, length(d.text) FROM document d JOIN paper p USING (paper_pk) ORDER BY 1, 2",
    "SELECT w.source, w.source_id, p.paper_id, w.payload FROM work w LEFT JOIN paper p USING (paper_pk) ORDER BY 1, 2",
    "SELECT p.paper_id, f.source FROM topic_found f JOIN paper p USING (paper_pk) ORDER BY 1, 2",
    "SELECT query, source, outcome, cursor FROM topic_search ORDER BY 1, 2",
    "SELECT p.paper_id, k.source, k.outcome FROM lookup k JOIN paper p USING (paper_pk) ORDER BY 1, 2",
    "SELECT kind, count(*), sum(n_items) FROM job WHERE kind IN ('fetch', 'extract', 'chunk') GROUP BY 1 ORDER BY 1",
)  # fmt: skip


def state(database: Database) -> list[list[tuple]]:
    with database.connect() as connection:
        return [connection.execute(query).fetchall() for query in STATE]
