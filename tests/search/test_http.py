"""The HTTP contract over a real database."""

import json
from urllib.parse import quote

import pytest

from search_server.problems import KINDS
from tests.search.corpus import embed, ids, in_step, load

ROWS = [
    {"_id": "a", "title": "Attention heads", "text": "Multi-head attention attends to many places.",
     "metadata": {"topics": ["transformers", "o'brien rings"], "year": 2017, "arxiv": "1706.03762", "authors": ["A. Vaswani"]}},
    {"_id": "b", "title": "Dense retrieval", "text": "Two encoders attend to questions and passages.",
     "metadata": {"topics": ["retrieval"], "year": 2020, "doi": "10.5555/abc.def/text"}},
    {"_id": "c", "title": "Glaciers", "text": "Moraines attend no school."},
    {"_id": "d", "title": "Log of a session", "text": "Questions about attention heads.", "metadata": {"kind": "session"}},
    {"_id": "e", "title": "", "text": ""},
]  # fmt: skip


@pytest.fixture
async def filled(database, client):
    load(database, ROWS)
    embed(database)
    await in_step(client.service)
    await client.service.state.refresh()
    return client


def kind_of(answer) -> str:
    assert answer.headers["content-type"].startswith("application/problem+json")
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["title"]
    assert body["detail"]
    return body["type"].rpartition("/")[2]


async def ask(client, **more):
    answer = await client.get("/brain_search", params=more)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_constant=lambda name: pytest.fail(name))


async def test_the_form_of_an_answer(filled):
    body = await ask(filled, q="multi-head attention", k=2)
    assert list(body) == ["query", "k", "n_hits", "took_ms", "encoder", "degraded", "hits"]
    assert list(body["took_ms"]) == ["encode", "passage_vector", "passage_bm25", "paper_vector", "total"]
    assert body["encoder"] == "hashing"
    assert body["degraded"] == []
    hit = body["hits"][0]
    assert list(hit) == ["rank", "score", "paper_id", "kind", "title", "authors", "year", "url", "topics", "n_citations",
                         "passage", "lists", "boosts"]  # fmt: skip
    assert list(hit["passage"]) == ["passage_id", "part", "text", "section", "page_from", "page_to", "char_start",
                                    "char_end", "text_sha256"]  # fmt: skip
    assert hit["paper_id"] == "t:a"
    assert (hit["rank"], hit["year"], hit["authors"]) == (1, 2017, ["A. Vaswani"])
    assert hit["topics"] == ["o'brien rings", "transformers"]
    assert list(hit["lists"]) == ["passage_vector", "passage_bm25", "paper_vector"]


async def test_the_passage_is_a_slice_of_the_text(filled):
    for hit in (await ask(filled, q="attend", k=10))["hits"]:
        passage = hit["passage"]
        text = (
            await filled.get(f"/papers/{quote(hit['paper_id'], safe='')}/text", params={"part": passage["part"]})
        ).json()
        assert text["text"][passage["char_start"] : passage["char_end"]] == passage["text"]


async def test_the_score_is_what_the_places_say(filled):
    for hit in (await ask(filled, q="attention questions", k=10, fusion="rrf"))["hits"]:
        total = sum(1 / 3 / (60 + place["rank"]) for place in hit["lists"].values() if place)
        assert hit["score"] == pytest.approx(total, abs=1e-7)


async def test_topics_in_and_out(filled):
    for topic in ("transformers", "o'brien rings", "retrieval"):
        await check_topic(filled, topic)


async def check_topic(filled, topic):
    everything = {"t:a", "t:b", "t:c"}
    inside = {f"t:{row['_id']}" for row in ROWS if topic in row.get("metadata", {}).get("topics", [])}
    for weights in ("passage_bm25:1", "passage_vector:1", "paper_vector:1"):
        assert set(ids(await ask(filled, q="attend", topic=topic, weights=weights))) <= inside
        left = set(ids(await ask(filled, q="attend", exclude_topic=topic, weights=weights)))
        assert left <= everything - inside
        if weights != "passage_bm25:1":
            assert left == everything - inside


async def test_sessions_come_only_when_asked_for(filled):
    assert "t:d" not in ids(await ask(filled, q="attention heads", k=10))
    assert ids(await ask(filled, q="attention heads", kind="session")) == ["t:d"]
    assert "t:d" not in ids(await ask(filled, q="attention heads", kind="session", exclude_kind="session"))


async def test_years(filled):
    for weights in ("passage_bm25:1", "passage_vector:1"):
        assert ids(await ask(filled, q="attend", year_from=2018, weights=weights)) == ["t:b"]
        assert ids(await ask(filled, q="attend heads attention", year_to=2018, weights=weights)) == ["t:a"]


PROBLEMS = [
        ("", 400, "empty-question"), ("q=", 400, "empty-question"), ("q=%20%09", 400, "empty-question"),
        ("q=x&k=0", 400, "bad-parameter"), ("q=x&k=1000", 400, "bad-parameter"), ("q=x&k=8&k=9", 400, "bad-parameter"),
        ("q=x&weights=passage_vector:nan", 400, "bad-parameter"), ("q=x&who=me", 400, "bad-parameter"),
        ("q=x&topic=nowhere", 404, "unknown-topic"), ("q=x&exclude_topic=retrieva", 404, "unknown-topic"),
        ("q=" + "x" * 8001, 400, "bad-parameter"),
]  # fmt: skip


async def test_problems(filled):
    for query, status, kind in PROBLEMS:
        answer = await filled.get(f"/brain_search?{query}")
        assert answer.status_code == status, query
        assert kind_of(answer) == kind
        assert kind in KINDS


