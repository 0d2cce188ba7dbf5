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
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from common import BIN, finish, say
from patroni_cluster import Cluster

from brain.servers import Servers
from corpus.errors import BrainError

N_ASKERS, N_WORKERS, N_SERVERS = 4, 3, 2
_WITHIN_S = {"database": 15, "node": 15, "machine": 22}
"""Longest time without writes: a machine that says nothing keeps the leader's key for Patroni's least ttl of 20 s."""
_ANSWERS_WITHIN_S = {"database": 2, "node": 2, "machine": 3}
"""Longest time between two answers of an asker: connections to a machine that says nothing are left after seconds only."""


@dataclass(frozen=True)
class Round:
    """What one loss did."""

    number: int
    kind: str
    old: str
    write_gap_s: float
    answer_gap_s: float
    slowest_answer_s: float
    n_errors: int
    n_degraded: int
    back_s: float

    HEAD = "round  killed    primary  writes stood still  longest without answer  slowest answer  errors  degraded  standby again"

    def __str__(self) -> str:
        return (
            f"{self.number:5}  {self.kind:8}  {self.old:7}  {self.write_gap_s:16.1f} s  {self.answer_gap_s:20.2f} s  {self.slowest_answer_s:12.2f} s"
            f"  {self.n_errors:6}  {self.n_degraded:8}  {self.back_s:11.1f} s"
        )


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
    """Asks by words and by vectors as the program's own client does: the next server when one fails.

    An error is a question that no server answered; a time without an answer is told as well.
    """

    def __init__(self, ports: list[int], number: int) -> None:
        super().__init__(daemon=True)
        turned = ports[number % len(ports) :] + ports[: number % len(ports)]
        self.servers, self.is_over = (
            Servers([f"http://127.0.0.1:{port}" for port in turned], patience_s=2),
            threading.Event(),
        )
        self.n_answers = self.n_errors = self.n_degraded = 0
        self.longest_s = self.slowest_s = 0.0
        self.said: list[str] = []

    def run(self) -> None:
        last = time.monotonic()
        while not self.is_over.is_set():
            began = time.monotonic()
            items = [("q", f"slow snails number {self.n_answers % 50}"), ("k", "5")]
            try:
                body = self.servers.get("/brain_search", items)
                now = time.monotonic()
                self.longest_s, last = max(self.longest_s, now - last), now
                self.slowest_s = max(self.slowest_s, now - began)
                self.n_answers += 1
                self.n_degraded += bool(body["degraded"])
                self.said += [str(each) for each in body["degraded"]]
            except BrainError as error:
                self.n_errors += 1
                self.said.append(str(error))
            time.sleep(0.05)

    def fresh(self) -> None:
        """A new round begins."""
        self.n_errors = self.n_degraded = 0
        self.longest_s = self.slowest_s = 0.0


def main() -> None:
    """Start everything, kill the primary `--rounds` times, count."""
    parser = argparse.ArgumentParser(prog="scripts/drill failover")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--kinds", default="database,node",
        help="what is killed, in turn: database (the server), node (with its Patroni, which its service starts again), "
        "machine (nothing comes back before the standby took over: that waits for Patroni's ttl)",
    )  # fmt: skip
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
        result, is_good = drill(folder, cluster, children, wanted.rounds, wanted.kinds.split(","))
    finally:
        for child in children:
            child.kill()
            child.wait()
        cluster.stop()
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    finish(result, is_good)


def drill(
    folder: Path, cluster: Cluster, children: list[subprocess.Popen[bytes]], rounds: int, kinds: list[str]
) -> tuple[dict[str, object], bool]:
    write, reads = cluster.address("read-write"), [cluster.address("any"), cluster.address("prefer-standby")]
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
            ["search-server", "--db", reads[n % 2], "--port", str(port)],
            {**env, "BRAIN_HOME": str(folder / f"home{n}")},
        )
    for n in range(N_WORKERS):
        start(children, ["embed-worker", "--db", write, "--name", f"drill-{n}"], env)
    for port in ports:
        cluster.wait("the search servers", lambda port=port: is_ready(port))
    writer, askers = Writer(write), [Asker(ports, n) for n in range(N_ASKERS)]
    for thread in (writer, *askers):
        thread.start()
    table: list[Round] = []
    n_ingests = 0
    ingest = None
    say(Round.HEAD)
    for number in range(rounds):
        if ingest is None or ingest.poll() is not None:
            ingest = start(children, ["brain", *load[1:], str(folder / "rest.jsonl")], env)
            n_ingests += 1
        kind = kinds[number % len(kinds)]
        old = cluster.leader()
        assert old is not None
        time.sleep(1)
        for asker in askers:
            asker.fresh()
        n_before, writer.longest_s = len(writer.acknowledged), 0.0
        cluster.destroy(old, with_patroni=kind != "database")
        if kind == "node":
            cluster.start(old)
        cluster.wait(
            "writes to go on",
            lambda n=n_before, old=old: cluster.leader() not in {None, old} and len(writer.acknowledged) > n + 300,
        )
        gap_s = writer.longest_s
        if kind == "machine":
            cluster.start(old)
        back_s = cluster.wait("the old primary as a standby", lambda old=old: cluster.sync_standby() == old)
        table.append(
            Round(
                number + 1, kind, old, gap_s, max(a.longest_s for a in askers), max(a.slowest_s for a in askers),
                sum(a.n_errors for a in askers), sum(a.n_degraded for a in askers), back_s,
            )
        )  # fmt: skip
        say(str(table[-1]))
    for thread in (writer, *askers):
        thread.is_over.set()
        thread.join(10)
    with psycopg.connect(write, autocommit=True) as connection:
        kept = {row[0] for row in connection.execute("SELECT n FROM drill_row").fetchall()}
    n_lost = len(set(writer.acknowledged) - kept)
    n_ended = sum(child.poll() is not None for child in children[: N_SERVERS + N_WORKERS])
    worst = {
        kind: round(max(row.write_gap_s for row in table if row.kind == kind), 1) for kind in kinds if any(r.kind == kind for r in table)
    }  # fmt: skip
    said = sorted({text[:300] for asker in askers for text in asker.said})[:10]
    result: dict[str, object] = {
        "rounds": rounds, "acknowledged": len(writer.acknowledged), "lost": n_lost, "longest_write_gap_s": worst,
        "answers": sum(a.n_answers for a in askers), "errors": sum(row.n_errors for row in table),
        "degraded_answers": sum(row.n_degraded for row in table), "said": said,
        "longest_without_answer_s": round(max(row.answer_gap_s for row in table), 2), "ingests": n_ingests,
        "servers_and_workers_that_ended": n_ended, "table": [asdict(row) for row in table],
    }  # fmt: skip
    is_good = (
        n_lost == n_ended == 0
        and all(seconds <= _WITHIN_S[kind] for kind, seconds in worst.items())
        and result["errors"] == 0
        and result["degraded_answers"] == 0
        and all(row.answer_gap_s <= _ANSWERS_WITHIN_S[row.kind] for row in table)
    )
    return result, is_good


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
