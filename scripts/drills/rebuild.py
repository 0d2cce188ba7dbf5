"""The database folder is deleted: `brain rebuild` must bring an equal receipt back, also when it is killed on the way."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from common import BIN, ROOT, Drill, drill, finish, need, say, without_network


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
        n_killed = killed(made, wanted.kills, plain_s)
        rebuild(made, is_fresh=False)
        after_kills = made.compare()
        lose(made)
        shutil.rmtree(made.home / "store")
        words = ("brain", "rebuild", "--vectors", str(made.vectors), "--offline", "--json")
        lost = json.loads(made.run(*words, ok=(3,)).stdout)
        named = {each["file_name"] for each in lost["comparison"]["missing"]["documents"]}
        made.run("brain", "ingest", "--pdfs", str(need("papers")), ok=(0, 3))
        back = from_sources(made)
        result = {
            "rebuild_s": round(plain_s, 1), "missing": plain["n_missing"], "changed": plain["n_changed"],
            "kills": n_killed, "missing_after_kills": after_kills["n_missing"], "changed_after_kills": after_kills["n_changed"],
            "named_without_store_and_network": len(named), "from_sources": back,
        }  # fmt: skip
        is_good = (
            n_killed == wanted.kills
            and plain["is_equal"]
            and after_kills["is_equal"]
            and len(named) == 44
            and back["is_good"]
        )
        finish(result, bool(is_good))


def from_sources(made: Drill) -> dict[str, object]:
    """Database and store are gone, the replayed internet of the tests is there: what it offers is back, the rest named."""
    sys.path.insert(0, str(ROOT))
    from ingest.seeds import SeedFile, seed_path, write_seed_file
    from tests.acquire.internet import ACL, ARXIV, Internet, serving

    papers = [(f"arxiv:{own}", paper) for own, paper in ARXIV.items()] + [
        (f"acl:{own}", paper) for own, paper in ACL.items()
    ]
    offered = {hashlib.sha256(paper.path.read_bytes()).hexdigest() for _, paper in papers}
    with serving(Internet()) as internet:
        made.env["BRAIN_SOURCES_BASE_URL"] = internet.base_url
        # The corpus knows them by their identifiers, as one that was acquired does.
        seed = SeedFile(
            seed_path(made.seeds, "offered"), "offered", {"title": "Offered"}, [{"id": own} for own, _ in papers]
        )
        write_seed_file(seed)
        made.run("brain", "ingest", "offered", ok=(0, 3))
        made.run("embed-worker", "--drain", ok=(0, 3))
        made.run("brain", "seed", "export")
        made.run("brain", "receipt")
        lose(made)
        shutil.rmtree(made.home / "store", ignore_errors=True)
        began = time.monotonic()
        done = made.run("brain", "rebuild", "--vectors", str(made.vectors), "--json", ok=(3,))
        seconds = time.monotonic() - began
    said = json.loads(done.stdout)
    missing = {each["sha256"]: each["file_name"] for each in said["comparison"]["missing"]["documents"]}
    back = said["counts"]["documents"]
    unnamed = sorted(
        name for name in missing.values() if not any(line.startswith(f"{name} of ") for line in said["problems"])
    )
    absent = sorted(missing[sha256] for sha256 in offered & missing.keys())
    return {
        "seconds": round(seconds), "offered": len(offered), "full_texts_back": back, "offered_but_not_back": absent,
        "named": len(missing), "missing_but_not_named": unnamed, "papers_missing": len(said["comparison"]["missing"]["papers"]),
        "is_good": not absent and not unnamed and bool(missing) and back >= len(offered),
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


def killed(made: Drill, n: int, plain_s: float) -> int:
    """Rebuilds that are killed at work, each going on from where the one before was; one that ends is begun anew."""
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
    for _ in range(5 * n):
        if n_killed == n:
            break
        child = subprocess.Popen(
            words,
            env=made.env,
            cwd=made.folder,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            child.wait(chance.uniform(0.1, 0.6) * plain_s)
            lose(made)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            n_killed += 1
        child.wait()
    say(f"{n_killed} rebuilds were killed at work")
    return n_killed


if __name__ == "__main__":
    main()
