"""Encoders over HTTP against a small service of the tests' own: right answers, and each wrong one in its class."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from corpus.errors import (
    BadEmbedding,
    BrainError,
    EncoderError,
    EncoderOutOfMemory,
    EncoderRefused,
    EncoderThrottled,
    EncoderUnavailable,
    UsageError,
)
from encoders.base import DIM, check_embeddings
from encoders.hashing import HashingEncoder
from encoders.http_encoder import HttpEncoder, open_service
from encoders.load import load_encoder, resolve_spec
from encoders.services import Address, parse_address, retry_after_s, rows_of

DIGEST = hashlib.sha256(b"nomic").hexdigest()
LIMIT = 400
HASHING = HashingEncoder()


class Service:
    """Speaks both shapes; its embeddings are twice the hashing encoder's, and it takes at most LIMIT characters."""

    def __init__(self, server: HTTPServer) -> None:
        self.seen: list[list[str]] = []
        self.url = server.url_for("").rstrip("/")
        self.digest = DIGEST
        server.expect_request("/api/tags").respond_with_handler(self.tags)
        server.expect_request("/api/embed", method="POST").respond_with_handler(self.ollama)
        server.expect_request("/v1/embeddings", method="POST").respond_with_handler(self.openai)

    def tags(self, request: Request) -> Response:
        return _json(
            {
                "models": [
                    {"name": "other:latest", "digest": "0" * 64},
                    {"name": "nomic-embed-text:latest", "digest": self.digest},
                ]
            }
        )

    def _rows(self, request: Request) -> list[list[float]] | None:
        body = request.get_json()
        self.seen.append(body["input"])
        if any(len(text) > LIMIT for text in body["input"]):
            return None
        return (HASHING.encode(body["input"]) * 2).tolist()

    def ollama(self, request: Request) -> Response:
        assert request.get_json()["truncate"] is False
        rows = self._rows(request)
        if rows is None:
            return _json({"error": "the input length exceeds the context length"}, 400)
        return _json({"embeddings": rows})

    def openai(self, request: Request) -> Response:
        rows = self._rows(request)
        if rows is None:
            return _json({"error": {"message": "This model's maximum context length is 512 tokens"}}, 400)
        return _json({"data": [{"index": i, "embedding": row} for i, row in reversed(list(enumerate(rows)))]})


def _json(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value), status=status, mimetype="application/json")


@pytest.fixture
def service(httpserver: HTTPServer) -> Service:
    return Service(httpserver)


def _broken(server: HTTPServer, answer: Callable[[Request], Response]) -> HttpEncoder:
    """An encoder of OpenAI's shape whose service gives one kind of answer."""
    server.expect_request("/v1/embeddings").respond_with_handler(answer)
    return open_service(resolve_spec(f"openai:some-model@{server.url_for('')}"), timeout_s=0.5)


@pytest.mark.parametrize("flavour", ["ollama", "openai"])
def test_texts_come_back_in_order_with_their_prompts(service: Service, flavour: str):
    spec = resolve_spec(f"{flavour}:nomic-embed-text@{service.url}")
    encoder = load_encoder(spec)
    texts = [f"text number {number}" for number in range(70)]
    found = encoder.encode(texts)
    assert np.allclose(found, HASHING.encode([f"search_document: {text}" for text in texts]), atol=1e-6)
    assert np.allclose(encoder.encode(["x"], kind="query"), HASHING.encode(["search_query: x"]), atol=1e-6)
    assert max(map(len, service.seen)) <= 32
    assert encoder.backend == flavour
    assert encoder.encode([]).shape == (0, DIM)
    encoder.close()


def test_ollama_tells_its_weights_and_a_change_is_refused(service: Service):
    spec = resolve_spec(f"ollama:nomic-embed-text@{service.url}")
    assert spec.weights_sha256 == DIGEST
    assert spec.name == "nomic-embed-text"
    service.digest = "f" * 64
    with pytest.raises(EncoderRefused, match="ffffffffffff"):
        load_encoder(spec)
    with pytest.raises(EncoderUnavailable, match="ollama pull absent"):
        resolve_spec(f"ollama:absent@{service.url}")


@pytest.mark.parametrize("flavour", ["ollama", "openai"])
def test_a_text_too_long_for_the_service_goes_in_pieces(service: Service, flavour: str):
    encoder = load_encoder(f"{flavour}:nomic-embed-text@{service.url}")
    words = " ".join(f"word{number}" for number in range(160))
    one, short, two = encoder.encode([f"{words} ends here", "short", f"{words} stops there"])
    check_embeddings(np.stack([one, short, two]), 3)
    assert not np.allclose(one, two)
    assert np.allclose(short, HASHING.encode(["search_document: short"])[0], atol=1e-6)
    assert encoder.n_windowed == 2


UNIT = HASHING.encode(["x"])[0].tolist()
ONE = {"index": 0, "embedding": UNIT}


