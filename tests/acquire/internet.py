"""A replayed internet on loopback: recorded answers below {host}/{path}, real papers as files, and faults by seed."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.fulltext.papers import PAPERS, Paper
from tests.sources.support import payload

ARXIV = {paper.ids["arxiv"]: paper for paper in PAPERS.values() if "arxiv" in paper.ids}
ACL = {paper.ids["acl"]: paper for paper in PAPERS.values() if "acl" in paper.ids}
SEARCHES = {
    "api.openalex.org/works": "openalex/works_search_2026.json",
    "api.semanticscholar.org/graph/v1/paper/search": "semantic-scholar/search_2026.json",
    "www.ebi.ac.uk/europepmc/webservices/rest/search": "europe-pmc/search_core_2026.json",
    "api.crossref.org/works": "crossref/works_has_abstract_jats.json",
    "zenodo.org/api/records": "zenodo/search_publications_2026.json",
    "doaj.org/api/v4/search/articles": "doaj/v4_search_articles.json",
}
FAULTS = ("429", "429 wait", "500", "reset", "cut", "hang")
FILE_FAULTS = (*FAULTS, "page", "wrong", "loop")
_PAGE = b"<!DOCTYPE html><html><head><title>Just a moment</title></head><body>Are you a robot?</body></html>"
_ABSTRACT = "We study {} and report what was found, with figures for each part of it and a comparison to earlier work."


@dataclass
class Internet:
    """What is served and what was asked. `n_faults` of the first answers to each request are bad ones, by `seed`.

    `broken` hosts give one answer to everything: status, body, headers.
    """

    seed: int | None = None
    n_faults: int = 2
    share: float = 0.5
    asked: list[tuple[str, str]] = field(default_factory=list)
    delivered: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    on_request: Callable[[str, int], None] = lambda _url, _n: None
    searches: dict[str, list[bytes]] = field(default_factory=dict)
    broken: dict[str, tuple[int, bytes, dict[str, str]]] = field(default_factory=dict)
    base_url: str = ""
    _plans: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fault_of(self, url: str, *, is_file: bool) -> str | None:
        """The fault that the next answer to an address has."""
        if self.seed is None:
            return None
        with self._lock:
            if url not in self._plans:
                chance = random.Random(f"{self.seed} {url}")
                kinds = FILE_FAULTS if is_file else FAULTS
                drawn = [chance.choice(kinds) for _ in range(self.n_faults) if is_file or chance.random() < self.share]
                self._plans[url] = [each for kind in drawn for each in [kind] * (9 if kind == "loop" else 1)]
            plan = self._plans[url]
            if not plan:
                return None
            self.faults[plan[0]] += 1
            return plan.pop(0)

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body for an original address."""
        parts = urlsplit("https://" + url)
        place, query = unquote(parts.netloc + parts.path), parse_qs(parts.query)
        if place.startswith("arxiv.org/pdf/"):
            return _file(ARXIV.get(place.removeprefix("arxiv.org/pdf/").partition("v")[0]))
        if place.startswith("aclanthology.org/") and place.endswith(".pdf"):
            return _file(ACL.get(place.removeprefix("aclanthology.org/").removesuffix(".pdf")))
        if place == "oaipmh.arxiv.org/oai":
            return 200, "text/xml", payload("arxiv/oai_listrecords_hep-th_arXiv.xml")
        if place == "export.arxiv.org/api/query":
            return 200, "application/atom+xml", _arxiv(query)
        if place.startswith("api.semanticscholar.org/graph/v1/paper/") and not place.endswith("/search"):
            return _semantic_scholar(place.rpartition("/paper/")[2], body if method == "POST" else b"")
        search = next(
            (name for name in (*self.searches, *SEARCHES) if place == name or place.startswith(f"{name}/(")), None
        )
        if place.startswith("doaj.org/api/v4/search/articles/"):
            search = "doaj.org/api/v4/search/articles"
        if search is not None and search in self.searches:
            pages = self.searches[search]
            return 200, "application/json", pages.pop(0) if len(pages) > 1 else pages[0]
        if search is not None and _is_search(query, place):
            return 200, "application/json", payload(SEARCHES[search])
        return 404, "application/json", b'{"error": "not found"}'


def _is_search(query: dict[str, list[str]], place: str) -> bool:
    return any(name in query for name in ("search", "query", "q")) or "doaj" in place


