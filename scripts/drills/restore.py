"""A backup comes back equal with little memory and little /dev/shm, and one flipped byte is refused."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import time

from common import BIN, Drill, drill, finish, say


def main() -> None:
    """Load, back up, damage, lose, restore."""
    parser = argparse.ArgumentParser(prog="scripts/drill restore")
    parser.add_argument("--shm-mb", type=int, default=64)
    parser.add_argument("--memory-gb", type=int, default=2)
    parser.add_argument("--encoder", default="hashing")
    wanted = parser.parse_args()
    with drill(wanted.encoder) as made:
        made.load()
        made.run("brain", "receipt")
        question = ("brain", "search", "Which drug lowers blood pressure?", "-k", "20", "--json")
        before = [hit["paper_id"] for hit in json.loads(made.run(*question).stdout)["hits"]]
        made.run("brain", "backup", str(made.folder / "copies"))
        (copy,) = (made.folder / "copies").glob("brain-*")
        refused = damaged(made, copy)
        made.run("brain", "db", "stop")
        shutil.rmtree(made.home / "db")
        began = time.monotonic()
        made.run("brain", "restore", str(copy), prefix=confined(wanted.shm_mb, wanted.memory_gb))
        seconds = time.monotonic() - began
        found = made.compare()
        after = [hit["paper_id"] for hit in json.loads(made.run(*question).stdout)["hits"]]
        result = {
            "flipped_bytes_refused": refused, "restore_s": round(seconds, 1), "missing": found["n_missing"],
            "changed": found["n_changed"], "same_20_hits": before == after,
        }  # fmt: skip
        finish(result, refused == "3 of 3" and bool(found["is_equal"]) and before == after)


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


def confined(shm_mb: int, memory_gb: int) -> tuple[str, ...]:
    """Words that run a command as in a small container: its own /dev/shm, and a limit of memory where cgroups allow it."""
    script = f'mount -t tmpfs -o size={shm_mb}m tmpfs /dev/shm && exec "$@"'
    words: tuple[str, ...] = ("unshare", "--mount", "sh", "-c", script, "sh")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        say("this user may not mount: /dev/shm stays as it is")
        words = ()
    if (
        shutil.which("systemd-run")
        and subprocess.run(["systemctl", "is-system-running"], capture_output=True, check=False).stdout
    ):
        limited = ("systemd-run", "--scope", "--quiet", f"--property=MemoryMax={memory_gb}G")
        if subprocess.run([*limited, "true"], capture_output=True, check=False).returncode == 0:
            return (*limited, *words)
    say(f"this machine gives no cgroup of {memory_gb} GB: memory is not limited; {BIN} needs what it needs")
    return words


if __name__ == "__main__":
    main()
