"""Every recorded answer is read by its adapter, each recorded error ends in its class, and none is forgotten."""

from __future__ import annotations

import json
import re

import pytest

from corpus.errors import SourceError
from ingest.sources import SOURCES
from tests.sources.recordings import ERRORS, N_WORKS
from tests.sources.support import answer, parsed, read
from tests.support import shared


def test_every_recording_is_used():
    there = {
        f"{folder.name}/{file.name}"
        for folder in shared("sources").iterdir()
        if folder.is_dir() and folder.name != "seed-lists"
        for file in folder.iterdir()
        if file.name != "README.md"
    }
    assert there == N_WORKS.keys() | ERRORS.keys()


def test_every_folder_has_an_adapter():
    folders = {folder.name for folder in shared("sources").iterdir() if folder.is_dir()}
    assert folders - {"seed-lists"} == set(SOURCES)


@pytest.mark.parametrize("path", N_WORKS)
def test_works_are_read(path: str):
    works = parsed(path).works
    assert len(works) == N_WORKS[path]
    for work in works:
        assert work.source == path.partition("/")[0]
        assert work.identifiers or work.title or work.abstract or work.source_id
        json.dumps(work.to_json())


@pytest.mark.parametrize("path", N_WORKS)
def test_texts_are_running_text(path: str):
    for work in parsed(path).works:
        for text in (work.title, work.abstract, work.venue, *work.authors):
            if text is None:
                continue
            assert text == " ".join(text.split())
            assert not re.search(
                r"</?(?:jats:|mml:)?(?:p|i|b|em|strong|sub|sup|h4|title|italic|bold|sec|span|br)\b[^<>]*>", text
            )
            assert not re.search(r"&(?:#\d+|#x[0-9a-f]+|amp|lt|gt|quot|apos|nbsp);", text)


@pytest.mark.parametrize("path", N_WORKS)
def test_identifiers_have_their_one_form(path: str):
    forms = {
        "doi": r"10\.\d{4,9}/[^A-Z\s]+", "arxiv": r"(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})", "pmid": r"\d+",
        "pmcid": r"PMC\d+", "openalex": r"W\d+", "s2": r"[0-9a-f]{40}", "acl": r"\S+", "openreview": r"[\w-]+",
    }  # fmt: skip
    for work in parsed(path).works:
        for kind, form in forms.items():
            if kind in work.identifiers:
                assert re.fullmatch(form, work.identifiers[kind])
        if work.published_on:
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", work.published_on)
        assert all(re.match(r"https?://", place.url) for place in work.locations)


@pytest.mark.parametrize("path", ERRORS)
@pytest.mark.parametrize("is_status_known", [True, False])
def test_errors_end_in_their_class(path: str, is_status_known: bool):
    status, outcome = ERRORS[path]
    with pytest.raises(SourceError) as caught:
        read(path.partition("/")[0], answer(path, status if is_status_known else None))
    assert caught.value.outcome == outcome
    assert caught.value.transient == (outcome in {"throttled", "down"})


@pytest.mark.parametrize("path", [path for path, n in N_WORKS.items() if n])
def test_half_an_answer_is_nonsense(path: str):
    given = answer(path)
    if path.endswith((".html", ".bib")):
        pytest.skip("a page or an entry has no end that could be missing")
    for part in (0.35, 0.7, 0.98):
        half = given.body[: int(len(given.body) * part)]
        with pytest.raises(SourceError) as caught:
            read(path.partition("/")[0], type(given)(half))
        assert caught.value.outcome == "nonsense"
