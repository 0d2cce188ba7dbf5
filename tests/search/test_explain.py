"""Reasons, highlights, more passages, versions shown once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_server.highlights import highlights
from search_server.versions import family
from search_server.words.analysis import stems, surface_words
from tests.search.corpus import embed, in_step, load

LONG = " ".join(f"Sentence {n} tells of basalt columns and cooling cracks in detail." for n in range(80))


@pytest.fixture
async def filled(database, client):
    load(database, [
        {"_id": "a", "title": "Basalt columns", "text": LONG},
        {"_id": "b", "title": "Granite", "text": "Granite cools slowly. No columns."},
    ])  # fmt: skip
    with database.connect() as connection:
        for version in (1, 2):
            connection.execute(
                "INSERT INTO paper (paper_id, title, text) VALUES (%s, 'Versioned lichen', 'Versioned lichen')",
                [f"doi:10.21203/rs.3.rs-123/v{version}"],
            )
        connection.execute(
            "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT paper_pk, 'abstract', 0, 0, 16, text, sha256(text::bytea) FROM paper WHERE paper_id LIKE 'doi:%'"
        )
    embed(database)
    await in_step(client.service)
    return client


async def test_explain_adds_up(filled):
    body = json.loads(
        (await filled.get("/brain_search", params={"q": "cooling of basalt columns", "explain": "true"})).text
    )
    assert body["explain"]["fusion"] == "blend"
    assert [e["rank"] for e in body["explain"]["lists"]["passage_bm25"]] == list(
        range(1, len(body["explain"]["lists"]["passage_bm25"]) + 1)
    )
    for hit in body["hits"]:
        why = hit["explain"]
        assert sum(why["shares"].values()) == pytest.approx(hit["score"], abs=1e-5)
        assert why["rank_without_boosts"] >= 1
    words = {entry["word"] for entry in body["hits"][0]["explain"]["words"]}
    assert words == {"cooling", "basalt", "columns"}
    top = body["hits"][0]
    assert sum(e["score"] for e in top["explain"]["words"]) == pytest.approx(top["explain"]["exact"]["bm25"], rel=1e-4)


async def test_more_passages_of_a_paper(filled):
    body = (await filled.get("/brain_search", params={"q": "basalt columns", "passages": 3})).json()
    passages = body["hits"][0]["passages"]
    assert len(passages) == 3
    assert passages[0]["passage_id"] == body["hits"][0]["passage"]["passage_id"]
    assert len({p["passage_id"] for p in passages}) == 3
    for passage in passages:
        marked = {passage["text"][a:b].lower() for a, b in passage["highlights"]}
        assert marked == {"basalt", "columns"}


async def test_versions_are_shown_once(filled):
    body = (await filled.get("/brain_search", params={"q": "lichen"})).json()
    assert sum("lichen" in hit["title"] for hit in body["hits"]) == 1


def test_families():
    assert family("doi:10.21203/rs.3.rs-123/v1") == family("doi:10.21203/rs.3.rs-123/v2")
    assert family("doi:10.20944/preprints202001.0001.v1") == family("doi:10.20944/preprints202001.0001.v3")
    assert family("doi:10.12688/f1000research.1234.1") == family("doi:10.12688/f1000research.1234.2")
    assert family("doi:10.5281/zenodo.100") != family("doi:10.5281/zenodo.101")
    assert family("doi:10.1371/journal.pone.0197919") == "doi:10.1371/journal.pone.0197919"
    assert family("arxiv:1706.03762") == "arxiv:1706.03762"


@pytest.mark.parametrize(
    ("text", "question", "marked"),
    [
        ("The COVID-19 vaccines work.", "covid19 vaccine", ["COVID-19", "vaccines"]),
        ("Chro\u00admatin folds", "chromatin", ["Chro\u00admatin"]),
        ("深層学習の応用", "学習", ["学習"]),
        ("TNF-α rises", "tnf-alpha", ["TNF", "α"]),
        ("nothing here", "other", []),
        ("e\u0301tude one", "étude", ["e\u0301tude"]),
    ],
)
def test_highlights(text, question, marked):
    found = highlights(text, stems(surface_words(question)))
    assert [text[a:b] for a, b in found] == marked


@given(st.text(max_size=60), st.text(max_size=20))
def test_highlights_are_in_order_and_inside(text, question):
    last = 0
    for start, end in highlights(text, stems(surface_words(question))):
        assert last <= start < end <= len(text)
        last = end
