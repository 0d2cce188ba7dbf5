"""The HTTP application: made with what it uses, opened and closed in its lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote

import psycopg
import structlog
from fastapi import FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from corpus.database import Database
from corpus.errors import DatabaseError
from corpus.farm import list_failures, status
from corpus.settings import Settings
from search_server import problems
from search_server.access import Access, AccessMiddleware
from search_server.browse import (
    PAPERS_PARAMETERS,
    TEXT_PARAMETERS,
    BrowseService,
    parse_papers,
    parse_part,
)
from search_server.documented import PAPER_RESPONSES, PROBLEM_RESPONSES, SEARCH_RESPONSES
from search_server.errors import BadParameter, SearchProblem
from search_server.health import Health, version
from search_server.json_out import json_bytes
from search_server.metrics import Metrics
from search_server.params import SEARCH_PARAMETERS, openapi_parameters, parse_search
from search_server.service import SearchService

log = structlog.get_logger()
Handler = Callable[[Request], Awaitable[Any]]


def create_app(
    database: Database, settings: Settings, *, access: Access | None = None, **service_options: Any
) -> FastAPI:
    """Return the application. The database is started (if embedded) when the application starts, and never again."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with SearchService.open(database, settings, **service_options) as service:
            app.state.service = service
            app.state.browse = BrowseService(service.pool, service.state)
            app.state.health = Health(service)
            app.state.metrics = Metrics(service)
            beat = asyncio.create_task(app.state.health.beat())
            yield
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)

    app = FastAPI(
        title="Research brain", version=version(), lifespan=lifespan, redoc_url=None, docs_url="/docs",
        description="Hybrid search over research papers: every hit with the passage that it can be quoted by.",
    )  # fmt: skip
    if access is not None and (access.token or access.networks):
        app.add_middleware(AccessMiddleware, access=access)
    _add_routes(app)
    _add_errors(app)
    return app


def _items(request: Request) -> list[tuple[str, str]]:
    query = request.scope["query_string"].decode("latin-1")
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=1000, errors="replace")
    except ValueError as error:
        raise BadParameter("The request has more than 1,000 parameters.", mend="Give fewer.") from error


