"""`brain search`, `brain paper`, `brain papers`: what the search server answers, without a server or from servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json

if TYPE_CHECKING:
    from brain.servers import Servers
    from search_server.service import SearchService

_READY = timedelta(seconds=120)
Server = Annotated[
    str | None, Parameter(name="--server", help="Ask these servers instead, the next one when one is gone: URL,URL")
]
Token = Annotated[str | None, Parameter(name="--token", help="The token of the servers.")]


def search(
    question: str,
    /,
    *,
    k: Annotated[int, Parameter(name=["-k", "--k"], help="Number of papers, 1 to 100.")] = 8,
    topic: Annotated[list[str] | None, Parameter(help="Only papers of this topic; may be repeated.")] = None,
    exclude_topic: Annotated[list[str] | None, Parameter(help="Leave this topic out; may be repeated.")] = None,
    kind: Annotated[list[str] | None, Parameter(help="Only this kind: paper, book, news, note, session, exam.")] = None,
    exclude_kind: Annotated[list[str] | None, Parameter(help="Leave this kind out.")] = None,
    year_from: Annotated[int | None, Parameter(help="First year.")] = None,
    year_to: Annotated[int | None, Parameter(help="Last year.")] = None,
    weights: Annotated[
        str | None, Parameter(help="Such as passage_vector:0.5,passage_bm25:0.3,paper_vector:0.2")
    ] = None,
    boosts: Annotated[str | None, Parameter(help="Such as velocity:1.1 (0.8 to 1.25)")] = None,
    fusion: Annotated[str | None, Parameter(help="How the lists are fused.")] = None,
    per_list: Annotated[int | None, Parameter(help="Candidates of each list, 1 to 200.")] = None,
    explain: Annotated[bool, Parameter(negative=(), help="Show where each hit's score comes from.")] = False,
    server: Server = None,
    token: Token = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Ask one question. Example: `brain search "how does multi-head attention work" -k 3`."""
    from search_server.params import parse_search

    given: list[tuple[str, str]] = [("q", question), ("k", str(k))]
    for name, values in (
        ("topic", topic),
        ("exclude_topic", exclude_topic),
        ("kind", kind),
        ("exclude_kind", exclude_kind),
    ):
        given += [(name, value) for value in values or ()]
    single = {
        "year_from": year_from,
        "year_to": year_to,
        "weights": weights,
        "boosts": boosts,
        "fusion": fusion,
        "per_list": per_list,
    }
    given += [(name, str(value)) for name, value in single.items() if value is not None]
    if explain:
        given.append(("explain", "true"))
    params = parse_search(given)
    if server is not None:
        answer = _servers(server, token, db).get("/brain_search", given)
    else:
        answer = _with_service(db, lambda service: service.search(params), has_vectors=True)
    if json:
        print_json(answer)
        return 0
    from brain.answer_view import print_answer

    print_answer(answer, is_explained=explain)
    return 0


def paper(
    paper_id: str,
    /,
    *,
    full: Annotated[bool, Parameter(negative=(), help="Print the whole text.")] = False,
    part: Annotated[str | None, Parameter(help="With --full: abstract or document.")] = None,
    server: Server = None,
    token: Token = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Show one paper by any of its identifiers, or its whole text."""
    from search_server.browse import BrowseService

    async def ask(service: SearchService) -> dict[str, Any]:
        browser = BrowseService(service.pool, service.state)
        return await (browser.get_text(paper_id, part) if full else browser.get_paper(paper_id))

    if server is not None:
        from brain.servers import paper_path

        items = [("part", part)] if full and part is not None else []
        found = _servers(server, token, db).get(paper_path(paper_id, "/text" if full else ""), items)
    else:
        found = _with_service(db, ask)
    if json:
        print_json(found)
    elif full:
        print(found["text"])
    else:
        for name, value in found.items():
            if value not in (None, [], {}, ""):
                print(f"{name}: {value}")
    return 0


def papers(
    *,
    topic: Annotated[str | None, Parameter(help="Only papers of this topic.")] = None,
    state: Annotated[
        str | None, Parameter(help="Only papers in this state, such as embedding, ready, refused.")
    ] = None,
    q: Annotated[str | None, Parameter(help="Words of the title.")] = None,
    limit: Annotated[int | None, Parameter(help="At most so many.")] = None,
    after: Annotated[str | None, Parameter(help="Go on after this one (`next` of the last answer).")] = None,
    server: Server = None,
    token: Token = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """List papers with their state, from the moment they are known."""
    from search_server.browse import BrowseService, parse_papers

    stated = {"topic": topic, "state": state, "q": q, "limit": limit, "after": after}
    given = [(name, str(value)) for name, value in stated.items() if value is not None]
    params = parse_papers(given)
    if server is not None:
        page = _servers(server, token, db).get("/papers", given)
    else:
        page = _with_service(db, lambda service: BrowseService(service.pool, service.state).list_papers(params))
    if json:
        print_json(page)
        return 0
    from brain.answer_view import print_papers

    print_papers(page)
    return 0


def _servers(server: str, token: str | None, db: str | None) -> Servers:
    from brain.servers import Servers
    from corpus.errors import UsageError

    if db is not None:
        raise UsageError("--server and --db are two places to ask.", mend="Give one of them.")
    return Servers(server, token=token)


def _with_service(
    db: str | None, ask: Callable[[SearchService], Awaitable[dict[str, Any]]], *, has_vectors: bool = False
) -> dict[str, Any]:
    from search_server.service import SearchService

    settings = get_settings()
    database = get_database(db, settings, name="brain search")

    async def run() -> dict[str, Any]:
        async with SearchService.open(database, settings, share_index=True) as service:
            if has_vectors:
                await service.wait_ready(_READY)
            return await ask(service)

    return asyncio.run(run())
