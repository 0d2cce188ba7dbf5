"""Fixtures of the search tests: a service, an HTTP client, both over a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from corpus.database import Database
from search_server.app import create_app
from search_server.service import SearchService
from tests.search.corpus import ready, settings_at


@pytest.fixture
async def service(database: Database, home: Path) -> AsyncIterator[SearchService]:
    async with SearchService.open(database, settings_at(home)) as opened:
        yield await ready(opened)


@pytest.fixture
async def client(database: Database, home: Path) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(database, settings_at(home))
    async with app.router.lifespan_context(app):
        await ready(app.state.service)
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as opened:
            opened.service = app.state.service  # type: ignore[attr-defined]
            yield opened