def _add_routes(app: FastAPI) -> None:
    def get(
        path: str, parameters: dict[str, dict[str, Any]] | None = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        return _route(app, path, openapi_parameters(parameters or {}), **more)

    @get("/brain_search", SEARCH_PARAMETERS, summary="Answer a question", responses=SEARCH_RESPONSES)
    async def brain_search(request: Request) -> Any:
        return await request.app.state.service.search(parse_search(_items(request)))

    @get("/papers", PAPERS_PARAMETERS, summary="List papers with their state", responses=PROBLEM_RESPONSES)
    async def papers(request: Request) -> Any:
        return await request.app.state.browse.list_papers(parse_papers(_items(request)))

    @get("/topics", summary="List topics", responses=PROBLEM_RESPONSES)
    async def topics(request: Request) -> Any:
        return await request.app.state.browse.list_topics()

    @get("/health", summary="Counts, encoder, word index, nodes", responses=PROBLEM_RESPONSES)
    async def health(request: Request) -> Any:
        return await request.app.state.health.report()

    @get("/livez", summary="The process is alive")
    async def livez(request: Request) -> Any:  # noqa: ARG001
        return {"status": "alive"}

    @get("/readyz", summary="The database answers and the word index is open", responses=PROBLEM_RESPONSES)
    async def readyz(request: Request) -> Any:
        return await _ready(request.app.state.service)

    @get("/metrics", summary="Figures for Prometheus", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Any:
        return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @get("/farm", summary="What waits, runs, failed; the nodes", responses=PROBLEM_RESPONSES)
    async def farm(request: Request) -> Any:
        return await asyncio.to_thread(_farm, request.app.state.service.database)

    path_parameter = {
        "name": "paper_id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
        "description": "A key or any known identifier; slashes raw or percent-encoded. Append /text for the whole text.",
    }  # fmt: skip
    document = [path_parameter, *openapi_parameters(TEXT_PARAMETERS)]

    @_route(
        app, "/papers/{paper_id:path}", document, summary="One paper, or with /text its text", responses=PAPER_RESPONSES
    )
    async def paper(request: Request) -> Any:
        return await _paper(request)


def _route(app: FastAPI, path: str, parameters: list[dict[str, Any]], **more: Any) -> Callable[[Handler], Handler]:
    """Register a handler that returns JSON or a response; its parameters are documented from our own tables."""

    def register(handler: Handler) -> Handler:
        async def endpoint(request: Request) -> Response:
            result = await request.app.state.service.on_good_connections(lambda: handler(request))
            response = (
                result if isinstance(result, Response) else Response(json_bytes(result), media_type="application/json")
            )
            request.app.state.metrics.on_request(path, response.status_code)
            return response

        endpoint.__name__ = handler.__name__
        extra = {"parameters": parameters} if parameters else {}
        app.add_api_route(path, endpoint, methods=["GET"], openapi_extra=extra, **more)
        return handler

    return register


def _farm(database: Database) -> dict[str, Any]:
    """The farm as `brain status` shows it, with the last failures."""
    with database.connect(autocommit=True) as connection:
        return {**status(connection), "failures": list_failures(connection, 100)}


async def _paper(request: Request) -> Any:
    """Metadata or text. Where an id may itself end in /text, what is percent-encoded is the id's, else a known id wins."""
    browse: BrowseService = request.app.state.browse
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    tail = raw.split(b"?", 1)[0].decode("latin-1").partition("/papers/")[2]
    whole = unquote(tail, errors="replace")
    items = _items(request)
    if tail.endswith("/text"):
        head = unquote(tail[: -len("/text")], errors="replace")
        is_quoted_whole = "/" not in tail[: -len("/text")]
        if head and ((is_quoted_whole and await browse.is_known(head)) or items or not await browse.is_known(whole)):
            return await browse.get_text(head, parse_part(items))
    if items:
        parse_part([(name, value) for name, value in items if name != "part"])
    return await browse.get_paper(whole)


async def _ready(service: SearchService) -> Any:
    """Ask the database now; the word index must be open."""
    try:
        async with asyncio.timeout(1.5), service.pool.connection(timeout=1.2) as connection:
            await connection.execute("SELECT 1")
    except (PoolTimeout, TimeoutError) as error:
        raise service.problem_of(PoolTimeout(str(error))) from error
    index = service.words.state
    if service.words.reader is None:
        detail = f"The word index is {index.state}" + (f": {index.why}" if index.why else "") + "."
        return problems.plain_problem(
            503, "index-building", "The word index is not open yet", detail, {"Retry-After": "1"}
        )
    return {"status": "ready", "encoder": service.encoder.state["state"], "word_index": index.state}


def _add_errors(app: FastAPI) -> None:
    async def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, SearchProblem)
        return _count(request, problems.problem_response(error, request.url.path))

    async def on_database(request: Request, error: Exception) -> Response:
        service: SearchService = request.app.state.service
        return _count(request, problems.problem_response(service.problem_of(error), request.url.path))

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kinds = {404: "no-such-address", 405: "method-not-allowed"}
        headers = dict(error.headers) if error.headers else None
        response = problems.plain_problem(
            error.status_code, kinds.get(error.status_code, "http"), str(error.detail),
            f"{request.method} {request.url.path} is no address of this server; see /docs.", headers,
        )  # fmt: skip
        return _count(request, response)

    async def on_anything(request: Request, error: Exception) -> Response:
        log.error("request_failed", path=request.url.path, exc_info=error)
        return _count(request, problems.plain_problem(500, "failed", "The server failed", type(error).__name__))

    app.add_exception_handler(SearchProblem, on_problem)
    app.add_exception_handler(psycopg.Error, on_database)
    app.add_exception_handler(DatabaseError, on_database)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_anything)


def _count(request: Request, response: Response) -> Response:
    route = request.scope.get("route")
    request.app.state.metrics.on_request(getattr(route, "path", "-"), response.status_code)
    return response
