"""A backup comes back equal with little memory and little /dev/shm, and one flipped byte is refused."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import psycopg
from common import ROOT, Drill, drill, finish

sys.path.insert(0, str(ROOT))


def main() -> None:
    """Load, back up, damage, lose, restore."""
    parser = argparse.ArgumentParser(prog="scripts/drill restore")
    parser.add_argument("--shm-mb", type=int, default=64)
    parser.add_argument("--memory-gb", type=int, default=2)
    parser.add_argument(
        "--rows", type=int, default=60_000, help="embeddings of the index that is built after the restore"
    )
    parser.add_argument("--encoder", default="hashing")
    wanted = parser.parse_args()
    with drill(wanted.encoder) as made:
        made.load()
        question = ("brain", "search", "Which drug lowers blood pressure?", "-k", "20", "--json")
        before = [hit["paper_id"] for hit in json.loads(made.run(*question).stdout)["hits"]]
        without_index(made, wanted.rows)
        made.run("brain", "receipt")
        made.run("brain", "backup", str(made.folder / "copies"))
        (copy,) = (made.folder / "copies").glob("brain-*")
        refused = damaged(made, copy)
        made.run("brain", "db", "stop")
        shutil.rmtree(made.home / "db")
        with Small(wanted.shm_mb, wanted.memory_gb << 30) as small:
            began = time.monotonic()
            made.run("brain", "restore", str(copy), prefix=small.prefix)
            restore_s = time.monotonic() - began
            found = made.compare()
            began = time.monotonic()
            plain = by_hand(made)
            made.run("brain", "vectors", "index", "halfvec", prefix=small.prefix)
            index_s = time.monotonic() - began
            peak, limit = small.peak_mb(), small.limit
            settings = asked_of(made, "SELECT name, current_setting(name) FROM pg_settings WHERE name IN "
                                "('maintenance_work_mem', 'shared_buffers', 'max_parallel_maintenance_workers')")  # fmt: skip
            n_rows = asked_of(made, "SELECT 'n', count(*) FROM passage_embedding_1")["n"]
            after = [hit["paper_id"] for hit in json.loads(made.run(*question).stdout)["hits"]]
            made.run("brain", "db", "stop")
        result = {
            "limits": limit, "flipped_bytes_refused": refused, "restore_s": round(restore_s, 1), "index_rows": n_rows,
            "index_s": round(index_s, 1), "peak_memory_mb": peak, "settings": settings, "with_workers_by_hand": plain,
            "missing": found["n_missing"], "changed": found["n_changed"], "same_20_hits": before == after,
        }  # fmt: skip
        finish(result, refused == "3 of 3" and bool(found["is_equal"]) and before == after)


def without_index(made: Drill, n: int) -> None:
    """Bring the passages' embeddings to `n` rows, and take their index away: it is to be built after the restore."""
    import numpy as np

    from corpus.halfvec import COPY_HEAD, COPY_TAIL, pack_copy_rows

    chance = np.random.default_rng(1)
    with connect(made) as connection:
        connection.execute("DROP INDEX passage_embedding_1_hnsw_idx")
        there = asked_of(made, "SELECT 'n', count(*) FROM passage_embedding_1")["n"]
        connection.execute("CREATE TEMP TABLE incoming (h bytea, e halfvec(768))")
        with connection.cursor() as cursor, cursor.copy("COPY incoming FROM STDIN (FORMAT binary)") as copy:
            copy.write(COPY_HEAD)
            for at in range(there, n, 2000):
                size = min(2000, n - at)
                rows = chance.standard_normal((size, 768)).astype(np.float32)
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                copy.write(pack_copy_rows([(at + i).to_bytes(32, "big") for i in range(size)], rows))
            copy.write(COPY_TAIL)
        connection.execute("INSERT INTO passage_embedding SELECT 1, h, e FROM incoming")


def by_hand(made: Drill) -> str:
    """What a build with parallel workers and a large maintenance_work_mem meets there: the fault that is to be avoided."""
    with connect(made) as connection:
        connection.execute("SET maintenance_work_mem = '512MB'")
        connection.execute("SET max_parallel_maintenance_workers = 2")
        connection.execute("SET min_parallel_table_scan_size = 0")
        try:
            connection.execute("CREATE INDEX by_hand ON passage_embedding_1 USING hnsw (embedding halfvec_cosine_ops)")
        except psycopg.Error as error:
            return str(error).splitlines()[0]
        connection.execute("DROP INDEX by_hand")
        return "it went through"


def connect(made: Drill) -> psycopg.Connection:
    from corpus.embedded import EmbeddedServer

    return psycopg.connect(EmbeddedServer(made.home / "db").conninfo, autocommit=True)


def asked_of(made: Drill, query: str) -> dict:
    with connect(made) as connection:
        return dict(connection.execute(query).fetchall())


def damaged(made: Drill, copy) -> str:
    """Flip a bit of three files in turn: each must be refused with exit 5."""
    chance = random.Random(5)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and path.stat().st_size)
    n = 0
    for path in chance.sample(files, 3):
        kept = path.read_bytes()
        at = chance.randrange(len(kept))
        path.write_bytes(kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
        n += made.run("brain", "restore", str(copy), ok=(0, 3, 5)).returncode == 5
        path.write_bytes(kept)
    return f"{n} of 3"


class Small:
    """A small container for what is started with `prefix`: its own /dev/shm, and a cgroup that bounds the memory.

    The server that `brain restore` starts lives in it too. Where neither cgroup hierarchy can be written, address space is
    bounded instead (prlimit), which is stricter.
    """

    def __init__(self, shm_mb: int, memory: int) -> None:
        self.folder = next((f for f in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if self._may(f)), None)
        self.limit = f"{shm_mb} MB of /dev/shm, {memory >> 20} MB of memory"
        mount = f"mount -t tmpfs -o size={shm_mb}m tmpfs /dev/shm"
        if self.folder is not None:
            self.folder = self.folder / f"brain-drill-{os.getpid()}"
            self.folder.mkdir()
            is_old = (self.folder / "memory.limit_in_bytes").exists()
            (self.folder / ("memory.limit_in_bytes" if is_old else "memory.max")).write_text(str(memory))
            join, self.limit = (
                f"echo $$ > {self.folder}/cgroup.procs",
                f"{self.limit} (cgroup {'v1' if is_old else 'v2'})",
            )
        else:
            join, self.limit = f"ulimit -v {memory >> 10}", f"{self.limit} (address space of each process)"
        self.prefix = ("unshare", "--mount", "sh", "-c", f'{mount} && {join} && exec "$@"', "sh")
        if subprocess.run([*self.prefix, "true"], capture_output=True, check=False).returncode != 0:
            sys.exit("this drill needs a user who may mount: run it as root")

    @staticmethod
    def _may(folder: Path) -> bool:
        if not (folder / "cgroup.procs").exists():
            return False
        trial = folder / f"brain-trial-{os.getpid()}"
        try:
            trial.mkdir()
            is_good = any((trial / name).exists() for name in ("memory.limit_in_bytes", "memory.max"))
            trial.rmdir()
        except OSError:
            return False
        return is_good

    def peak_mb(self) -> int | None:
        """The most memory that was used at once, file cache that could have been given back included."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if self.folder is not None and (self.folder / name).exists():
                return int((self.folder / name).read_text()) >> 20
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end = time.monotonic() + 10
        while self.folder is not None and self.folder.exists() and time.monotonic() < end:
            with contextlib.suppress(OSError):  # the server's last processes end
                self.folder.rmdir()
            time.sleep(0.1)


if __name__ == "__main__":
    main()
