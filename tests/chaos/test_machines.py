"""Several machines for real (network namespaces with their own addresses), full disks, little memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.encoders import register_encoder
from corpus.schema import migrate
from encoders.load import resolve_spec
from tests.farm.support import add_passages, check_whole, drain, make_filling, one, start_worker, until

ROOT = Path(__file__).resolve().parents[2]


def _sh(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(words[0]) is None:
        return subprocess.CompletedProcess(words, 127, "", "not installed")
    return subprocess.run(words, capture_output=True, text=True, check=False)


def _ready(server: EmbeddedServer) -> Database:
    database = Database(DatabaseUrl(conninfo=server.conninfo))
    migrate(database)
    with database.connect() as connection:
        register_encoder(connection, resolve_spec("hashing"), activate=True)
        make_filling(connection)
    return database


@pytest.fixture
def small_disk():
    """A folder on a disk of 400 MB."""
    folder = Path(tempfile.mkdtemp(prefix="brain-disk-"))
    folder.chmod(0o755)
    if _sh("mount", "-t", "tmpfs", "-o", "size=400m,mode=755", "tmpfs", str(folder)).returncode != 0:
        shutil.rmtree(folder)
        pytest.skip("no small disk can be mounted here: that needs the right to mount a tmpfs")
    yield folder
    server = EmbeddedServer(folder / "db")
    with contextlib.suppress(Exception):
        server.stop(immediate=True)
    _sh("umount", "-l", str(folder))
    shutil.rmtree(folder, ignore_errors=True)


async def test_a_full_disk_that_is_freed(small_disk):
    server = EmbeddedServer(small_disk / "db")
    server.ensure_running()
    database = _ready(server)
    with database.connect() as connection:
        for part in range(0, 6000, 2000):
            add_passages(connection, [f"passage {i} on a small disk" for i in range(part, part + 2000)])
    worker = start_worker(database, "--drain", "--lease", "3", "--name", "node")
    ballast = small_disk / "ballast"
    try:
        await until(lambda: one(database, "SELECT count(*) FROM passage_embedding") > 0)
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(b"\0" * (1 << 16))
        await asyncio.sleep(2)  # the length of the trouble
        assert worker.poll() is None or worker.returncode == 0
        ballast.unlink(missing_ok=True)
        await asyncio.to_thread(server.ensure_running)
        await until(lambda: worker.poll() is not None, 60)
        assert worker.returncode == 0
    finally:
        worker.kill()
        worker.wait()
    assert check_whole(database) == 6000


async def test_a_worker_that_gets_no_memory_loses_nothing(database):
    with database.connect() as connection:
        make_filling(connection)
        add_passages(connection, [f"large text {i} " + "word of the sea " * 40_000 for i in range(12)])
        add_passages(connection, [f"small text {i}" for i in range(500)])
    limit = 900 << 20
    limited = subprocess.Popen(
        [sys.executable, "-m", "embed_worker.cli", "--db", database.url.conninfo or "", "--drain", "--lease", "2"],
        env={**os.environ, "BRAIN_LOG_LEVEL": "error", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        stderr=subprocess.DEVNULL,
    )
    try:
        await until(
            lambda: limited.poll() is not None or one(database, "SELECT count(*) FROM passage_embedding") > 100, 60
        )
        limited.kill()
    finally:
        limited.kill()
        limited.wait()
    assert await drain(database, lease_s=10) == 0
    assert check_whole(database) == 512


class Machines:
    """Three namespaces on one bridge: `db` with the database, `one` and `two` with a worker each."""

    def __init__(self) -> None:
        self.tag = f"b{os.getpid() % 10000}"
        self.net = f"10.{200 + os.getpid() % 50}.{os.getpid() % 250}"

    def build(self) -> bool:
        steps = [["ip", "link", "add", self.tag, "type", "bridge"], ["ip", "link", "set", self.tag, "up"]]
        for number, name in enumerate(("db", "one", "two"), 1):
            space = self.space(name)
            steps += [
                ["ip", "netns", "add", space],
                ["ip", "link", "add", f"{space}h", "type", "veth", "peer", "name", f"{space}g"],
                ["ip", "link", "set", f"{space}h", "master", self.tag],
                ["ip", "link", "set", f"{space}h", "up"],
                ["ip", "link", "set", f"{space}g", "netns", space],
                ["ip", "-n", space, "addr", "add", f"{self.net}.{number}/24", "dev", f"{space}g"],
                ["ip", "-n", space, "link", "set", f"{space}g", "up"],
                ["ip", "-n", space, "link", "set", "lo", "up"],
            ]
        return all(_sh(*step).returncode == 0 for step in steps)

    def remove(self) -> None:
        for name in ("db", "one", "two"):
            _sh("ip", "netns", "del", self.space(name))
            _sh("ip", "link", "del", f"{self.space(name)}h")
        _sh("ip", "link", "del", self.tag)

    def space(self, name: str) -> str:
        return f"{self.tag}{name[0]}"

    def link(self, name: str, state: str) -> None:
        assert _sh("ip", "link", "set", f"{self.space(name)}h", state).returncode == 0

    def words(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.space(name)]


@pytest.fixture
def machines():
    found = Machines()
    if not found.build():
        found.remove()
        pytest.skip("no network namespaces can be made here: that needs the right to administer the network")
    yield found
    found.remove()


async def test_a_machine_that_is_cut_off_and_comes_back(machines, home):
    address = f"{machines.net}.1"
    code = (
        "import sys; from pathlib import Path; from corpus.embedded import EmbeddedServer; "
        "EmbeddedServer(Path(sys.argv[1])).listen(sys.argv[2], 5432, 'secret of the test')"
    )
    started = await asyncio.to_thread(
        subprocess.run,
        [*machines.words("db"), sys.executable, "-c", code, str(home / "db"), address],
        cwd=ROOT,
        check=False,
    )
    assert started.returncode == 0
    database = _ready(EmbeddedServer(home / "db"))
    url = f"postgresql://brain:secret%20of%20the%20test@{address}:5432/brain"
    workers = [
        subprocess.Popen(
            [
                *machines.words(name),
                sys.executable,
                "-m",
                "embed_worker.cli",
                "--db",
                url,
                "--lease",
                "3",
                "--name",
                name,
            ],
            cwd=ROOT,
            env={**os.environ, "BRAIN_LOG_LEVEL": "warning"},
        )
        for name in ("one", "two")
    ]
    done_by = "SELECT n_texts FROM node WHERE name = %s"
    try:
        await until(lambda: one(database, "SELECT count(*) FROM node WHERE encoder_id IS NOT NULL") == 2, 60)
        n = 0
        while one(database, "SELECT count(*) FROM node WHERE n_texts > 0") < 2:
            with database.connect() as connection:
                add_passages(connection, [f"passage {n + i} between machines" for i in range(1000)])
            n += 1000
            await asyncio.sleep(0.5)
        machines.link("two", "down")
        with database.connect() as connection:
            for part in range(0, 2000, 2000):
                add_passages(connection, [f"passage {i} while one is away" for i in range(part, part + 2000)])
        await until(lambda: not one(database, "SELECT EXISTS (SELECT FROM job)"), 60)
        before = one(database, done_by, ["two"])
        machines.link("two", "up")
        await until(
            lambda: one(
                database, "SELECT last_seen_at > clock_timestamp() - interval '3 seconds' FROM node WHERE name = 'two'"
            ),
            60,
        )
        workers[0].terminate()
        workers[0].wait()
        with database.connect() as connection:
            add_passages(connection, [f"passage {i} for the one that came back" for i in range(500)])
        await until(lambda: not one(database, "SELECT EXISTS (SELECT FROM job)"), 60)
        assert one(database, done_by, ["two"]) >= before + 500
        workers[1].terminate()
        assert workers[1].wait() == 0
    finally:
        for each in workers:
            each.kill()
            each.wait()
    assert check_whole(database) == n + 2500
