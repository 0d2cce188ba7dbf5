"""Citation edges from the other end: which papers of the corpus cite a listed one, where a source names citing works.

References say the same from the citing paper's side, but of papers that a search gave they are often not known. Citing
works that the corpus does not have are counted by the sources anyway, and are not taken in: a topic would drown.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from psycopg import Connection

from corpus.errors import SourceError
from ingest.acquire.desk import SQL, Desk
from ingest.acquire.lookups import Lookups, known_papers, note_outcomes
from ingest.acquire.plan import Known
from ingest.merge import identifiers_of
from ingest.sources.base import Source
from ingest.work import Work

ASKED: Final = ("openalex", "europe-pmc", "semantic-scholar")
"""Sources that name citing works, the one with the largest allowance first; the first that can is enough."""
MOST_A_RUN: Final = 200
MOST_PAGES: Final = 5
"""Of a paper that thousands cite the first pages are read; the other edges come from references."""


def noted_as(source: str) -> str:
    """The name under which it is remembered that a source was asked for a paper's citing works."""
    return f"{source}:citations"


def source_for(paper: Known, sources: Mapping[str, Source], *, is_listed: bool = True) -> str | None:
    """The source to be asked for citing works now; None where one has said its word lately, or none can.

    Papers that only a search gave are not asked for (`is_listed` false): there are too many. Those that were listed when
    they came have been asked for once, and stay so.
    """
    if not paper.has_title or not (is_listed or any(noted_as(name) in paper.asked for name in ASKED)):
        return None
    for name in ASKED:
        source = sources.get(name)
        if source is None or source.citations(paper.identifiers) is None or _is_hopeless(source):
            continue
        if paper.is_due(noted_as(name)):
            return name
        if paper.asked[noted_as(name)][0] == "ok":
            return None
    return None


def _is_hopeless(source: Source) -> bool:
    """Semantic Scholar without a key answers look-ups now and then, and has no room for more."""
    return source.name == "semantic-scholar" and bool(source.lacks())


async def look_up_citing(desk: Desk, listed: Sequence[int], known: Sequence[int]) -> Lookups:
    """Ask for the citing works of papers that are due, each once in a while; what fails is asked for again later."""
    run = Lookups()
    plan: dict[str, list[Known]] = defaultdict(list)
    for pks, is_listed in ((listed, True), (known, False)):
        for paper in await desk.books.do(known_papers, list(pks)):
            if name := source_for(paper, desk.sources, is_listed=is_listed):
                plan[name].append(paper)

    async def at_source(source: Source, found: Sequence[Known]) -> None:
        for paper in found[:MOST_A_RUN]:
            await _ask(desk, source, paper, run)

    await asyncio.gather(*(at_source(desk.sources[name], found) for name, found in plan.items()))
    return run


async def _ask(desk: Desk, source: Source, paper: Known, run: Lookups) -> None:
    cursor: str | None = None
    seen: set[str | None] = set()
    outcome, detail = "ok", None
    try:
        while cursor not in seen and len(seen) < MOST_PAGES:
            seen.add(cursor)
            request = source.citations(paper.identifiers, cursor=cursor)
            if request is None:
                break
            page, _ = await desk.ask(source, request)
            await desk.books.do(write_citing, source.name, paper.paper_pk, page.works)
            if (cursor := page.cursor) is None:
                break
    except SourceError as error:
        outcome, detail = error.outcome, error.what
        if error.transient:
            run.waiting[source.name] = f"{source.name} {error.outcome}: {error.what}"
        elif error.outcome != "absent":
            run.problems[source.name, error.outcome] = error.what
    await desk.books.do(note_outcomes, noted_as(source.name), {paper.paper_pk: (outcome, detail)})


def write_citing(connection: Connection[Any], source: str, cited_pk: int, works: Sequence[Work]) -> None:
    """Write an edge from each paper of the corpus that is among the works. Idempotent."""
    nodes = sorted({node for work in works for node in identifiers_of(work)})
    if nodes:
        connection.execute(SQL["insert_citing_works"], {"cited_pk": cited_pk, "nodes": nodes, "source": source})
