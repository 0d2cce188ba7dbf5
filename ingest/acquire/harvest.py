"""The day's new preprints for the topics that ask for it: arXiv's by OAI-PMH, bioRxiv's and medRxiv's by day.

A topic asks in its first line: `"harvest": true` (arXiv alone), or `{"servers": ["arxiv", "biorxiv", "medrxiv"],
"sets": ["cs:cs:CL"], "words": ["retrieval"]}`; sets are arXiv's. A record belongs to a topic when it has every word of
one of its queries (or of `words`) in title or abstract.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

from psycopg import Connection

from corpus.database import Database
from corpus.errors import InputError, SourceAbsent, SourceError
from ingest.acquire.desk import Books, Desk, Tally
from ingest.acquire.run import MakeFetcher
from ingest.acquire.works import store_works
from ingest.fulltext.letters import fold
from ingest.http.clock import Clock
from ingest.http.settings import HttpSettings
from ingest.seeds import SeedFile
from ingest.sources.arxiv import Arxiv, without_operators
from ingest.sources.base import Request, Source
from ingest.sources.biorxiv import Biorxiv
from ingest.work import Work

SERVERS: Final = ("arxiv", "biorxiv", "medrxiv")
"""The servers whose new papers can be read by day."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a topic wants of a harvest: servers, arXiv's sets, and the words of which one group must be there."""

    topic: str
    sets: tuple[str | None, ...]
    words: tuple[frozenset[str], ...]
    servers: tuple[str, ...] = ("arxiv",)

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
    """What a topic's first line asks for; None when it asks for no harvest, or has no words to choose by.

    Raises InputError for a server that cannot be harvested.
    """
    asked = seed.meta.get("harvest")
    if seed.topic is None or not asked:
        return None
    said: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
    sets = tuple(str(name) for name in said.get("sets") or ()) or (None,)
    texts = [*(said.get("words") or ()), *(seed.meta.get("queries") or ())]
    words = tuple(frozenset(fold(without_operators(text)).split()) for text in texts if isinstance(text, str))
    servers = tuple(str(name).strip().lower() for name in said.get("servers") or ("arxiv",))
    for name in servers:
        if name not in SERVERS:
            raise InputError(f"{seed.path}: {name!r} cannot be harvested.", mend=f"Servers are {', '.join(SERVERS)}.")
    return Wish(seed.topic, sets, words, servers) if any(words) else None


def harvest(
    database: Database, wishes: Sequence[Wish], since: date, *, sources: Mapping[str, Source], http: HttpSettings,
    make_fetcher: MakeFetcher, clock: Clock,
) -> Harvested:  # fmt: skip
    """Read what the servers have new since a day, each set once, and keep what a topic wants. Idempotent."""
    return asyncio.run(_harvest(database, wishes, since, sources, http, make_fetcher, clock))


async def _harvest(
    database: Database, wishes: Sequence[Wish], since: date, sources: Mapping[str, Source], http: HttpSettings,
    make_fetcher: MakeFetcher, clock: Clock,
) -> Harvested:  # fmt: skip
    done = Harvested(n_taken=dict.fromkeys((wish.topic for wish in wishes), 0))
    tally = Tally()
    arxiv, biorxiv = sources["arxiv"], sources["biorxiv"]
    assert isinstance(arxiv, Arxiv)
    assert isinstance(biorxiv, Biorxiv)
    today = max(since, datetime.now(UTC).date())
    with database.connect(autocommit=True) as connection:
        async with make_fetcher(http, on_outcome=tally.note) as fetcher:
            desk = Desk(fetcher, sources, Books(connection), tally, clock=clock)
            asking = [wish for wish in wishes if "arxiv" in wish.servers]
            for group in _sets(asking):
                wanting = [wish for wish in asking if group in wish.sets or None in wish.sets]

                def page_of_set(cursor: str | None, group: str | None = group) -> Request:
                    return arxiv.harvest(since, group=group, cursor=cursor)

                await _read(desk, arxiv, page_of_set, wanting, group or "all sets", done)
            for server in SERVERS[1:]:
                if wanting := [wish for wish in wishes if server in wish.servers]:

                    def page_of_days(cursor: str | None, server: str = server) -> Request:
                        return biorxiv.harvest(since, today, server=server, cursor=cursor)

                    await _read(desk, biorxiv, page_of_days, wanting, server, done)
    return done


def _sets(wishes: Sequence[Wish]) -> Sequence[str | None]:
    """Each set once; a topic that names none wants them all, and then nothing else needs to be read."""
    named = {group for wish in wishes for group in wish.sets}
    return [None] if None in named else sorted(group for group in named if group)


async def _read(
    desk: Desk, source: Source, ask: Callable[[str | None], Request], wishes: Sequence[Wish], what: str, done: Harvested
) -> None:
    """Read page after page to the end, each written before the next is asked for."""
    cursor: str | None = None
    seen: set[str | None] = set()
    try:
        while cursor not in seen:
            seen.add(cursor)
            page, answer_id = await desk.ask(source, ask(cursor))
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
        done.problems.append(f"{what}: {error}")


def _store(connection: Connection[Any], works: Sequence[Work], topic: str, answer_id: int) -> set[int]:
    return store_works(connection, works, topic=topic, answer_id=answer_id).new_pks
