"""One run of acquisition: listed papers are looked up, titles found, queries searched; what waits is asked again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from psycopg import Connection

from corpus.database import Database
from corpus.settings import Settings
from ingest.acquire.citing import look_up_citing, source_for
from ingest.acquire.desk import SQL, Books, Desk, Tally
from ingest.acquire.lookups import Lookups, known_papers, look_up
from ingest.acquire.online import is_online
from ingest.acquire.plan import REFRESH_DAYS, Need, choose
from ingest.acquire.searches import Searches, has_due, search_topic
from ingest.acquire.titles import TitleWaits, find_title
from ingest.acquire.works import store_works
from ingest.http.clock import Clock
from ingest.http.fetcher import Fetcher
from ingest.http.settings import HttpSettings
from ingest.sources import make_sources
from ingest.sources.base import Source

_N_ROUNDS = 4
_PATIENCE_S = 120.0
_MOST_STALE = 200
_ANSWER_DAYS = 90


class MakeFetcher(Protocol):
    """What makes the HTTP stack; tests give it a clock."""

    def __call__(self, settings: HttpSettings, /, *, on_outcome: Callable[[str, str], None] | None = None) -> Fetcher:
        """Make one."""
        ...


@dataclass(slots=True)
class TopicWork:
    """What one topic asks for: papers by their number, titles without identifier, queries, last fetch. None: no topic.

    `known` papers were acquired before: of them only what is still missing is asked for.
    """

    topic: str | None
    listed: list[int] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    since: date | None = None


@dataclass(slots=True)
class Acquired:
    """What came of it. `waiting` sources are asked again by the next run; `unknown` are papers that no source knows."""

    n_found: int = 0
    n_new: int = 0
    n_changed: int = 0
    n_unkeyed: int = 0
    is_offline: bool = False
    waiting: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    found_titles: dict[str, str] = field(default_factory=dict)
    waiting_titles: set[str] = field(default_factory=set)
    changed_topics: set[str | None] = field(default_factory=set)


@dataclass(slots=True)
class Acquisition:
    """Constructed with what it uses; `run` does everything and may be killed at any moment."""

    database: Database
    settings: Settings
    http: HttpSettings
    make_fetcher: MakeFetcher
    clock: Clock
    on_step: Callable[[str], None] = lambda _: None
    done: Acquired = field(default_factory=Acquired)

    def run(self, topics: Sequence[TopicWork], need: Need, *, limit: int | None = None) -> Acquired:
        """Ask for everything that is due. Nothing is sent, and no network needed, when nothing is."""
        sources = make_sources(os.environ)
        with self.database.connect(autocommit=True) as connection:
            if any(_is_due(connection, sources, topic, need) for topic in topics):
                asyncio.run(self._run(connection, sources, topics, need, limit))
        return self.done

    async def _run(
        self, connection: Connection[Any], sources: dict[str, Source], topics: Sequence[TopicWork], need: Need,
        limit: int | None,
    ) -> None:  # fmt: skip
        if self.make_fetcher is Fetcher and not self.http.base_url and not await is_online():
            self.done.is_offline = True
            return
        tally = Tally()
        async with self.make_fetcher(self.http, on_outcome=tally.note) as fetcher:
            desk = Desk(fetcher, sources, Books(connection), tally, clock=self.clock)
            first_ended = 0.0
            for n in range(_N_ROUNDS):
                self.done.waiting = {}
                for topic in topics:
                    await self._topic(desk, topic, need, limit)
                rests = [rest for name in self.done.waiting if (rest := desk.rest_of(name)) <= _PATIENCE_S]
                first_ended = first_ended or self.clock.now()
                # A host that hangs costs minutes each time: what is left then is asked by the next run.
                if not rests or n == _N_ROUNDS - 1 or self.clock.now() - first_ended > _PATIENCE_S:
                    break
                await self.clock.sleep(max(rests))
        connection.execute(SQL["drop_old_answers"], {"days": _ANSWER_DAYS})

    async def _topic(self, desk: Desk, topic: TopicWork, need: Need, limit: int | None) -> None:
        await self._titles(desk, topic)
        wider = Need(need.has_full_texts, is_listed=False)
        self._add(topic, await look_up(desk, topic.listed, need, on_step=self.on_step))
        self._add(topic, await look_up(desk, topic.known, wider, on_step=self.on_step))
        if topic.topic is not None and topic.queries:
            found = await search_topic(
                desk, topic.topic, topic.queries, since=topic.since, limit=limit, on_step=self.on_step
            )
            self._add(topic, found)
            self._add(topic, await look_up(desk, found.pks - set(topic.listed), wider, on_step=self.on_step))
        stale = await desk.books.do(_stale, [topic.topic] if topic.topic is not None else [])
        self._add(topic, await look_up(desk, stale, need, on_step=self.on_step))
        self._add(topic, await look_up_citing(desk, topic.listed, topic.known))

    async def _titles(self, desk: Desk, topic: TopicWork) -> None:
        for title in [title for title in topic.titles if title not in self.done.found_titles]:
            self.done.waiting_titles.discard(title)
            try:
                found = await find_title(desk, title)
            except TitleWaits:
                self.done.waiting_titles.add(title)
                self.done.waiting |= {
                    name: f"{name} rests" for name in desk.sources if desk.rest_of(name)
                }  # fmt: skip
                continue
            if found is not None:
                key, works = found
                stored = await desk.books.do(store_works, works, topic=topic.topic)
                self.done.found_titles[title] = key
                self.done.changed_topics.add(topic.topic)
                topic.listed += stored.pks
                await desk.count_new(stored.n_new)

    def _add(self, topic: TopicWork, run: Lookups | Searches) -> None:
        self.done.n_found += run.n_found
        if isinstance(run, Searches):
            self.done.n_new += run.n_new
            self.done.n_unkeyed += run.n_unkeyed
        else:
            self.done.n_changed += run.n_changed
        if run.n_found:
            self.done.changed_topics.add(topic.topic)
        self.done.waiting |= run.waiting
        for (name, outcome), detail in run.problems.items():
            self.done.said[name] = f"{outcome}: {detail}"


def _stale(connection: Connection[Any], topics: Sequence[str]) -> list[int]:
    values = {"topics": list(topics), "days": REFRESH_DAYS, "most": _MOST_STALE}
    return [row[0] for row in connection.execute(SQL["list_stale"], values).fetchall()]


def _is_due(connection: Connection[Any], sources: dict[str, Source], topic: TopicWork, need: Need) -> bool:
    if topic.titles or (topic.topic is not None and has_due(connection, sources, topic.topic, topic.queries)):
        return True
    for pks, is_listed in ((topic.listed, True), (topic.known, False)):
        wanted = Need(need.has_full_texts, is_listed=is_listed)
        for paper in known_papers(connection, pks):
            if choose(paper, sources, wanted) or source_for(paper, sources, is_listed=is_listed):
                return True
    return bool(_stale(connection, [topic.topic] if topic.topic is not None else []))
