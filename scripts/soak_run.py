#!/usr/bin/env python3
"""Asks a running system for a long time while it is being filled: no error, no growth of memory, no slow tail.

    scripts/soak [--minutes 30] [--clients 4] [--papers 3000]

Starts a database, a server and a worker with the hashing encoder in a folder of its own, loads papers that the script
makes up, and keeps loading, replacing and re-embedding while the clients ask. Ends with 0 when no question failed or
lacked a list, the server's memory grew by less than a tenth after the first fifth, and p99 stayed within three times the
quiet one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import psutil

BIN = Path(__file__).resolve().parent.parent / ".venv" / "bin"
WORDS = [
    f"{a}{b}"
    for a in ("glaci", "morain", "basal", "lich", "enzym", "tens", "prot", "neur")
    for b in ("ation", "in", "ic", "ology", "al", "ite", "ide", "oid")
]


def paper(number: int, rng: random.Random, edition: int) -> dict[str, object]:
    text = " ".join(rng.choices(WORDS, k=rng.randint(60, 400)))
    return {"_id": str(number), "title": f"Edition {edition} of {rng.choice(WORDS)} {number}", "text": text,
            "metadata": {"year": 1990 + number % 35, "topics": [f"topic {number % 12}"]}}  # fmt: skip


class Soak:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.folder = Path(tempfile.mkdtemp(prefix="brain-soak-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BRAIN_", "PG"))}
        self.env = {**kept, "BRAIN_HOME": str(self.folder / "home")}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.stop = threading.Event()
        self.times: list[tuple[float, float]] = []
        self.errors: list[str] = []
        self.base = ""

    def brain(self, *words: str) -> None:
        subprocess.run([str(BIN / "brain"), *words], env=self.env, check=True, capture_output=True)

    def load(self, numbers: list[int], edition: int, rng: random.Random) -> None:
        file = self.folder / "papers.jsonl"
        file.write_text("".join(json.dumps(paper(n, rng, edition)) + "\n" for n in numbers))
        self.brain("ingest", "--jsonl", str(file), "--prefix", "soak")

    def start(self) -> psutil.Process:
        self.brain("init", "--encoder", "hashing")
        self.load(list(range(self.given.papers)), 0, random.Random(0))
        subprocess.run([str(BIN / "embed-worker"), "--drain"], env=self.env, check=True, capture_output=True)
        server = subprocess.Popen(
            [str(BIN / "search-server"), "--port", "0"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.processes.append(server)
        assert server.stdout is not None
        line = server.stdout.readline().decode()
        if not line:
            sys.exit("the server ended at once")
        self.base = line.split()[-1]
        self.processes.append(
            subprocess.Popen(
                [str(BIN / "embed-worker")], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        while server.poll() is None:
            try:
                urllib.request.urlopen(self.base + "/readyz", timeout=2)
            except OSError:
                time.sleep(0.2)
            else:
                return psutil.Process(server.pid)
        sys.exit(f"the server ended with {server.returncode} before it was ready")

    def client(self, seed: int) -> None:
        rng = random.Random(seed)
        while not self.stop.is_set():
            q: dict[str, object] = {"q": " ".join(rng.sample(WORDS, 4)), "k": 10}
            if rng.random() < 0.3:
                q["topic"] = f"topic {rng.randrange(12)}"
            started = time.monotonic()
            try:
                with urllib.request.urlopen(
                    f"{self.base}/brain_search?{urllib.parse.urlencode(q)}", timeout=30
                ) as answer:
                    body = json.load(answer)
                    if body["n_hits"] == 0:
                        self.errors.append(f"no hit for {q}")
                    if body["degraded"]:
                        self.errors.append(f"{q}: {body['degraded']}")
            except Exception as error:
                self.errors.append(f"{q}: {error!r}")
            self.times.append((started, time.monotonic() - started))

    def run(self) -> int:
        server = self.start()
        clients = [threading.Thread(target=self.client, args=(n,), daemon=True) for n in range(self.given.clients)]
        for thread in clients:
            thread.start()
        began = time.monotonic()
        quiet_s = max(10.0, self.given.minutes * 60 / 10)
        time.sleep(quiet_s)
        end = began + self.given.minutes * 60
        rng = random.Random(1)
        memory: list[int] = []
        edition = 0
        while time.monotonic() < end:
            edition += 1
            changed = rng.sample(range(self.given.papers), self.given.papers // 20)
            fresh = [self.given.papers + edition * 20 + n for n in range(20)]
            self.load([*changed, *fresh], edition, rng)
            memory.append(server.memory_info().rss)
            time.sleep(2)
        self.stop.set()
        for thread in clients:
            thread.join(40)
        return self.judge(began + quiet_s, memory)

    def minutes(self) -> list[tuple[float, float]]:
        """The median and p99 of each minute in milliseconds: what grows shows."""
        first = min(at for at, _ in self.times)
        parts: dict[int, list[float]] = {}
        for at, took in self.times:
            parts.setdefault(int((at - first) // 60), []).append(took * 1000)
        return [
            (round(statistics.median(part), 1), round(statistics.quantiles(part, n=100)[98], 1))
            for _, part in sorted(parts.items())
            if len(part) > 1
        ]

    def judge(self, quiet_until: float, memory: list[int]) -> int:
        quiet = [t for at, t in self.times if at < quiet_until]
        busy = [t for at, t in self.times if at >= quiet_until]
        p99 = [statistics.quantiles(part, n=100)[98] * 1000 for part in (quiet, busy)]
        early = statistics.median(memory[len(memory) // 5 :][: max(1, len(memory) // 5)])
        late = statistics.median(memory[-max(1, len(memory) // 5) :])
        found = {
            "questions": len(self.times), "errors": len(self.errors), "first_errors": self.errors[:3],
            "p50_ms": [round(statistics.median(part) * 1000, 1) for part in (quiet, busy)],
            "p99_ms": [round(p, 1) for p in p99], "p50_and_p99_of_each_minute": self.minutes(), "memory_mb": [round(m / 2**20) for m in (early, late)],
        }  # fmt: skip
        print(json.dumps(found))
        return 0 if not self.errors and late < 1.1 * early and p99[1] <= 3 * p99[0] else 1

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        subprocess.run([str(BIN / "brain"), "db", "stop"], env=self.env, check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended and removed
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--papers", type=int, default=3000)
    soak = Soak(parser.parse_args())
    try:
        return soak.run()
    finally:
        soak.stop.set()
        soak.end()


if __name__ == "__main__":
    sys.exit(main())
