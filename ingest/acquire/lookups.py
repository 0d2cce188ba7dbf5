"""Looks papers up at the chosen sources, all sources at once, in waves: what one says lets the next be asked."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from corpus.errors import SourceAbsent, SourceError, SourceRefused
from ingest.acquire.desk import SQL, Desk
from ingest.acquire.plan import Known, Need, choose
from ingest.acquire.works import WorksStored, store_works
from ingest.sources.asking import in_one_request, pick
from ingest.sources.base import Source
from ingest.work import Work

_N_WAVES = 5
_MOST_AT_ONCE = 50


@dataclass(slots=True)
class Lookups:
    """How looking up went: works found, papers per source that wait for it, and what no source knew."""

    n_found: int = 0
    n_changed: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    problems: dict[tuple[str, str], str] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)


async def look_up(
    desk: Desk, pks: Collection[int], need: Need, *, on_step: Callable[[str], None] = lambda _: None
) -> Lookups:
    """Ask until no source has anything to add; papers whose sources rest are left for later and told."""
    run = Lookups()
    done: set[tuple[int, str]] = set()
    left = set(pks)
    for _ in range(_N_WAVES):
        papers = await desk.books.do(known_papers, sorted(left))
        plan: dict[str, list[Known]] = defaultdict(list)
        for paper in papers:
            for name in choose(paper, desk.sources, need):
                if (paper.paper_pk, name) not in done:
                    done.add((paper.paper_pk, name))
                    plan[name].append(paper)
        if not plan:
            break
        await asyncio.gather(
            *(_ask_source(desk, desk.sources[name], found, run, on_step) for name, found in plan.items())
        )
        left |= run.touched
    return run


def known_papers(connection: Connection[Any], pks: Sequence[int]) -> list[Known]:
    """What is known of those of the papers that sources may be asked for."""
    with connection.cursor(row_factory=class_row(Known)) as cursor:
        return cursor.execute(SQL["list_lookup_papers"], [list(pks)]).fetchall()


async def _ask_source(
    desk: Desk, source: Source, papers: Sequence[Known], run: Lookups, on_step: Callable[[str], None]
) -> None:
    """One source, one request after another; it is the host's limit that sets the pace."""
    for at in range(0, len(papers), _MOST_AT_ONCE):
        batch = papers[at : at + _MOST_AT_ONCE]
        if len(batch) > 1 and source.lookup_many([paper.identifiers for paper in batch]) is not None:
            await _ask(desk, source, batch, run)
        else:
            for paper in batch:
                await _ask(desk, source, [paper], run)
        on_step(source.name)


async def _ask(desk: Desk, source: Source, batch: Sequence[Known], run: Lookups) -> None:
    """Ask for one paper, or for several in one request, and write what comes."""
    asked = list(batch)
    if len(batch) > 1:
        # Not every identifier fits a batch, nor all of them one request; what is left out goes into requests of its own.
        inside = in_one_request(source, [paper.identifiers for paper in batch])
        asked = [batch[index] for index in inside]
        rest = [paper for paper in batch if paper not in asked]
        if not asked:
            for paper in rest:
                await _ask(desk, source, [paper], run)
            return
        if rest:
            await _ask(desk, source, rest, run)
        request = source.lookup_many([paper.identifiers for paper in asked])
    else:
        request = source.lookup(batch[0].identifiers)
    if request is None:
        return
    outcomes: dict[int, tuple[str, str | None]] = {}
    found: list[Work] = []
    answer_id: int | None = None
    try:
        parsed, answer_id = await desk.ask(source, request)
        for paper in asked:
            works = pick(parsed.works, paper.identifiers)
            found += works
            outcomes[paper.paper_pk] = ("ok", None) if works else ("absent", f"{source.name} does not know it")
    except SourceAbsent as error:
        outcomes = {paper.paper_pk: ("absent", error.what) for paper in asked}
    except SourceError as error:
        if isinstance(error, SourceRefused) and len(asked) > 1 and await _is_one_at_fault(desk, source, asked, run):
            middle = len(asked) // 2
            for part in (asked[1:middle], asked[middle:-1]):
                if part:
                    await _ask(desk, source, part, run)
            return
        outcomes = {paper.paper_pk: (error.outcome, error.what) for paper in asked}
        if error.transient:
            run.waiting[source.name] = f"{source.name} {error.outcome}: {error.what}"
        else:
            run.problems[source.name, error.outcome] = error.what
    if not found or not any(outcome == "ok" for outcome, _ in outcomes.values()):
        await desk.books.do(note_outcomes, source.name, outcomes)
        return
    stored = await desk.books.do(_write, source.name, found, answer_id, outcomes)
    run.n_found += len(found)
    run.n_changed += stored.n_changed
    run.touched |= set(stored.pks)
    await desk.count_new(stored.n_new)


async def _is_one_at_fault(desk: Desk, source: Source, batch: Sequence[Known], run: Lookups) -> bool:
    """Whether a request for many was refused because of some of them: the first and the last are asked for alone.

    Where both are refused as well it is the key, or the way in which we ask.
    """
    alone = Lookups()
    ends = [batch[0], batch[-1]]
    for paper in ends:
        await _ask(desk, source, [paper], alone)
    papers = {paper.paper_pk: paper for paper in await desk.books.do(known_papers, [p.paper_pk for p in ends])}
    n_refused = sum(paper.asked.get(source.name, [""])[0] == "refused" for paper in papers.values())
    if n_refused == len(ends):
        return False
    run.n_found += alone.n_found
    run.n_changed += alone.n_changed
    run.touched |= alone.touched
    run.waiting |= alone.waiting
    run.problems |= alone.problems
    return True


def _write(
    connection: Connection[Any], name: str, works: Sequence[Work], answer_id: int | None,
    outcomes: dict[int, tuple[str, str | None]],
) -> WorksStored:  # fmt: skip
    with connection.transaction():
        stored = store_works(connection, works, answer_id=answer_id)
        note_outcomes(connection, name, outcomes)
    return stored


def note_outcomes(connection: Connection[Any], name: str, outcomes: dict[int, tuple[str, str | None]]) -> None:
    """Remember how asking a source for papers ended."""
    pks = sorted(outcomes)
    values = {
        "source": name, "pks": pks, "outcomes": [outcomes[pk][0] for pk in pks],
        "details": [(outcomes[pk][1] or "")[:500].replace("\x00", "") or None for pk in pks],
    }  # fmt: skip
    connection.execute(SQL["note_lookup"], values)
