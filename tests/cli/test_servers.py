"""`brain search --server A,B`: the next one when one is gone; what no server would answer is told at once."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from brain.servers import ServerRefused, Servers, ServersGone, paper_path
from corpus.errors import UsageError


@contextlib.contextmanager
def listening(status: int, body: object) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that gives one answer; what was asked of it, with the authorization."""
    asked: list[tuple[str, str | None]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


def test_the_next_server_answers_and_is_asked_first_from_then_on(nobody, silent):
    with (
        listening(503, {"detail": "The database does not answer."}) as (ill, asked_ill),
        listening(200, {"hits": []}) as (
            well,
            asked,
        ),
    ):
        servers = Servers(f"{nobody}, {silent},{ill},{well}", token="secret-word", patience_s=1)
        for _ in range(2):
            assert servers.get("/brain_search", [("q", "a b&c")]) == {"hits": []}
        assert asked == [("/brain_search?q=a+b%26c", "Bearer secret-word")] * 2
        assert len(asked_ill) == 1


def test_a_refused_question_is_not_asked_twice():
    problem = {"detail": "The question is empty.", "mend": "Ask something."}
    with listening(400, problem) as (one, _), listening(200, {}) as (two, asked):
        with pytest.raises(ServerRefused, match="The question is empty") as caught:
            Servers([one, two]).get("/brain_search")
        assert (caught.value.exit_code, caught.value.mend, asked) == (2, "Ask something.", [])


def test_where_nobody_answers_each_is_named(nobody):
    with listening(503, {"detail": "Too many questions."}) as (ill, _), listening(200, [1]) as (odd, _):
        with pytest.raises(ServersGone) as caught:
            Servers([nobody, ill, odd]).get("/topics")
        assert caught.value.exit_code == 4
        for part in (nobody, "refused", "503, Too many questions", odd):
            assert part in str(caught.value)


@pytest.mark.parametrize("text", ["", " , ", "ftp://one", "http://", "file:///etc/passwd"])
def test_what_is_no_address_is_said(text):
    with pytest.raises(UsageError, match="--server"):
        Servers(text)


def test_slashes_belong_to_the_id():
    assert paper_path("doi:10.1/a b", "/text") == "/papers/doi%3A10.1%2Fa%20b/text"


def test_the_command_asks_servers(capsys, nobody):
    from brain.cli import main

    with listening(200, {"hits": [], "degraded": [], "k": 3}) as (well, asked):
        with pytest.raises(SystemExit) as ended:
            main(["search", "slow snails", "-k", "3", "--server", f"{nobody},{well}", "--json"])
        assert not ended.value.code
        assert asked == [("/brain_search?q=slow+snails&k=3", None)]
        assert json.loads(capsys.readouterr().out)["k"] == 3


def test_a_server_that_dies_in_the_middle_of_its_answer_is_passed_over():
    class Dying(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"hits": [')

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dying) as dying, listening(200, {"hits": []}) as (well, _):
        threading.Thread(target=dying.serve_forever, args=(0.01,), daemon=True).start()
        assert Servers([f"127.0.0.1:{dying.server_address[1]}", well]).get("/brain_search") == {"hits": []}
        dying.shutdown()


def test_a_paper_that_there_is_not_ends_as_it_does_without_servers():
    problem = {"type": "https://research-brain.invalid/problems/unknown-paper", "detail": "There is no paper 'x'."}
    with listening(404, problem) as (one, _), pytest.raises(ServerRefused) as caught:
        Servers([one]).get("/papers/x")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("address", ["http://one two:8010", "http://one:80 10", "one\n:8010"])
def test_an_address_with_white_space_is_none(address):
    with pytest.raises(UsageError, match="no address"):
        Servers(address)
