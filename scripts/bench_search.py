#!/usr/bin/env python3
"""How fast answers come, how good they are, and how many of the true neighbours: this project and peers, in one run.

    scripts/bench search [--passages 10000,60000] [--per-paper 1] [--peers lancedb,qdrant] [--tune 60] [--json]
                         [--collections DIR] [--vectors DIR]

The questions are the judged ones of three collections; their papers, with their real embeddings, stand among the others
(bench_corpus.py). Peers get the same texts and embeddings. In process against in process, encoding excluded; and HTTP
against HTTP: this project's own server as it is started by a user, the first time with encoding, then from its cache.
Peers must be installed: pip install lancedb qdrant-client pyarrow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from threading import local
from typing import Any
from urllib.parse import urlencode, urlsplit

import ir_measures
import numpy as np
import psutil
from bench_corpus import WIDTHS, Asked, Corpus, fill, read_asked, read_corpus
from bench_peers import PEERS
from bench_questions import Remembered
from ir_measures import nDCG

from corpus.database import Database
from corpus.schema import migrate
from corpus.settings import Settings
from search_server.filters import Filters
from search_server.params import SearchParams
from search_server.service import SearchService
from search_server.tune import tune
from search_server.vectors import Halfvec, scan

ROOT = Path(__file__).resolve().parent.parent
ENCODER = "all-mpnet-base-v2"
CLIENTS = (1, 4, 16)
N_RECALL = 100
WARM_UP_S = 300
Answers = dict[str, list[str]]


def percentiles(times: list[float]) -> dict[str, float]:
    """Milliseconds of seconds."""
    return {f"p{p}": float(np.percentile(times, p) * 1000) for p in (50, 95, 99)}


def ndcg(asked: Asked, answers: Answers) -> float:
    """Mean nDCG@10 over the judged questions."""
    wanted = [ir_measures.Qrel(q, p, g) for q, judged in asked.judged.items() for p, g in judged.items()]
    run = [ir_measures.ScoredDoc(q, p, -float(n)) for q, papers in answers.items() for n, p in enumerate(papers)]
    return float(ir_measures.calc_aggregate([nDCG @ 10], wanted, run)[nDCG @ 10])


def ask_all(ask: Callable[[str], list[str]], asked: Asked) -> dict[str, float]:
    """Quality, latency one at a time, then questions a second; `ask` may be called by several threads."""
    questions = list(asked.judged)
    for question in questions[:40]:
        ask(question)
    times: list[float] = []
    answers: Answers = {}
    for question in questions:
        started = time.perf_counter()
        answers[question] = ask(question)
        times.append(time.perf_counter() - started)
    found = {"ndcg": ndcg(asked, answers), **percentiles(times)}
    for n in CLIENTS:
        with ThreadPoolExecutor(n) as clients:
            started = time.perf_counter()
            list(clients.map(ask, questions * 2))
            found[f"qps_{n}"] = 2 * len(questions) / (time.perf_counter() - started)
    return found


async def ask_service(service: SearchService, asked: Asked) -> tuple[dict[str, float], dict[str, float]]:
    """The same in process, with clients that are tasks; and the median of each stage, one question at a time."""
    questions = list(asked.judged)
    took: list[dict[str, float]] = []

    async def ask(question: str) -> list[str]:
        answer = await service.search(SearchParams(q=question, k=10))
        assert not answer["degraded"], answer["degraded"]
        took.append(answer["took_ms"])
        return [hit["paper_id"] for hit in answer["hits"]]

    for question in questions[:40]:
        await ask(question)
    took.clear()
    times: list[float] = []
    answers: Answers = {}
    for question in questions:
        started = time.perf_counter()
        answers[question] = await ask(question)
        times.append(time.perf_counter() - started)
    stages = {stage: float(np.median([t[stage] for t in took])) for stage in took[0]}
    found = {"ndcg": ndcg(asked, answers), **percentiles(times)}
    for n in CLIENTS:
        left = iter(questions * 2)

        async def client(left: Iterator[str] = left) -> None:
            for question in left:
                await ask(question)

        started = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(n)))
        found[f"qps_{n}"] = 2 * len(questions) / (time.perf_counter() - started)
    return found, stages


async def recall(service: SearchService, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Recall@20 of the passage list against exact search under filters of known width, as the server scans for them.

    Real passages are the questions. An exact neighbour at the same distance counts as found.
    """
    rng = np.random.default_rng(9)
    rows = rng.integers(0, len(corpus.papers), N_RECALL)
    lengths = np.linalg.norm(corpus.vectors, axis=1)  # half precision has moved them from 1
    scores = corpus.vectors[rows] @ corpus.vectors.T / lengths / lengths[rows, None]
    numbers = corpus.numbers()
    topics = service.state.topics
    filters = {"none": (Filters(), np.ones(len(numbers), bool))}
    for width in WIDTHS:
        filters[f"1 in {width}"] = (Filters(topics=(topics[f"one in {width}"],)), numbers % width == 0)
    filters["without 1 in 3"] = (Filters(without_topics=(topics["one in 3"],)), numbers % 3 != 0)
    row = service.state.encoder_row
    assert row is not None
    found: dict[str, dict[str, float]] = {}
    for name, (filter_, passes) in filters.items():
        n = min(20, int(passes.sum()))
        shares: list[float] = []
        times: list[float] = []
        n_short = 0
        for question, of_all in zip(rows, scores, strict=True):
            least = float(np.partition(of_all[passes], -n)[-n]) if n else 0.0
            started = time.perf_counter()
            n_left = await service.lists.n_left("passage", filter_)
            got = await scan(
                service.pool, "passage", Halfvec(corpus.vectors[question]), encoder_id=row.encoder_id, filters=filter_,
                n=20, n_left=n_left, settings=service.state.scan,
            )  # fmt: skip
            times.append(time.perf_counter() - started)
            n_short += len(got) < n
            shares.append(sum(near.score >= least - 1e-5 for near in got) / n if n else 1.0)
        found[name] = {
            "rows": int(passes.sum()),
            "recall": float(np.mean(shares)),
            "short": n_short,
            **percentiles(times),
        }
    return found


