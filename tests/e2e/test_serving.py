"""The whole path with real papers: seen at once, found by words, quoted exactly, through stops and kills."""

import os
import random
import signal
import time
import urllib.parse

import psutil
import pytest

from tests.support import shared

QUESTIONS = {
    "how does multi-head attention work": "attention is all you need",
    "dense passage retrieval with two encoders": "dense passage retrieval for open-domain question answering",
    "does batch normalization reduce internal covariate shift": "batch normalization: accelerating deep network training by reducing internal covariate shift",
}


def program(bench, *words):
    """Start quickstart the way scripts/quickstart does, without the installation."""
    return bench.serve("python", "-m", "brain.quickstart", *words)


def states(bench):
    return {p["paper_id"]: p for p in bench.get("/papers", limit=200)[1]["papers"]}


@pytest.mark.shared
def test_real_papers_from_folder_to_exact_quotes_and_through_stops(bench):
    papers = shared("papers")
    process = program(bench, "--pdfs", papers)
    assert len(states(bench)) == 44, "every file is listed at once"
    bench.until(lambda: all(p["verdict"] for p in states(bench).values()), 60)
    assert all(p["verdict"] == "ok" or p["reason"] for p in states(bench).values())
    bench.until(
        lambda: all(p["state"] in {"ready", "refused", "duplicate", "empty"} for p in states(bench).values()), 60
    )
    for question, title in QUESTIONS.items():
        hits = bench.ask(question, weights="passage_bm25:1")
        assert hits[0]["title"].casefold() == title
    _check_quotes(bench)

    # The database stops under a running server and worker: said quickly, nobody starts it, all goes on by itself.
    bench.run("brain", "db", "stop")
    started = time.monotonic()
    status, body = bench.get("/brain_search", q="attention")
    assert status == 503
    assert body["type"].endswith("database-unavailable")
    assert time.monotonic() - started < 2
    assert bench.get("/readyz")[0] == 503
    assert bench.get("/livez")[0] == 200
    assert bench.run("brain", "db", "status", code=4)
    bench.run("brain", "db", "start")
    bench.until(lambda: bench.get("/readyz")[0] == 200, 30)
    before = {h["paper_id"] for h in bench.ask("attention", k=20)}

    # A SIGKILL of every process, then the same command again: the same corpus.
    everything = [process, *psutil.Process(process.pid).children(recursive=True)]
    everything += [p for p in psutil.process_iter(["cmdline"]) if str(bench.home) in " ".join(p.info["cmdline"] or [])]
    for each in everything:
        with_pid = each.pid
        try:
            os.kill(with_pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
    again = program(bench, "--pdfs", papers)
    assert len(states(bench)) == 44
    assert {h["paper_id"] for h in bench.ask("attention", k=20)} == before

    # SIGTERM ends everything that it started.
    children = psutil.Process(again.pid).children(recursive=True)
    again.terminate()
    assert again.wait(40) == 0
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert bench.run("brain", "db", "status", code=4)


def _check_quotes(bench):
    """Hits' passages, and passages of random words, are exactly their slices."""
    texts = {}
    words = "model data training results we the language protein attention retrieval heat query".split()
    seen = set()
    chance = random.Random(1)
    for _ in range(60):
        question = " ".join(chance.sample(words, 2))
        for hit in bench.ask(question, k=100, per_list=200, passages=5):
            passages = [hit["passage"], *hit.get("passages", [])]
            for p in passages:
                key = (hit["paper_id"], p["part"])
                if key not in texts:
                    path = f"/papers/{urllib.parse.quote(hit['paper_id'], safe='')}/text"
                    texts[key] = bench.get(path, part=p["part"])[1]["text"]
                assert texts[key][p["char_start"] : p["char_end"]] == p["text"]
                assert len(p["text"]) <= 1800
                seen.add((key, p["char_start"]))
    assert len(seen) >= 100


def test_without_pdfs_it_answers_about_itself_and_leaves_nothing(bench):
    (bench.home / "seeds").symlink_to(bench_root() / "seeds")
    (bench.home / "docs").symlink_to(bench_root() / "docs")
    done = bench.run("python", "-m", "brain.quickstart", "--no-serve", timeout=100)
    assert "The farm" in done.stdout
    again = bench.run("python", "-m", "brain.quickstart", "--no-serve", timeout=100)
    assert "The farm" in again.stdout
    left = [p for p in psutil.process_iter(["cmdline"]) if str(bench.home) in " ".join(p.info["cmdline"] or [])]
    assert left == []


def bench_root():
    from tests.support import ROOT

    return ROOT
