"""The database folder is deleted: `brain rebuild` must bring an equal receipt back, also when it is killed on the way."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from common import BIN, ROOT, Drill, drill, finish, say, without_network


def main() -> None:
    """Load, save, lose, rebuild; then again with kills; then without the store."""
    parser = argparse.ArgumentParser(prog="scripts/drill rebuild")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument(
        "--encoder", default="hashing", help="the real one takes as long as it takes to embed 22 papers"
    )
    wanted = parser.parse_args()
    with drill(wanted.encoder) as made:
        made.load()
        made.run("brain", "seed", "export")
        made.run("brain", "vectors", "export", str(made.vectors))
        made.run("brain", "receipt")
        plain_s = rebuild(made)
        plain = made.compare()
        n_killed = killed(made, wanted.kills)
        rebuild(made, is_fresh=False)
        after_kills = made.compare()
        lose(made)
        shutil.rmtree(made.home / "store")
        words = ("brain", "rebuild", "--vectors", str(made.vectors), "--offline", "--json")
        lost = json.loads(made.run(*words, ok=(3,)).stdout)
        named = {each["file_name"] for each in lost["comparison"]["missing"]["documents"]}
        back = from_sources(made)
        result = {
            "rebuild_s": round(plain_s, 1), "missing": plain["n_missing"], "changed": plain["n_changed"],
            "kills": n_killed, "missing_after_kills": after_kills["n_missing"], "changed_after_kills": after_kills["n_changed"],
            "named_without_store_and_network": len(named), "from_sources": back,
        }  # fmt: skip
        is_good = plain["is_equal"] and after_kills["is_equal"] and len(named) == 44 and back["is_good"]
        finish(result, bool(is_good))


def from_sources(made: Drill) -> dict[str, object]:
    """Database and store are gone, the replayed internet of the tests is there: what it offers is back, the rest named."""
    sys.path.insert(0, str(ROOT))
    from tests.acquire.internet import ACL, ARXIV, Internet, serving

    lose(made)
    shutil.rmtree(made.home / "store", ignore_errors=True)
    offered = {paper.path.name for paper in (*ARXIV.values(), *ACL.values()) if paper.path.parent.name == "papers"}
    began = time.monotonic()
    with serving(Internet()) as internet:
        made.env["BRAIN_SOURCES_BASE_URL"] = internet.base_url
        done = made.run("brain", "rebuild", "--vectors", str(made.vectors), "--json", ok=(3,))
    said = json.loads(done.stdout)
    missing = {each["file_name"] for each in said["comparison"]["missing"]["documents"]}
    unnamed = sorted(name for name in missing if not any(line.startswith(name) for line in said["problems"]))
    return {
        "seconds": round(time.monotonic() - began), "offered": len(offered), "back": 44 - len(missing),
        "offered_but_not_back": sorted(offered & missing), "named": len(missing), "missing_but_not_named": unnamed,
        "is_good": not offered & missing and not unnamed and bool(missing),
    }  # fmt: skip


def lose(made: Drill) -> None:
    """The host dies: its server is killed and the folder of the database deleted."""
    pid = int((made.home / "db" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(made.home / "db", ignore_errors=True)
    shutil.rmtree(made.home / "db", ignore_errors=True)


def rebuild(made: Drill, *, is_fresh: bool = True) -> float:
    """One rebuild without network; its seconds."""
    if is_fresh:
        lose(made)
    began = time.monotonic()
    made.run("brain", "rebuild", "--seeds", str(made.seeds), "--vectors", str(made.vectors), prefix=without_network())
    return time.monotonic() - began


def killed(made: Drill, n: int) -> int:
    """Rebuilds that are killed at random moments; how many were still at work."""
    lose(made)
    n_killed = 0
    chance = random.Random(11)
    words = [
        *without_network(),
        str(BIN / "brain"),
        "rebuild",
        "--seeds",
        str(made.seeds),
        "--vectors",
        str(made.vectors),
    ]
    for _ in range(n):
        child = subprocess.Popen(
            words,
            env=made.env,
            cwd=made.folder,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            child.wait(1 + chance.random() * 12)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            n_killed += 1
        child.wait()
    say(f"{n_killed} of {n} rebuilds were killed at work")
    return n_killed


if __name__ == "__main__":
    main()