async def test_an_unknown_topic_names_the_nearest(filled):
    body = (await filled.get("/brain_search", params={"q": "x", "topic": "transformer"})).json()
    assert body["nearest"][0] == "transformers"


ODD = ["a:b", '"', "(", "NOT", "AND OR", "-", "title:x AND (", "\\", "*", "~2", "^3", "[a TO b]", "x" * 8000, "word " * 1600,
     "\u2060", "🙂", "a\0b"]  # fmt: skip


async def test_any_signs_are_a_question(filled):
    for q in ODD:
        for explain in ("false", "true"):
            await ask(filled, q=q, explain=explain)


async def test_lone_surrogates_are_replaced(filled):
    answer = await filled.get("/brain_search?q=%ED%A0%80abc")
    assert answer.status_code == 200


async def test_papers_pages(filled):
    seen, after = [], None
    while True:
        page = (await filled.get("/papers", params={"limit": 2, **({"after": after} if after else {})})).json()
        assert page["n"] == 5
        seen += [row["paper_id"] for row in page["papers"]]
        after = page["next"]
        if after is None:
            break
    assert seen == [f"t:{row['_id']}" for row in ROWS]


async def test_papers_filters(filled):
    async def listed(**more):
        body = (await filled.get("/papers", params=more)).json()
        assert body["n"] == len(body["papers"])
        return [row["paper_id"] for row in body["papers"]]

    assert await listed(topic="retrieval") == ["t:b"]
    assert await listed(q="ATTENTION heads") == ["t:a"]
    assert await listed(state="empty") == ["t:e"]
    (nothing,) = (await filled.get("/papers", params={"state": "empty"})).json()["papers"]
    assert nothing["reason"] == "neither title, abstract nor full text is known"
    assert await listed(state="ready") == ["t:a", "t:b", "t:c", "t:d"]
    assert (await filled.get("/papers?state=lost")).status_code == 400
    assert kind_of(await filled.get("/papers?topic=none")) == "unknown-topic"


async def test_a_doi_that_ends_in_text(filled):
    for form in ("t:b", "10.5555/ABC.def/text", "doi:10.5555/abc.def/text", "https://doi.org/10.5555/abc.def/text"):
        whole = quote(form, safe="")
        assert (await filled.get(f"/papers/{whole}")).json()["paper_id"] == "t:b"
        assert (await filled.get(f"/papers/{whole}/text")).json()["text"].startswith("Dense retrieval")
        assert (await filled.get(f"/papers/{quote(form, safe=':/')}")).json()["paper_id"] == "t:b"
        assert (await filled.get(f"/papers/{quote(form, safe=':/')}/text")).json()["part"] == "abstract"


async def test_unknown_papers(filled):
    for path in (
        "/papers/t:zz",
        "/papers/t:zz/text",
        "/papers/1706.0376",
        "/papers/t:e/text",
        "/papers/%00",
        "/papers/t:a/text/text",
    ):
        answer = await filled.get(path)
        assert answer.status_code == 404, path
        assert kind_of(answer) == "unknown-paper"
    assert (await filled.get("/papers/t:a/text?part=document")).status_code == 404
    assert kind_of(await filled.get("/papers/t:a/text?part=half")) == "bad-parameter"


async def test_an_identifier_as_question(filled):
    for q in ("1706.03762", "arXiv:1706.03762v5", "https://arxiv.org/abs/1706.03762", "t:a"):
        for more in ({}, {"fusion": "rrf"}):
            assert ids(await ask(filled, q=q, **more))[0] == "t:a"
        assert "t:a" not in ids(await ask(filled, q=q, topic="retrieval"))


async def test_an_exact_title_as_question(filled):
    assert ids(await ask(filled, q="attention HEADS!"))[0] == "t:a"


async def test_signs_of_life(filled):
    assert (await filled.get("/livez")).status_code == 200
    assert (await filled.get("/readyz")).status_code == 200
    health = (await filled.get("/health")).json()
    assert health["papers"] == 5
    assert health["embeddings"]["papers"] == 4
    assert health["ef_search"] >= 20
    assert "brain_search_seconds" in (await filled.get("/metrics")).text
    assert [t["topic"] for t in (await filled.get("/topics")).json()["topics"]] == [
        "o'brien rings",
        "retrieval",
        "transformers",
    ]
    assert (await filled.get("/docs")).status_code == 200
    assert (await filled.get("/nowhere")).status_code == 404
    assert (await filled.post("/brain_search")).status_code == 405


async def test_boosts_are_shown_and_bounded(filled, database):
    with database.connect() as connection:
        connection.execute("UPDATE paper SET velocity = 1000 WHERE paper_id = 't:b'")
    plain = {h["paper_id"]: h for h in (await ask(filled, q="attend"))["hits"]}
    boosted = {h["paper_id"]: h for h in (await ask(filled, q="attend", boosts="velocity:1.25"))["hits"]}
    assert plain["t:b"]["boosts"] == {}
    factor = boosted["t:b"]["boosts"]["velocity"]
    assert 1.2 < factor <= 1.25
    assert boosted["t:b"]["score"] == pytest.approx(plain["t:b"]["score"] * factor, rel=1e-4)
    assert boosted["t:c"]["boosts"]["velocity"] == 1


async def test_words_answer_without_any_vector(database, client):
    load(database, ROWS)
    await in_step(client.service)
    body = await ask(client, q="attention heads")
    assert ids(body)[0] == "t:a"
    assert {d["list"]: d["reason"] for d in body["degraded"]} == {
        "passage_vector": "no_embeddings",
        "paper_vector": "no_embeddings",
    }
