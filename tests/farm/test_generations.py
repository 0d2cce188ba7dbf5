"""A second encoder is filled beside the first, takes over, and the first is freed; nothing ever mixes."""

from __future__ import annotations

import asyncio
import dataclasses

import numpy as np
import psycopg
import pytest

from brain.encoder_compare import Question, compare_encoders, ndcg, recall, reciprocal_rank
from corpus import generations, vector_index
from corpus.encoders import get_active, register_encoder
from corpus.errors import EncoderRefused, UsageError
from encoders.hashing import HASHING, HashingEncoder
from search_server.encoding import QueryEncoder
from tests.farm.support import add_papers, add_passages, check_whole, drain, one, until

OTHER = dataclasses.replace(HASHING, name="turned", weights_sha256="0" * 64, source="turned")


class Turned(HashingEncoder):
    """Another encoder: the hashing encoder's embeddings turned over."""

    def __init__(self):
        super().__init__()
        self.spec = OTHER

    def encode(self, texts, *, kind="document"):
        return -super().encode(texts, kind=kind)


def _loader(row, device, cache):
    return Turned() if row.name == "turned" else HashingEncoder()


@pytest.fixture
def connection(database):
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        yield connection


def _add(connection):
    with connection.transaction():
        return register_encoder(connection, OTHER, activate=False).encoder_id


async def test_a_generation_from_added_to_retired(database, connection):
    add_papers(connection, [f"paper {i} about the sea" for i in range(80)])
    add_passages(connection, [f"passage {i} about the sea" for i in range(90)])
    assert await drain(database, loader=_loader) == 0
    other = _add(connection)
    assert generations.filling_of(connection, other).n_missing_papers == 80
    with pytest.raises(EncoderRefused, match="lacks 80 papers and 90 passages"):
        generations.activate(connection, other)

    assert generations.fill(connection, other) == 4
    assert generations.fill(connection, other) == 0
    assert await drain(database, loader=_loader) == 0
    assert check_whole_of(connection, 1) == check_whole_of(connection, other) == 170
    assert vector_index.list_states(connection, other) == {"passage": None, "paper": None}

    assert generations.activate(connection, other, wait_s=0) == []
    assert get_active(connection).encoder_id == other
    assert vector_index.list_states(connection, other) == {"passage": True, "paper": True}
    with pytest.raises(EncoderRefused, match="serves"):
        generations.retire(connection, other)

    assert generations.retire(connection, 1) > 0
    assert connection.execute("SELECT to_regclass('passage_embedding_1')").fetchone() == (None,)
    assert [row.state for row in generations.list_encoders(connection)] == ["active", "retired"]
    assert generations.fill(connection, 1) == 4
    assert await drain(database, loader=_loader) == 0
    assert check_whole_of(connection, 1) == 170


def check_whole_of(connection, encoder_id):
    """Every text has the embedding of this encoder; returns how many there are."""
    sign = 1 if encoder_id == 1 else -1
    n = 0
    for table, leaf in (("passage", "passage_embedding"), ("paper", "paper_embedding")):
        rows = connection.execute(
            f"SELECT t.text, e.embedding::real[] FROM {table} t JOIN {leaf} e USING (text_sha256) WHERE e.encoder_id = %s",
            [encoder_id],
        ).fetchall()
        expected = HashingEncoder().encode([text for text, _ in rows]).astype(np.float16) * sign
        assert np.array_equal(np.array([v for _, v in rows], dtype=np.float16).reshape(-1, 768), expected)
        n += len(rows)
    return n


async def test_new_papers_are_queued_for_a_generation_that_is_filled(database, connection):
    other = _add(connection)
    generations.fill(connection, other)
    pks = add_papers(connection, ["fresh paper"], priority=10)
    connection.execute("SELECT embedding_want(%s, '{}', 10)", [pks])
    queued = connection.execute("SELECT encoder_id, min(priority) FROM job GROUP BY encoder_id ORDER BY 1").fetchall()
    assert queued == [(1, 10), (other, 200)]


async def test_the_encoder_that_serves_goes_before_the_one_that_is_filled(database, connection):
    add_passages(connection, [f"passage {i}" for i in range(10)])
    other = _add(connection)
    order = []

    def loader(row, device, cache):
        order.append(row.encoder_id)
        return _loader(row, device, cache)

    generations.fill(connection, other)
    assert await drain(database, loader=loader) == 0
    assert order == [1, other]
    assert check_whole_of(connection, other) == 10


