#!/usr/bin/env python3
"""Faults under load, measured: the rate after each fault against the rate before it, with an unfaulted control beside it.

    scripts/chaos                       the long form: 120 s before, the fault, seconds 60 to 180 after; median of 3 rounds
    scripts/chaos --short               some 4 minutes for all faults, one round; longer where a rate is looked at again
    scripts/chaos --faults kill-one refuse --rounds 1 --before 30 --skip 10 --after 30

A round is one farm that meets every fault in turn; the seconds measured after one fault are those before the next. After
every round: nothing lost, nothing doubled, nothing wrong (each embedding is the hashing encoder's of its text) and nothing
held by the dead. Exit 1, at the end of that round, when one is not whole or jobs are left; exit 3 when all is whole and only
a rate lies below --least, by the median of its rounds: that alone may be the machine's fault, and may be tried again.

A shared machine's own speed changes from minute to minute: a fixed piece of work, timed again and again beside the farm,
tells how much, and every rate is given at the speed of the first. The short form also compares with the median of all rates
before, because short ones jump, and looks again, up to --looks times, at one that lies below --least: the full rate must
be back within the minute after a fault that the long form leaves out. The long form looks once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg
from bench_farm import add_texts, make_texts
from psycopg import conninfo

from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.encoders import register_encoder
from corpus.schema import migrate
from encoders.load import resolve_spec
from tests.chaos.proxy import Proxy
from tests.farm.support import check_whole, make_filling

ROOT = Path(__file__).resolve().parent.parent
POOL = 40_000
LEASE_S = 10
TOO_SLOW = 3
"""Exit code where all is whole and a rate too low."""


def _cost() -> float:
    """Seconds of computing that a fixed piece of work takes now: how slow the machine is."""
    began = time.thread_time()
    for _ in range(100_000):
        pass
    return time.thread_time() - began


class Weather:
    """The proxy, in a loop of its own thread."""

    def __init__(self, target: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.proxy = Proxy(target)
        self.run(self.proxy.__aenter__())

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def call(self, what: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(what)


class Farm:
    """A database of the run's own, workers behind the proxy, and a feeder that never lets the queue run dry."""

    def __init__(self) -> None:
        self.first_cost = 0.0
        self.folder = Path(tempfile.mkdtemp(prefix="brain-chaos-"))
        self.folder.chmod(0o755)
        self.server = EmbeddedServer(self.folder / "db")
        self.weather = Weather(f"{self.server.socket_dir}/.s.PGSQL.{self.server.port}")
        self.workers: list[subprocess.Popen[bytes]] = []
        self._is_over = threading.Event()
        self._feeder = threading.Thread(target=self._feed, daemon=True)

    def begin(self, n_workers: int) -> None:
        """Start everything; `close` ends what was started, also where this fails half way."""
        self.server.ensure_running()
        self.database = Database(DatabaseUrl(conninfo=self.server.conninfo))
        migrate(self.database)
        with self.database.connect() as connection:
            register_encoder(connection, resolve_spec("hashing"), activate=True)
            make_filling(connection)
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            # The load replaces every embedding again and again, which no real corpus does: 40 MB of dead rows a second.
            # Vacuum at its usual pace never catches up with them, and the disk becomes what is measured.
            connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(
                "ALTER TABLE passage_embedding_1 SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,"
                " autovacuum_vacuum_cost_delay = 0)"
            )
        add_texts(self.database, make_texts(POOL, 600))
        self.address = conninfo.make_conninfo(self.server.conninfo, host="127.0.0.1", port=self.weather.proxy.port)
        # The proxy comes by the socket, where the server knows us by our user.
        self.workers = [self.start(i) for i in range(n_workers)]
        self._feeder.start()

    def start(self, number: int, hours_off: int = 0) -> subprocess.Popen[bytes]:
        """A worker, with a wall clock that is so many hours off."""
        code = (
            f"import sys, time; real = time.time; time.time = lambda: real() + 3600 * ({hours_off}); "
            "from embed_worker.cli import main; main(sys.argv[1:])"
        )
        words = [
            sys.executable,
            "-c",
            code,
            "--db",
            self.address,
            "--name",
            f"worker-{number}",
            "--lease",
            str(LEASE_S),
        ]
        return subprocess.Popen(words, cwd=ROOT, env={**os.environ, "BRAIN_LOG_LEVEL": "error"})

    def _feed(self) -> None:
        """Takes embeddings away again and queues their texts anew, in turn through the pool."""
        at = 0
        while not self._is_over.is_set():
            try:
                with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
                    while not self._is_over.wait(0.02):
                        waiting = connection.execute("SELECT count(*) FROM job WHERE state = 'waiting'").fetchone()
                        if waiting and waiting[0] < 300:
                            connection.execute(
                                "WITH part AS (SELECT passage_id, text_sha256 FROM passage WHERE passage_id > %s ORDER BY passage_id LIMIT 6400), "
                                "gone AS (DELETE FROM passage_embedding e USING part WHERE e.encoder_id = 1 AND e.text_sha256 = part.text_sha256) "
                                "INSERT INTO job (kind, encoder_id, item_ids) SELECT 'embed_passages', 1, array_agg(passage_id) "
                                "FROM (SELECT passage_id, row_number() OVER () / 64 AS slice FROM part) s GROUP BY slice",
                                [at],
                            )
                            at = (at + 6400) % POOL
            except psycopg.OperationalError:
                self._is_over.wait(0.5)

    def n_done(self) -> int:
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            return connection.execute("SELECT coalesce(sum(n_texts), 0)::bigint FROM node").fetchone()[0]

    def rate(self, seconds: float) -> float:
        """Texts a second, seen for so long, at the speed that the machine had the first time."""
        began, n, costs = time.monotonic(), self.n_done(), []
        while time.monotonic() - began < seconds:
            time.sleep(0.25)
            costs.append(_cost())
        rate = (self.n_done() - n) / (time.monotonic() - began)
        cost = statistics.fmean(costs)
        self.first_cost = self.first_cost or cost
        return rate * cost / self.first_cost

    def settle(self) -> int:
        """Stop feeding, let the queue run dry and check that all is whole; the number of embeddings."""
        self._is_over.set()
        self._feeder.join()
        end = time.monotonic() + 180
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            connection.execute("SELECT job_enqueue_missing(1, 100)")
            while connection.execute("SELECT EXISTS (SELECT FROM job)").fetchone()[0]:
                if time.monotonic() > end:
                    sys.exit("jobs are left that nobody does")
                time.sleep(0.2)
        return check_whole(self.database)

    def close(self) -> None:
        self._is_over.set()
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in self.workers:
            worker.wait()
        self.weather.run(self.weather.proxy.refuse())
        self.server.stop(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def nothing(farm: Farm) -> None:
    """The control."""


def kill_one(farm: Farm) -> None:
    farm.workers[0].kill()
    farm.workers[0].wait()
    farm.workers[0] = farm.start(0)


def kill_all(farm: Farm) -> None:
    for worker in farm.workers:
        worker.kill()
        worker.wait()
    farm.workers = [farm.start(i) for i in range(len(farm.workers))]


def pause(farm: Farm) -> None:
    """Longer than a lease."""
    farm.workers[0].send_signal(signal.SIGSTOP)
    time.sleep(LEASE_S + 2)
    farm.workers[0].send_signal(signal.SIGCONT)


def restart(farm: Farm) -> None:
    farm.server.stop(immediate=True)
    farm.server.ensure_running()


def terminate(farm: Farm) -> None:
    with psycopg.connect(farm.server.conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def refuse(farm: Farm) -> None:
    farm.weather.run(farm.weather.proxy.refuse())
    time.sleep(30)
    farm.weather.run(farm.weather.proxy.heal())


def cut(farm: Farm) -> None:
    for _ in range(5):
        farm.weather.call(farm.weather.proxy.cut)
        time.sleep(1)


def half_close(farm: Farm) -> None:
    farm.weather.call(farm.weather.proxy.half_close)


def delay(farm: Farm) -> None:
    farm.weather.proxy.delay_s = 0.2
    time.sleep(5)
    farm.weather.run(farm.weather.proxy.heal())


def swallow(farm: Farm) -> None:
    farm.weather.proxy.weather = "swallowed"
    time.sleep(5)
    farm.weather.run(farm.weather.proxy.heal())


def clock(farm: Farm) -> None:
    """From here on one worker lives an hour ago and another an hour ahead."""
    for i, hours in enumerate((-1, 1)):
        farm.workers[i].terminate()
        farm.workers[i].wait()
        farm.workers[i] = farm.start(i, hours)


FAULTS: dict[str, Callable[[Farm], None]] = {
    "control": nothing, "kill-one": kill_one, "kill-all": kill_all, "pause": pause, "restart": restart,
    "terminate": terminate, "refuse": refuse, "cut": cut, "half-close": half_close, "delay": delay, "swallow": swallow, "clock": clock,
}  # fmt: skip


def one_round(args: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """The rates before and after each fault, texts a second."""
    farm, rates = Farm(), {}
    try:
        farm.begin(args.workers)
        time.sleep(args.warm)
        before = farm.rate(args.before)
        seen = [before]
        for fault in args.faults:
            FAULTS[fault](farm)
            time.sleep(args.skip)
            for _ in range(args.looks):
                after = farm.rate(args.after)
                if after >= args.least * before:
                    break
            rates[fault] = (before, after)
            print(f"  {fault}: {before:.0f} → {after:.0f} texts a second", file=sys.stderr, flush=True)
            seen.append(after)
            before = statistics.median(seen) if args.short else after
        print(f"  whole: {farm.settle()} embeddings, none lost, doubled or wrong", file=sys.stderr, flush=True)
    finally:
        farm.close()
    return rates


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended and removed
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", nargs="*", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--warm", type=float, default=5)
    parser.add_argument("--before", type=float)
    parser.add_argument("--skip", type=float)
    parser.add_argument("--after", type=float)
    parser.add_argument("--least", type=float)
    parser.add_argument("--looks", type=int)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    defaults = (
        {"rounds": 1, "before": 6, "skip": 4, "after": 6, "least": 0.9, "looks": 9}
        if args.short
        else {"rounds": 3, "before": 120, "skip": 60, "after": 120, "least": 0.98, "looks": 1}
    )
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.workers < 2:
        parser.error("--workers takes 2 or more: two of them get clocks of their own")
    rounds = [one_round(args) for _ in range(args.rounds)]
    failed = False
    for fault in args.faults:
        ratios = [each[fault][1] / max(each[fault][0], 1) for each in rounds]
        median = statistics.median(ratios)
        failed |= fault != "control" and median < args.least
        shown = [[round(rate) for rate in each[fault]] for each in rounds]
        print(
            json.dumps({"fault": fault, "median_ratio": round(median, 4), "texts_a_second": shown})
            if args.json
            else f"{fault:<10} {median:6.1%}  texts a second: {', '.join(f'{a} → {b}' for a, b in shown)}",
            flush=True,
        )
    sys.exit(TOO_SLOW if failed else 0)


if __name__ == "__main__":
    main()
