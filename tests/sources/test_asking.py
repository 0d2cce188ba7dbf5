"""Asking: a search to its end, the right paper or none."""

from __future__ import annotations

import json

import pytest

from corpus.errors import SourceAbsent, SourceThrottled
from ingest.sources import SOURCES
from ingest.sources.asking import get_work, in_one_request, iter_search, list_works
from ingest.sources.base import Access, Answer, Request
from tests.sources.support import payload


def replay(*bodies: bytes, status: int = 200):
    """A fetch that gives the bodies one after another and remembers what was asked."""
    asked: list[Request] = []

    async def fetch(request: Request) -> Answer:
        asked.append(request)
        return Answer(bodies[min(len(asked), len(bodies)) - 1], status, url=request.full_url)

    return fetch, asked


def source(name: str):
    return SOURCES[name](Access("reader@university.edu", "k"))


async def test_pages_are_followed_to_the_end():
    pages = [
        {
            "message-type": "work-list",
            "message": {"items": [{"DOI": f"10.1/{n}"}] if n < 3 else [], "next-cursor": "same"},
        }
        for n in range(4)
    ]
    fetch, asked = replay(*(json.dumps(page).encode() for page in pages))
    found = [page async for page in iter_search(source("crossref"), "x", fetch)]
    # A cursor that repeats ends the search: it went round in a circle, or was the last one.
    assert len(found) == len(asked) == 2
    fetch, asked = replay(payload("europe-pmc/search_no_results.json"))
    assert [page.works async for page in iter_search(source("europe-pmc"), "x", fetch)] == [[]]


async def test_a_throttled_search_is_no_empty_one():
    fetch, _ = replay(b"Rate exceeded.", status=429)
    with pytest.raises(SourceThrottled):
        _ = [page async for page in iter_search(source("arxiv"), "x", fetch)]


async def test_look_up():
    fetch, asked = replay(payload("arxiv/query_id_1605.08386.atom.xml"))
    work = await get_work(source("arxiv"), {"arxiv": "1605.08386"}, fetch)
    assert work.title == "Heat-bath random walks with Markov bases"
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("name", "path", "wanted"),
    [
        ("arxiv", "arxiv/query_id_unknown_empty.atom.xml", {"arxiv": "0000.00000"}),
        ("arxiv", "arxiv/query_id_1605.08386.atom.xml", {"arxiv": "2005.11401"}),  # another paper
        ("europe-pmc", "europe-pmc/search_no_results.json", {"doi": "10.1/x"}),
        ("plos", "plos/search_count_only_rows0.json", {"doi": "10.1371/x"}),
        ("acl-anthology", "acl-anthology/xml_J89.xml", {"doi": "10.1/x"}),  # cannot be asked for
    ],
)
async def test_what_a_source_does_not_know_is_absent(name: str, path: str, wanted: dict[str, str]):
    fetch, _ = replay(payload(path))
    with pytest.raises(SourceAbsent):
        await get_work(source(name), wanted, fetch)


async def test_several_are_matched_by_id_and_not_by_position():
    fetch, _ = replay(payload("arxiv/query_id_two_one_unknown.atom.xml"))
    found = await list_works(source("arxiv"), [{"arxiv": "0808.05394"}, {"arxiv": "1707.08567"}], fetch)
    assert [(index, work.source_id) for index, work in found] == [(1, "1707.08567")]
    assert await list_works(source("biorxiv"), [{"doi": "10.1101/1"}], fetch) == []


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in SOURCES
        if source(name).lookup_many([{"doi": "10.1371/a", "arxiv": "2401.00001", "pmid": "1", "openalex": "W1"}])
    ],
)
def test_a_paper_is_in_a_request_or_known_not_to_be(name):
    papers = [{"arxiv": f"2401.{n:05}", "doi": f"10.1371/x.{n}", "pmid": f"{n}1"} for n in range(1, 61)]
    papers += [{"openalex": f"W{n}7"} for n in range(1, 4)]
    left, rounds = list(papers), 0
    while left and rounds < 10:
        inside = in_one_request(source(name), left)
        if not inside:
            break
        request = source(name).lookup_many(left)
        said = request.full_url + (request.body or b"").decode()
        for index in inside:
            assert any(value.replace("/", "%2F") in said or value in said for value in left[index].values())
        left = [paper for index, paper in enumerate(left) if index not in inside]
        rounds += 1
    assert len(left) in {0, 3}, "what no request asked for would be called unknown"