class Http:
    """One server over HTTP, one connection kept for each thread that asks."""

    def __init__(self, address: str, path: str, read: Callable[[dict[str, Any]], list[str]]) -> None:
        self._to = urlsplit(address)
        self._path, self._read, self._mine = path, read, local()

    def ask(self, question: str) -> list[str]:
        """The answer's papers. Raises on anything but 200."""
        if not hasattr(self._mine, "line"):
            self._mine.line = HTTPConnection(self._to.hostname or "", self._to.port, timeout=60)
        self._mine.line.request("GET", f"{self._path}?{urlencode({'q': question, 'k': 10})}")
        answer = self._mine.line.getresponse()
        body = json.load(answer)
        assert answer.status == 200, body
        return self._read(body)


@contextmanager
def running(words: list[str], env: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """A server's address and process; it prints the address when it answers."""
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line, f"{words[0]} ended at once"
        yield line.split()[-1], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def over_http(database: Database, home: Path, asked: Asked) -> dict[str, float]:
    """This project's server from its start: the first answer, with encoding, from its cache, memory."""
    env = {**os.environ, "BRAIN_HOME": str(home), "BRAIN_DB": database.conninfo}
    command = Path(sys.executable).with_name("search-server")
    started = time.perf_counter()
    found: dict[str, float] = {}
    with running([str(command), "--port", "0"], env) as (address, process):
        lacking: list[int] = [0]
        is_warm = False

        def read(body: dict[str, Any]) -> list[str]:
            lacking[0] = len(body["degraded"])
            if is_warm and lacking[0]:
                raise RuntimeError(f"An answer lacks a list: {body['degraded']}")
            return [hit["paper_id"] for hit in body["hits"]]

        server = Http(address, "/brain_search", read)
        for what, most in (("first_answer_s", 2), ("first_whole_answer_s", 0)):
            while time.perf_counter() - started < WARM_UP_S:
                try:
                    if server.ask("warm up of the whole") and lacking[0] <= most:
                        break
                except AssertionError:
                    pass
                time.sleep(0.05)
            else:
                raise RuntimeError(f"The server gave no {what.removesuffix('_s')} within {WARM_UP_S} s.")
            found[what] = time.perf_counter() - started
        is_warm = True
        times: list[float] = []
        for question in asked.judged:
            began = time.perf_counter()
            server.ask(question)
            times.append(time.perf_counter() - began)
        found |= {f"encoding_{name}": value for name, value in percentiles(times).items()}
        found |= ask_all(server.ask, asked)
        found["rss_mb"] = process.memory_info().rss / 2**20
    found["encoder_mb"] = encoder_memory()
    return found


def encoder_memory() -> float:
    """What the encoder alone adds to a process, in MB."""
    script = (
        "import os, psutil; from encoders.load import load_encoder; p = psutil.Process(); a = p.memory_info().rss;"
        f"e = load_encoder({ENCODER!r}); [e.encode(['word ' * n], kind='query') for n in (4, 8, 16, 32, 64)];"
        "print((p.memory_info().rss - a) / 2**20)"
    )
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout.split()[-1])