def _file(paper: Paper | None) -> tuple[int, str, bytes]:
    if paper is None:
        return 404, "text/html", b"<html><body>Not found</body></html>"
    return 200, "application/pdf", paper.path.read_bytes()


def _arxiv(query: dict[str, list[str]]) -> bytes:
    if "id_list" not in query:
        return payload("arxiv/query_search_testing_s0_m10.atom.xml")
    found = [(own, ARXIV[own]) for own in query["id_list"][0].split(",") if own in ARXIV]
    entries = "".join(
        f"<entry><id>http://arxiv.org/abs/{own}v1</id><title>{escape(paper.title)}</title>"
        f"<summary>{escape(_ABSTRACT.format(paper.title))}</summary><published>20{own[:2]}-0{1 + int(own[2:4]) % 9}-11T00:00:00Z</published>"
        + "".join(f"<author><name>{escape(name)}</name></author>" for name in paper.authors)
        + f'<link href="http://arxiv.org/pdf/{own}v1" title="pdf" type="application/pdf"/></entry>'
        for own, paper in found
    )
    head = '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
    n = f"<opensearch:totalResults>{len(found)}</opensearch:totalResults>"
    return f"<?xml version='1.0' encoding='UTF-8'?>{head}{n}{entries}</feed>".encode()


def _semantic_scholar(name: str, body: bytes) -> tuple[int, str, bytes]:
    def of(text: str) -> dict[str, Any] | None:
        kind, _, value = text.partition(":")
        paper = {"ARXIV": ARXIV, "ACL": ACL}.get(kind.upper(), {}).get(value)
        if paper is None:
            return None
        ids = {"ArXiv": paper.ids.get("arxiv"), "ACL": paper.ids.get("acl"), "DOI": paper.ids.get("doi")}
        return {
            "paperId": f"{sum(map(ord, paper.title)):040x}", "externalIds": {k: v for k, v in ids.items() if v},
            "title": paper.title, "abstract": _ABSTRACT.format(paper.title), "citationCount": len(paper.title),
            "authors": [{"name": name} for name in paper.authors], "tldr": {"text": f"About {paper.title}."},
        }  # fmt: skip

    if body:
        return 200, "application/json", json.dumps([of(text) for text in json.loads(body)["ids"]]).encode()
    found = of(name)
    if found is None:
        return 404, "application/json", payload("semantic-scholar/paper_by_doi_404.json")
    return 200, "application/json", json.dumps(found).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        internet = self.server.internet
        url = self.path.lstrip("/")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with internet._lock:
            internet.asked.append((self.command, url))
            n = len(internet.asked)
        internet.on_request(url, n)
        status, kind, content = internet.answer(self.command, url, body)
        is_file = kind == "application/pdf"
        fault = internet.fault_of(f"{url} {body.decode()}", is_file=is_file)
        headers: dict[str, str] = {}
        if (broken := internet.broken.get(url.partition("/")[0])) is not None:
            status, content, headers = broken[0], broken[1], dict(broken[2])
        match fault:
            case "429" | "429 wait":
                status, kind, content = 429, "text/plain", b"Rate exceeded."
                if fault == "429 wait":
                    headers["Retry-After"] = "7"
            case "500":
                status, kind, content = 500, "text/html", b"<html>Internal Server Error</html>"
            case "page":
                kind, content = "text/html", _PAGE
            case "wrong":
                content = PAPERS["quantum"].path.read_bytes()
            case "loop":
                status, content, headers["Location"] = 302, b"", f"https://{url}"
            case "hang":
                time.sleep(1.5)
                self.close_connection = True
                return
            case _:
                pass
        self._send(status, kind, content, headers, fault)
        if status == 200 and fault is None:
            internet.delivered[url] += 1

    do_POST = do_GET  # noqa: N815 - the base class's name

    def _send(self, status: int, kind: str, content: bytes, headers: dict[str, str], fault: str | None) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if fault in {"reset", "cut"}:
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                self.close_connection = True
                if fault == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
                    self.connection.close()
                return
            self.wfile.write(content)
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (OSError, ValueError):
            self.close_connection = True

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    internet: Internet

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def serving(internet: Internet) -> Iterator[Internet]:
    """Serve it on a port of its own."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.internet = internet
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    internet.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield internet
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
