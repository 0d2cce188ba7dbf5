"""The primary is killed and its folder deleted, again and again, under load: nothing acknowledged may be lost."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psycopg
from common import BIN, finish, say
from patroni_cluster import Cluster

N_ASKERS, N_WORKERS, N_SERVERS = 4, 3, 2


class Writer(threading.Thread):
    """Writes rows one by one and remembers each that was acknowledged, and the longest time without one."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.acknowledged, self.is_over = address, [], threading.Event()
        self.last_at = time.monotonic()
        self.longest_s = 0.0

    def run(self) -> None:
        n = 0
        while not self.is_over.is_set():
            try:
                with psycopg.connect(
                    self.address, autocommit=True, connect_timeout=2, tcp_user_timeout=3000
                ) as connection:
                    while not self.is_over.is_set():
                        n += 1
                        connection.execute("INSERT INTO drill_row VALUES (%s)", [n])
                        now = time.monotonic()
                        self.longest_s = max(self.longest_s, now - self.last_at)
                        self.last_at = now
                        self.acknowledged.append(n)
                        time.sleep(0.005)
            except psycopg.Error:
                time.sleep(0.1)


class Asker(threading.Thread):
    """Asks the search servers, the next one when one fails, and remembers the longest time without an answer."""

    def __init__(self, ports: list[int], number: int) -> None:
        super().__init__(daemon=True)
        self.ports, self.number, self.is_over = ports, number, threading.Event()
        self.n_answers = self.n_errors = self.n_degraded = 0
        self.longest_s = 0.0

    def run(self) -> None:
        last, at = time.monotonic(), self.number
        while not self.is_over.is_set():
            url = f"http://127.0.0.1:{self.ports[at % len(self.ports)]}/brain_search?q=slow+snails+number+{self.n_answers % 50}&k=5"
            try:
                with urllib.request.urlopen(url, timeout=2) as answer:
                    body = json.load(answer)
                now = time.monotonic()
                self.longest_s, last = max(self.longest_s, now - last), now
                self.n_answers += 1
                self.n_degraded += bool(body["degraded"])
            except (OSError, ValueError):
                self.n_errors += 1
                at += 1
            time.sleep(0.05)


def main() -> None:
    """Start everything, kill the primary `--rounds` times, count."""
    parser = argparse.ArgumentParser(prog="scripts/drill failover")
    parser.add_argument("--rounds", type=int, default=10)
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="brain-failover-", dir="/var/tmp"))
    folder.chmod(0o755)
    cluster = Cluster(folder / "cluster")
    children: list[subprocess.Popen[bytes]] = []
    try:
        for name in ("witness", "one", "two"):
            cluster.start(name)
        cluster.wait("a leader", lambda: cluster.leader() is not None)
        cluster.wait("a synchronous standby", lambda: cluster.sync_standby() is not None)
        result, is_good = drill(folder, cluster, children, wanted.rounds)
    finally:
        for child in children:
            child.kill()
            child.wait()
        cluster.stop()
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    finish(result, is_good)


def drill(
    folder: Path, cluster: Cluster, children: list[subprocess.Popen[bytes]], rounds: int
) -> tuple[dict[str, object], bool]:
    write, read = cluster.address("read-write"), cluster.address("any")
    with psycopg.connect(write.replace("/brain?", "/postgres?"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE brain")
    env = {**os.environ, "BRAIN_HOME": str(folder / "home"), "BRAIN_ENCODER": "hashing", "BRAIN_LOG_LEVEL": "error"}
    subprocess.run([str(BIN / "brain"), "init", "--db", write], env=env, check=True)
    with psycopg.connect(write, autocommit=True) as connection:
        connection.execute("CREATE TABLE drill_row (n bigint PRIMARY KEY)")
    rows = [
        json.dumps({"_id": str(n), "title": f"Slow snails, number {n}", "text": "They carry houses. " * 20})
        for n in range(3000)
    ]
    (folder / "first.jsonl").write_text("\n".join(rows[:500]) + "\n")
    (folder / "rest.jsonl").write_text("\n".join(rows) + "\n")
    load = [str(BIN / "brain"), "ingest", "--db", write, "--prefix", "drill", "--jsonl"]
    subprocess.run([*load, str(folder / "first.jsonl")], env=env, check=True, stderr=subprocess.DEVNULL)
    ports = [cluster.ports["one"] + 300 + n for n in range(N_SERVERS)]
    for n, port in enumerate(ports):
        start(
            children,
            ["search-server", "--db", read, "--port", str(port)],
            {**env, "BRAIN_HOME": str(folder / f"home{n}")},
        )
    for n in range(N_WORKERS):
        start(children, ["embed-worker", "--db", write, "--name", f"drill-{n}"], env)
    for port in ports:
        cluster.wait("the search servers", lambda port=port: is_ready(port))
    writer, askers = Writer(write), [Asker(ports, n) for n in range(N_ASKERS)]
    for thread in (writer, *askers):
        thread.start()
    gaps: list[float] = []
    n_ingests = 0
    ingest = None
    for number in range(rounds):
        if ingest is None or ingest.poll() is not None:
            ingest = start(children, ["brain", *load[1:], str(folder / "rest.jsonl")], env)
            n_ingests += 1
        old = cluster.leader()
        assert old is not None
        n_before, writer.longest_s = len(writer.acknowledged), 0.0
        time.sleep(1)
        cluster.destroy(old)
        cluster.wait(
            "writes to go on",
            lambda n=n_before, old=old: cluster.leader() not in {None, old} and len(writer.acknowledged) > n + 300,
        )
        gaps.append(writer.longest_s)
        cluster.start(old)
        back = cluster.wait("the old primary as a standby", lambda old=old: cluster.sync_standby() == old)
        say(
            f"round {number + 1}: writes stood still for {gaps[-1]:.1f} s, {old} is the standby again after {back:.1f} s"
        )
    for thread in (writer, *askers):
        thread.is_over.set()
        thread.join(10)
    with psycopg.connect(write, autocommit=True) as connection:
        kept = {row[0] for row in connection.execute("SELECT n FROM drill_row").fetchall()}
    n_lost = len(set(writer.acknowledged) - kept)
    result: dict[str, object] = {
        "rounds": rounds, "acknowledged": len(writer.acknowledged), "lost": n_lost, "longest_gap_s": round(max(gaps), 1),
        "mean_gap_s": round(sum(gaps) / len(gaps), 1), "answers": sum(a.n_answers for a in askers),
        "errors": sum(a.n_errors for a in askers), "degraded": sum(a.n_degraded for a in askers),
        "longest_without_answer_s": round(max(a.longest_s for a in askers), 1), "ingests": n_ingests,
    }  # fmt: skip
    return result, n_lost == 0 and max(gaps) <= 21


def start(children: list[subprocess.Popen[bytes]], words: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([str(BIN / words[0]), *words[1:]], env=env, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    children.append(child)
    return child


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


if __name__ == "__main__":
    main()