def ask_peer(name: str, corpus: Corpus, asked: Asked, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """A peer in process and over HTTP."""
    started = time.perf_counter()
    peer = PEERS[name].build(corpus.texts, corpus.vectors, folder)
    build_s = time.perf_counter() - started

    def papers(rows: list[int]) -> list[str]:
        return list(dict.fromkeys(corpus.papers[int(row)] for row in rows))

    inside = {"build_s": build_s, **ask_all(lambda q: papers(peer.ask(q, asked.embeddings[q])), asked)}
    peer.close()
    kept = folder / "questions.npz"
    np.savez(kept, text=np.array(list(asked.embeddings)), vector=np.stack(list(asked.embeddings.values())))
    words = [sys.executable, str(ROOT / "scripts" / "bench_peers.py"), name, str(folder), str(kept)]
    with running(words, dict(os.environ)) as (address, process):
        outside = ask_all(Http(address, "/search", lambda body: papers(body["hits"])).ask, asked)
        outside["rss_mb"] = process.memory_info().rss / 2**20
    return inside, outside


def say(what: str) -> None:
    """Progress, beside the tables."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def own_folder() -> Path:
    """A folder that the embedded server's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="brain-bench-", dir="/var/tmp"))
    folder.chmod(0o755)
    return folder


async def bench(n: int, given: argparse.Namespace) -> dict[str, Any]:
    """One size: build, measure, and the peers on the same data."""
    encoder = Remembered.of(ENCODER, Settings().cache_dir)
    asked = read_asked(given.collections, encoder)
    corpus = read_corpus(given.collections, given.vectors, n, given.per_paper)
    home = own_folder()
    database = Database.at(f"embedded:{home / 'db'}", home, application_name="bench")
    out: dict[str, Any] = {"passages": n, "papers": len(set(corpus.papers)), "questions": len(asked.judged)}
    rows: dict[str, dict[str, float]] = {}
    try:
        migrate(database)
        say(f"{n:,} passages: writing them and building the indexes")
        out["build"] = fill(database, corpus, encoder)
        say(f"built: {out['build']}")
        started = time.perf_counter()
        tuned = await tune(database, n_questions=given.tune, progress=say)
        out["tuned"] = {name: tuned[name] for name in ("ef_search", "exact_below")}
        out["build"]["tune_s"] = time.perf_counter() - started
        async with SearchService.open(database, Settings(home=home), load=lambda *_, **__: encoder) as service:
            started = time.perf_counter()
            await service.wait_ready(timedelta(hours=1))
            await service.state.refresh()
            out["build"]["words_s"] = time.perf_counter() - started
            say("asking in process")
            rows["ours"], out["stages"] = await ask_service(service, asked)
            out["recall"] = await recall(service, corpus)
        say(f"in process: {rows['ours']}")
        rows["ours, HTTP"] = over_http(database, home, asked)
        say(f"over HTTP: {rows['ours, HTTP']}")
        for name in given.peers:
            say(f"building and asking {name}")
            folder = home / name
            folder.mkdir()
            rows[name], rows[f"{name}, HTTP"] = ask_peer(name, corpus, asked, folder)
            say(f"{name}: {rows[name]}")
    finally:
        if database.embedded is not None:
            database.embedded.stop(immediate=True)
        shutil.rmtree(home, ignore_errors=True)
    return {**out, "systems": rows}


def show(result: dict[str, Any]) -> None:
    """One size as tables."""
    print(
        f"{result['passages']:,} passages of {result['papers']:,} papers, {result['questions']} questions, tuned {result['tuned']}"
    )
    for what in ("build", "stages"):
        print(f"  {what}: " + "  ".join(f"{name} {value:.1f}" for name, value in result[what].items()))
    print(f"  {'filter':16s} {'rows':>9s} recall@20  too few     p50     p99 ms")
    for name, found in result["recall"].items():
        print(
            f"  {name:16s} {found['rows']:9,d} {found['recall']:9.4f} {found['short']:8d} {found['p50']:7.1f} {found['p99']:7.1f}"
        )
    print(f"  {'':16s} nDCG@10     p50     p95     p99 ms   q/s: 1     4      16")
    for name, found in result["systems"].items():
        rates = " ".join(f"{found[f'qps_{n}']:6.1f}" for n in CLIENTS)
        times = " ".join(f"{found[p]:7.1f}" for p in ("p50", "p95", "p99"))
        more = "  ".join(
            f"{k} {v:.1f}"
            for k, v in found.items()
            if k not in {"ndcg", "p50", "p95", "p99"} and not k.startswith("qps")
        )
        print(f"  {name:16s} {found['ndcg']:7.4f} {times}   {rates}   {more}")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended and removed
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", default="10000,60000")
    parser.add_argument("--collections", type=Path, default=ROOT.parent / "shared" / "collections")
    parser.add_argument("--vectors", type=Path, default=ROOT.parent / "shared" / "vectors")
    parser.add_argument("--peers", default="")
    parser.add_argument("--per-paper", type=int, default=1, help="passages of each paper that nobody judged")
    parser.add_argument("--tune", type=int, default=60, help="questions of `brain tune`")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.peers = [name for name in given.peers.split(",") if name]
    results = []
    for n in given.passages.split(","):
        results.append(asyncio.run(bench(int(n), given)))
        if not given.json:
            show(results[-1])
    if given.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
