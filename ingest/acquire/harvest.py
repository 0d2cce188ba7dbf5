"""The day's new arXiv papers by OAI-PMH, for the topics that ask for it.

A topic asks in its first line: `"harvest": true`, or `{"sets": ["cs:cs:CL"], "words": ["retrieval"]}`. A record belongs
to a topic when it has every word of one of its queries (or of `words`) in title or abstract.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from psycopg import Connection

from corpus.database import Database
from corpus.errors import SourceAbsent, SourceError
from ingest.acquire.desk import Books, Desk, Tally
from ingest.acquire.run import MakeFetcher
from ingest.acquire.works import store_works
from ingest.fulltext.letters import fold
from ingest.http.clock import Clock
from ingest.http.settings import HttpSettings
from ingest.seeds import SeedFile
from ingest.sources.arxiv import Arxiv
from ingest.sources.base import Source
from ingest.work import Work

_SYNTAX = re.compile(r"\b(?:ti|au|abs|co|jr|cat|rn|id|all):|\b(?:AND|OR|ANDNOT)\b")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a topic wants of a harvest: the sets to read, and the words of which one group must be there."""

    topic: str
    sets: tuple[str | None, ...]
    words: tuple[frozenset[str], ...]

    def fits(self, work: Work) -> bool:
        """Whether a record belongs to the topic."""
        have = set(fold(f"{work.title or ''} {work.abstract or ''}").split())
        return any(group and all(_has(word, have) for word in group) for group in self.words)


@dataclass(slots=True)
class Harvested:
    """What a harvest gave, and what was left undone."""

    n_read: int = 0
    n_taken: dict[str, int] = field(default_factory=dict)
    n_new: int = 0
    problems: list[str] = field(default_factory=list)


def _has(word: str, have: set[str]) -> bool:
    """Whether a word is there, plural and singular being one."""
    return word in have or f"{word}s" in have or (word.endswith("s") and word[:-1] in have)


def read_wish(seed: SeedFile) -> Wish | None:
    """What a topic's first line asks for; None when it asks for no harvest, or has no words to choose by."""
    asked = seed.meta.get("harvest")
    if seed.topic is None or not asked:
        return None
    said: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
    sets = tuple(str(name) for name in said.get("sets") or ()) or (None,)
    texts = [*(said.get("words") or ()), *(seed.meta.get("queries") or ())]
    words = tuple(frozenset(fold(_SYNTAX.sub(" ", text)).split()) for text in texts if isinstance(text, str))
    return Wish(seed.topic, sets, words) if any(words) else None


def harvest(
    database: Database, wishes: Sequence[Wish], since: date, *, source: Source, http: HttpSettings,
    make_fetcher: MakeFetcher, clock: Clock,
) -> Harvested:  # fmt: skip
    """Read the records that arXiv has changed since a day, each set once, and keep those that a topic wants. Idempotent."""
    return asyncio.run(_harvest(database, wishes, since, source, http, make_fetcher, clock))


async def _harvest(
    database: Database, wishes: Sequence[Wish], since: date, source: Source, http: HttpSettings, make_fetcher: MakeFetcher,
    clock: Clock,
) -> Harvested:  # fmt: skip
    done = Harvested(n_taken=dict.fromkeys((wish.topic for wish in wishes), 0))
    tally = Tally()
    assert isinstance(source, Arxiv)
    with database.connect(autocommit=True) as connection:
        async with make_fetcher(http, on_outcome=tally.note) as fetcher:
            desk = Desk(fetcher, {source.name: source}, Books(connection), tally, clock=clock)
            for group in _sets(wishes):
                wanting = [wish for wish in wishes if group in wish.sets or None in wish.sets]
                await _set(desk, source, since, group, wanting, done)
    return done


def _sets(wishes: Iterable[Wish]) -> Sequence[str | None]:
    """Each set once; a topic that names none wants them all, and then nothing else needs to be read."""
    named = {group for wish in wishes for group in wish.sets}
    return [None] if None in named else sorted(group for group in named if group)


async def _set(
    desk: Desk, source: Arxiv, since: date, group: str | None, wishes: Sequence[Wish], done: Harvested
) -> None:
    cursor: str | None = None
    seen: set[str | None] = set()
    try:
        while cursor not in seen:
            seen.add(cursor)
            page, answer_id = await desk.ask(source, source.harvest(since, group=group, cursor=cursor))
            done.n_read += len(page.works)
            for wish in wishes:
                taken = [work for work in page.works if wish.fits(work)]
                if taken:
                    stored = await desk.books.do(_store, taken, wish.topic, answer_id)
                    done.n_taken[wish.topic] += len(taken)
                    done.n_new += len(stored)
                    await desk.count_new({source.name: len(stored)})
            cursor = page.cursor
            if cursor is None:
                return
    except SourceAbsent:
        return
    except SourceError as error:
        done.problems.append(f"{group or 'all sets'}: {error}")


def _store(connection: Connection[Any], works: Sequence[Work], topic: str, answer_id: int) -> set[int]:
    return store_works(connection, works, topic=topic, answer_id=answer_id).new_pks
