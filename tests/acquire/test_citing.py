"""Citing works that a source names become edges among the corpus's papers, and no papers."""

import json

import pytest

from ingest.acquire.citing import source_for
from ingest.acquire.plan import Known
from ingest.sources import make_sources
from tests.acquire.internet import ARXIV, Internet, serving
from tests.acquire.support import ingest, write_topic

pytestmark = pytest.mark.shared
CITED, CITING = "2007.01282", "2203.14465"
WORKS = {CITED: "W101", CITING: "W102"}


def _work(own):
    place = {"is_oa": True, "landing_page_url": f"https://arxiv.org/abs/{own}"}
    return {"id": f"https://openalex.org/{WORKS[own]}", "display_name": ARXIV[own].title, "locations": [place]}


def _openalex(url):
    if "cites%3AW101" in url or "cites:W101" in url:
        stranger = {"id": "https://openalex.org/W999", "display_name": "A paper that the corpus does not have"}
        results = [stranger, _work(CITING)] if "cursor=%2A" in url else []
        value = {"meta": {"count": 2, "next_cursor": "more" if results else None}, "results": results}
    elif "cites" in url:
        value = {"meta": {"count": 0, "next_cursor": None}, "results": []}
    else:
        value = {"meta": {"count": 2}, "results": [_work(own) for own in WORKS]}
    return 200, "application/json", json.dumps(value).encode()


def test_papers_of_the_corpus_that_cite_a_listed_one_are_linked_to_it(database, tmp_path):
    write_topic(tmp_path, ids=(CITED, CITING), queries=())
    internet = Internet()
    answer = internet.answer
    internet.answer = lambda method, url, body: (
        _openalex(url) if url.startswith("api.openalex.org/") else answer(method, url, body)
    )
    with serving(internet):
        report = ingest(database, tmp_path, internet, has_full_texts=False)
        n_asked = len(internet.asked)
        ingest(database, tmp_path, internet, has_full_texts=False)
        assert internet.asked[n_asked:] == [], "each paper is asked for once in a while"
    assert report.problems == []
    with database.connect() as connection:
        edges = connection.execute(
            "SELECT a.paper_id, b.paper_id, c.source FROM citation c JOIN paper a ON a.paper_pk = c.citing_pk JOIN paper b ON b.paper_pk = c.cited_pk"
        ).fetchall()
        n_papers = connection.execute("SELECT count(*) FROM paper").fetchone()[0]
    assert edges == [(f"arxiv:{CITING}", f"arxiv:{CITED}", "openalex")]
    assert n_papers == 2


def _known(asked, *nodes):
    return Known(1, True, True, list(nodes), True, True, False, asked)


def test_the_first_source_that_can_is_asked_and_the_next_when_it_cannot_tell():
    sources = make_sources({})
    assert source_for(_known({}, "openalex:W1", "pmid:2"), sources) == "openalex"
    assert source_for(_known({}, "pmid:2"), sources) == "europe-pmc"
    assert source_for(_known({"openalex:citations": ["ok", 5.0]}, "openalex:W1", "pmid:2"), sources) is None
    assert source_for(_known({"openalex:citations": ["down", 5.0]}, "openalex:W1", "pmid:2"), sources) == "openalex"
    assert source_for(_known({"openalex:citations": ["absent", 5.0]}, "openalex:W1", "pmid:2"), sources) == "europe-pmc"
    assert source_for(_known({"openalex:citations": ["ok", 3e6]}, "openalex:W1"), sources) == "openalex"
    assert source_for(_known({}, "openalex:W1"), sources, is_listed=False) is None, "a search gave it"
    assert (
        source_for(_known({"openalex:citations": ["ok", 3e6]}, "openalex:W1"), sources, is_listed=False) == "openalex"
    )
    assert source_for(_known({}, "arxiv:2401.00001"), sources) is None, "without a key there is no room"
    keyed = make_sources({"BRAIN_SEMANTIC_SCHOLAR_API_KEY": "k"})
    assert source_for(_known({}, "arxiv:2401.00001"), keyed) == "semantic-scholar"
