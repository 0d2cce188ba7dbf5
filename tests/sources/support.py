"""Recorded answers as the adapters get them."""

from __future__ import annotations

from functools import cache

from ingest.sources import SOURCES
from ingest.sources.base import Access, Answer, Parsed
from tests.sources.recordings import URLS
from tests.support import shared


def payload(path: str) -> bytes:
    return shared("sources", *path.split("/")).read_bytes()


def answer(path: str, status: int | None = None) -> Answer:
    return Answer(payload(path), status, url=URLS.get(path, ""))


@cache
def parsed(path: str) -> Parsed:
    """What the adapter of the recording's folder reads in it."""
    return read(path.partition("/")[0], answer(path))


def read(name: str, given: Answer) -> Parsed:
    return SOURCES[name](Access()).parse(given)