def test_a_failed_build_leaves_no_index_and_switches_nothing(connection, monkeypatch):
    other = _add(connection)
    generations.fill(connection, other)
    connection.execute(
        f"INSERT INTO passage_embedding_{other} SELECT {other}, sha256(g::text::bytea), array_fill(g, ARRAY[768])::real[]::halfvec FROM generate_series(1, 300) g"
    )
    connection.execute("SET maintenance_work_mem = '1MB'")
    connection.execute("SET statement_timeout = 1")
    with pytest.raises(psycopg.errors.QueryCanceled):
        vector_index.ensure(connection, other)
    connection.execute("RESET statement_timeout")
    assert connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() == (0,)
    assert get_active(connection).encoder_id == 1


async def test_activation_waits_until_live_servers_have_loaded_the_encoder(database, connection):
    other = _add(connection)
    generations.fill(connection, other)
    connection.execute(
        "INSERT INTO node (name, role, host, pid, version, state, detail) VALUES ('web', 'search', 'h', 1, '1', 'ready', '{\"encoders\": [1]}')"
    )
    assert generations.activate(connection, other, wait_s=0) == ["web"]
    connection.execute("SELECT encoder_activate(1)")
    generations.fill(connection, other)

    def announced():
        return one(database, "SELECT EXISTS (SELECT FROM setting WHERE name = 'encoder_next')")

    running = asyncio.create_task(asyncio.to_thread(generations.activate, connection, other, wait_s=20))
    await until(announced)
    assert one(database, "SELECT encoder_id FROM encoder WHERE state = 'active'") == 1
    with psycopg.connect(database.conninfo) as elsewhere:
        elsewhere.execute(
            "UPDATE node SET detail = jsonb_build_object('encoders', jsonb_build_array(1, %s::integer))", [other]
        )
    assert await running == []
    assert one(database, "SELECT encoder_id FROM encoder WHERE state = 'active'") == other
    assert not announced()


async def test_a_server_loads_the_coming_encoder_beside_and_switches_at_once(connection, tmp_path):
    other = _add(connection)
    rows = {row.encoder_id: row for row in generations.list_encoders(connection)}
    server = QueryEncoder(
        cache=tmp_path,
        load=lambda which, **_: Turned() if getattr(which, "name", which) == "turned" else HashingEncoder(),
    )
    server.want(rows[1])
    await until(lambda: server.loaded == [1])
    server.prepare(rows[other])
    await until(lambda: server.loaded == [1, other])
    assert (await server.encode("a question")).encoder_id == 1
    server.want(rows[other])
    assert server.loaded == [other]
    assert (await server.encode("a question")).encoder_id == other
    server.prepare(rows[1])
    await until(lambda: server.loaded == [other, 1])
    server.prepare(None)
    assert server.loaded == [other]
    server.close()


def test_an_encoder_is_named_by_number_or_name(connection):
    other = _add(connection)
    assert generations.get_encoder(connection, "turned").encoder_id == other
    assert generations.get_encoder(connection, str(other)).name == "turned"
    with pytest.raises(UsageError, match="no encoder 'nonsense'"):
        generations.get_encoder(connection, "nonsense")


async def test_compare_measures_both_on_the_same_questions(database, connection, tmp_path):
    pks = add_papers(
        connection, ["coral reefs bleach in warm water", "enzymes cut strands of DNA", "glaciers move over rock"]
    )
    ids = dict(connection.execute("SELECT paper_pk, paper_id FROM paper").fetchall())
    await drain(database)
    questions = [
        Question("coral reefs in warm water", {ids[pks[0]]: 1}),
        Question("enzymes that cut DNA", {ids[pks[1]]: 1}),
    ]
    (found,) = compare_encoders(connection, [get_active(connection)], questions, tmp_path)
    assert (found["ndcg_10"], found["mrr_10"], found["recall_10"], found["overlap_10"]) == (1, 1, 1, 1)


def test_measures_by_hand():
    assert ndcg(["a", "b"], {"b": 1}) == pytest.approx(0.6309, abs=1e-4)
    assert reciprocal_rank(["a", "b"], {"b": 1}) == 0.5
    assert recall(["a", "b"], {"b": 1, "c": 1}) == 0.5


async def test_check_whole_sees_a_whole_corpus(database, connection):
    add_passages(connection, ["one"])
    await drain(database)
    assert check_whole(database) == 1