@pytest.mark.parametrize(
    ("body", "status", "headers", "kind"),
    [
        ({"error": "slow down"}, 429, {"Retry-After": "7"}, EncoderThrottled),
        ({"error": "busy"}, 503, {"Retry-After": "7"}, EncoderThrottled),
        ({"error": "oops"}, 500, {}, EncoderUnavailable),
        ({"error": "starting"}, 503, {}, EncoderUnavailable),
        ({"error": "no such model"}, 404, {}, EncoderUnavailable),
        ({"error": "CUDA out of memory"}, 500, {}, EncoderOutOfMemory),
        ({"error": "key?"}, 401, {}, EncoderRefused),
        ({"error": "what?"}, 400, {}, EncoderError),
        ({"data": []}, 200, {}, BadEmbedding),
        ({"data": [ONE, ONE]}, 200, {}, BadEmbedding),
        ({"data": None}, 200, {}, BadEmbedding),
        ([1, 2], 200, {}, BadEmbedding),
        ({"data": [{"index": 5, "embedding": UNIT}]}, 200, {}, BadEmbedding),
        ({"data": [{"index": 0, "embedding": UNIT[:512]}]}, 200, {}, BadEmbedding),
        ({"data": [{"index": 0, "embedding": [*UNIT[1:], float("nan")]}]}, 200, {}, BadEmbedding),
        ({"data": [{"index": 0, "embedding": [*UNIT[1:], float("inf")]}]}, 200, {}, BadEmbedding),
        ({"data": [{"index": 0, "embedding": [None] * DIM}]}, 200, {}, BadEmbedding),
        ({"data": [{"index": 0, "embedding": [0.0] * DIM}]}, 200, {}, BadEmbedding),
        ({"data": [{"index": 0}]}, 200, {}, BadEmbedding),
    ],
)
def test_each_wrong_answer_ends_in_its_class(
    httpserver: HTTPServer, body: object, status: int, headers: dict[str, str], kind: type[BrainError]
):
    def answer(request: Request) -> Response:
        response = _json(body, status)
        response.headers.update(headers)
        return response

    with pytest.raises(EncoderError) as caught:
        _broken(httpserver, answer).encode(["one text"])
    assert type(caught.value) is kind
    assert "some-model" in str(caught.value) or status == 200
    if isinstance(caught.value, EncoderThrottled):
        assert caught.value.retry_after_s == 7


def test_an_answer_that_is_no_json_is_not_the_texts_fault(httpserver: HTTPServer):
    with pytest.raises(EncoderUnavailable, match="not JSON"):
        _broken(httpserver, lambda _: Response("<html>Welcome")).encode(["x"])


def test_a_slow_service_times_out_and_a_closed_port_is_refused(httpserver: HTTPServer):
    from threading import Event

    done = Event()

    def answer(request: Request) -> Response:
        done.wait(5)
        return _json({})

    with pytest.raises(EncoderUnavailable, match="in time"):
        _broken(httpserver, answer).encode(["x"])
    done.set()
    for name in ("openai:m@http://127.0.0.1:9", "ollama:m@http://127.0.0.1:9"):
        with pytest.raises(EncoderUnavailable, match="cannot be reached"):
            load_encoder(name).encode(["x"])


def test_a_batch_that_does_not_fit_is_made_smaller(httpserver: HTTPServer):
    def answer(request: Request) -> Response:
        texts = request.get_json()["input"]
        if len(texts) > 3:
            return _json({"error": "CUDA out of memory"}, 500)
        return _json({"data": [{"index": i, "embedding": v.tolist()} for i, v in enumerate(HASHING.encode(texts))]})

    texts = [f"text {number}" for number in range(10)]
    assert np.allclose(_broken(httpserver, answer).encode(texts), HASHING.encode(texts), atol=1e-6)


def test_the_key_is_sent_and_never_stored(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BRAIN_ENCODER_KEY", "not-a-real-key")
    keys: list[str] = []

    def answer(request: Request) -> Response:
        keys.append(request.headers["Authorization"])
        return _json({"data": [ONE]})

    encoder = _broken(httpserver, answer)
    encoder.encode(["x"])
    assert keys == ["Bearer not-a-real-key"]
    assert "not-a-real-key" not in json.dumps(encoder.spec.to_dict())


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("ollama:nomic-embed-text", Address("ollama", "nomic-embed-text", "http://127.0.0.1:11434")),
        ("ollama:embeddinggemma:300m@http://box:11434/", Address("ollama", "embeddinggemma:300m", "http://box:11434")),
        ("openai:m@https://host/base/v1", Address("openai", "m", "https://host/base")),
        ("openai:a@b@http://[::1]:8080/v1/embeddings", Address("openai", "a@b", "http://[::1]:8080")),
    ],
)
def test_addresses_are_read(name: str, address: Address):
    assert parse_address(name) == address
    assert parse_address(address.source) == address


@pytest.mark.parametrize("name", ["openai:m", "openai:@http://x", "ollama:m@ftp://x", "openai:m@http://u:p@host"])
def test_bad_addresses_are_refused(name: str):
    with pytest.raises(UsageError):
        parse_address(name)


def test_retry_after_is_seconds_or_a_date():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after_s("12") == 12
    assert retry_after_s("Thu, 01 Jan 2026 00:01:00 GMT", now) == 60
    assert retry_after_s("Thu, 01 Jan 2015 00:01:00 GMT", now) == 0
    assert [retry_after_s(value) for value in (None, "", "soon", "nan", "inf")] == [None] * 5


def test_answers_without_an_index_keep_their_order():
    assert rows_of({"data": [{"embedding": [1]}, {"embedding": [2]}]}, 2, "openai") == [[1], [2]]
