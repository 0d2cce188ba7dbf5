"""How sources are asked: request, fetch, parse; a search to its end; a look-up that ends in the right paper or none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import date

from corpus.errors import SourceAbsent
from ingest.sources.base import Answer, Identifiers, Parsed, Request, Source
from ingest.work import Work

Fetch = Callable[[Request], Awaitable[Answer]]
"""What sends a request and gives the answer, whatever its status; it keeps the raw payload before it returns."""


async def ask(source: Source, request: Request, fetch: Fetch) -> Parsed:
    """Send one request and read the answer; raises one of the five outcomes."""
    return source.parse(await fetch(request))


async def iter_search(
    source: Source, query: str, fetch: Fetch, *, since: date | None = None, limit: int = 100, cursor: str | None = None
) -> AsyncIterator[Parsed]:
    """Give a search page by page, from a cursor on, until there is no next page.

    A cursor that comes back twice ends it (Europe PMC repeats its last mark, and a service may go round in circles).
    """
    seen: set[str | None] = set()
    while cursor not in seen:
        seen.add(cursor)
        request = source.search(query, since=since, cursor=cursor, limit=limit)
        if request is None:
            return
        page = await ask(source, request, fetch)
        yield page
        cursor = page.cursor
        if cursor is None:
            return


def pick(works: Sequence[Work], wanted: Identifiers) -> list[Work]:
    """Give the works that share an identifier with what was asked for; answers come in any order, or hold others."""
    return [work for work in works if any(work.identifiers.get(kind) == value for kind, value in wanted.items())]


async def get_work(source: Source, identifiers: Identifiers, fetch: Fetch) -> Work:
    """Look one paper up.

    Raises SourceAbsent also where the service answers with an empty list, or with another paper than the one asked for.
    """
    request = source.lookup(identifiers)
    named = ", ".join(f"{kind}:{value}" for kind, value in identifiers.items())
    if request is None:
        raise SourceAbsent(f"{source.name} cannot look up {named or 'a paper without identifiers'}.")
    found = pick((await ask(source, request, fetch)).works, identifiers)
    if not found:
        raise SourceAbsent(f"{source.name} does not know {named}.")
    return found[0]


def in_one_request(source: Source, papers: Sequence[Identifiers]) -> list[int]:
    """Give the indices of the papers that the source's request for all of them does ask for.

    Services take so many at once, and identifiers of one kind; a paper is in the request when it were another without it.
    """
    whole = source.lookup_many(papers)
    if whole is None:
        return []
    others = ([*papers[:index], *papers[index + 1 :]] for index in range(len(papers)))
    return [index for index, rest in enumerate(others) if source.lookup_many(rest) != whole]


async def list_works(source: Source, papers: Sequence[Identifiers], fetch: Fetch) -> list[tuple[int, Work]]:
    """Look several papers up in one request, as many as fit; give (index in `papers`, work) for those that are known."""
    request = source.lookup_many(papers)
    if request is None:
        return []
    works = (await ask(source, request, fetch)).works
    return [(index, work) for index, wanted in enumerate(papers) for work in pick(works, wanted)]
