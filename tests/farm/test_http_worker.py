"""A worker whose encoder is a service: every wrong answer ends in its class, none in a stored bad embedding."""

from __future__ import annotations

import hashlib
import json
import time

import psycopg
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from corpus.encoders import register_encoder
from embed_worker.served import load_and_prove
from encoders.canary import make_reference
from encoders.hashing import HashingEncoder
from encoders.load import load_encoder, resolve_spec
from tests.farm.support import add_passages, drain

DIGEST = hashlib.sha256(b"a model of the tests").hexdigest()
N = 40


class Service:
    """Ollama's and OpenAI's shapes over the hashing encoder; `faults` are what its next answers to passages are."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("").rstrip("/")
        self.faults: list[str] = []
        self.poison = ""
        self.digest = DIGEST
        server.expect_request("/api/tags").respond_with_handler(
            lambda _: _json({"models": [{"name": "tester:latest", "digest": self.digest}]})
        )
        server.expect_request("/api/embed", method="POST").respond_with_handler(self._ollama)
        server.expect_request("/v1/embeddings", method="POST").respond_with_handler(self._openai)

    def _ollama(self, request: Request) -> Response:
        return self._answer(request, lambda rows: {"embeddings": rows})

    def _openai(self, request: Request) -> Response:
        return self._answer(
            request, lambda rows: {"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]}
        )

    def _answer(self, request: Request, shape) -> Response:
        texts = request.get_json()["input"]
        is_work = any(text.startswith("passage") for text in texts)
        fault = self.faults.pop(0) if is_work and self.faults else ""
        rows = (HashingEncoder().encode(texts) * 3).tolist()
        if self.poison:
            rows = [[float("nan")] * 768 if self.poison in text else row for text, row in zip(texts, rows, strict=True)]
        if fault == "429":
            return Response("slow down", status=429, headers={"Retry-After": "0.1"})
        if fault == "500":
            return Response("oops", status=500)
        if fault == "page":
            return Response("<html>", status=200)
        if fault == "short":
            rows = rows[:-1]
        if fault == "narrow":
            rows = [row[:512] for row in rows]
        if fault == "nan":
            rows = [[float("nan")] * 768 for _ in rows]
        if fault == "zero":
            rows = [[0.0] * 768 for _ in rows]
        if fault == "slow":
            time.sleep(0.7)
        return _json(shape(rows))


def _json(value) -> Response:
    return Response(json.dumps(value), content_type="application/json")


@pytest.fixture
def service(httpserver: HTTPServer) -> Service:
    return Service(httpserver)


@pytest.fixture(params=["ollama", "openai"])
def served(request, service, database):
    """The service's encoder is the one that serves, and there is work for it."""
    spec = resolve_spec(f"{request.param}:tester@{service.url}")
    encoder = load_encoder(spec)
    reference = make_reference(encoder)
    encoder.close()
    with psycopg.connect(database.conninfo, autocommit=True) as connection, connection.transaction():
        connection.execute("UPDATE encoder SET state = 'added'")
        row = register_encoder(connection, spec, activate=True, canary=reference)
        connection.execute("DROP INDEX IF EXISTS passage_embedding_2_hnsw_idx, paper_embedding_2_hnsw_idx")
        ids = add_passages(connection, [f"passage {i} of the service" for i in range(N)], is_queued=False)
        connection.execute("SELECT job_enqueue_passages(%s, %s, 100)", [row.encoder_id, ids])
    return database


def _lengths(database) -> tuple[int, float, float]:
    with psycopg.connect(database.conninfo) as connection:
        row = connection.execute(
            "SELECT count(*), min(l2_norm(embedding)), max(l2_norm(embedding)) FROM passage_embedding"
        ).fetchone()
        assert row
        return row


@pytest.mark.parametrize("fault", ["429", "500", "page", "slow"])
@pytest.mark.parametrize("served", ["ollama"], indirect=True)
async def test_a_service_that_cannot_now_is_waited_for(served, service, fault):
    service.faults = [fault]

    def loader(row, device, cache):
        encoder = load_and_prove(row, device, cache)
        encoder._client.timeout = 0.5  # pyright: ignore[reportAttributeAccessIssue] - patience of the test, not of a user
        return encoder

    assert await drain(served, loader=loader) == 0
    n, shortest, longest = _lengths(served)
    assert n == N
    assert (shortest, longest) == pytest.approx((1, 1), abs=2e-3)


@pytest.mark.parametrize("fault", ["short", "narrow", "nan", "zero"])
@pytest.mark.parametrize("served", ["openai"], indirect=True)
async def test_bad_answers_are_asked_again_and_never_stored(served, service, fault):
    service.faults = [fault] * 3
    assert await drain(served, loader=load_and_prove) == 0
    n, shortest, longest = _lengths(served)
    assert n == N
    assert (shortest, longest) == pytest.approx((1, 1), abs=2e-3)


async def test_one_text_that_it_cannot_embed_fails_alone(served, service):
    service.poison = "passage 7 "
    assert await drain(served, loader=load_and_prove) == 3
    assert _lengths(served)[0] == N - 1
    with psycopg.connect(served.conninfo) as connection:
        rows = connection.execute("SELECT error_class, error, n_items FROM job").fetchall()
    assert len(rows) == 1
    assert (rows[0][0], rows[0][2]) == ("poison", 1)
    assert "finite" in rows[0][1]


@pytest.mark.parametrize("served", ["ollama"], indirect=True)
async def test_other_weights_under_the_same_name_are_refused(served, service):
    service.digest = "0" * 64
    assert await drain(served, loader=load_and_prove) == 5
    assert _lengths(served)[0] == 0


async def test_another_models_numbers_are_refused_by_canary(served, service, monkeypatch):
    monkeypatch.setattr(HashingEncoder, "encode", lambda self, texts, kind="document": -_encode(texts))
    assert await drain(served, loader=load_and_prove) == 5
    with psycopg.connect(served.conninfo) as connection:
        assert connection.execute("SELECT state, last_error LIKE '%%canary%%' FROM node").fetchone() == (
            "refused-by-canary",
            True,
        )
        assert connection.execute("SELECT DISTINCT state, n_attempts FROM job").fetchone() == ("waiting", 0)


_original = HashingEncoder.encode


def _encode(texts):
    return _original(HashingEncoder(), texts)
