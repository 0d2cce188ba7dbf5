"""Hundreds of hard files among real papers go through `brain ingest`: each gets its verdict, and nothing is left behind."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
from common import BIN, Drill, drill, finish, need, say

_WANTED = {  # what the manifest of the hard files asks for, and the verdicts (or warnings) that are that
    "accept": ({"ok"}, set()),
    "duplicate": ({"ok"}, set()),
    "refuse": ({"encrypted", "not_pdf", "no_pages", "damaged", "incomplete", "too_large", "timeout"}, set()),
    "needs-ocr": ({"needs_ocr"}, set()),
    "flag": ({"needs_ocr"}, {"low_text_quality"}),
    "accept-or-refuse": ({"ok", "too_large", "timeout", "damaged"}, set()),
    "refuse-or-flag": ({"damaged", "incomplete", "no_pages"}, {"incomplete"}),
}
_MIB = 2**20
_GROWTH_MIB = 40
_MIN_CHARS = 5000  # the shortest real paper has several times as many


def main() -> None:
    """Make the folder, take it in, and look at what became of each file, of the processes and of the memory."""
    parser = argparse.ArgumentParser(prog="scripts/drill texts")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--papers", type=float, default=0.1, help="share of real papers")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    with drill("hashing") as made:
        folder, temporary = made.folder / "files", made.folder / "tmp"
        folder.mkdir()
        temporary.mkdir(mode=0o777)
        made.env["TMPDIR"] = str(temporary)
        came_from = make_folder(folder, wanted.files, wanted.papers, random.Random(wanted.seed))
        say(f"{len(came_from)} files of {len(set(came_from.values()))} kinds")
        made.run("brain", "init")
        watched = ingest(made, folder)
        wrong, kinds = judge(made, came_from)
        table(kinds)
        left = [p.pid for p in psutil.process_iter() if is_ours(p, str(made.home))]
        files = [str(p) for at in (temporary, made.home / "store" / "tmp") if at.exists() for p in at.rglob("*")]
        early, late = watched.parent_at(100), watched.parent_at(wanted.files)
        result: dict[str, Any] = {
            "files": len(came_from), "seconds": round(watched.seconds), "exit_code": watched.exit_code,
            "wrong_verdicts": wrong, "children_left": left, "temporary_files": files[:20],
            "parent_mib_at_100": early, f"parent_mib_at_{wanted.files}": late, "largest_child_mib": watched.child_mib,
        }  # fmt: skip
        is_flat = late - early <= _GROWTH_MIB
        finish(result, watched.exit_code in (0, 3) and not wrong and not left and not files and is_flat)


def make_folder(folder: Path, n: int, share: float, chance: random.Random) -> dict[str, str]:
    """Copies under new names in random order, each of other bytes; the name of each and of the file that it came from."""
    rows = [json.loads(line) for line in (need("papers") / "MANIFEST.jsonl").read_text().splitlines()]
    hard = [row["file"] for row in rows if is_hard(row["file"])]
    real = [row["file"] for row in rows if not is_hard(row["file"])]
    n_real = round(n * share)
    chosen = [hard[k % len(hard)] for k in range(n - n_real)] + [real[k % len(real)] for k in range(n_real)]
    chance.shuffle(chosen)
    came_from: dict[str, str] = {}
    for k, name in enumerate(chosen):
        target = folder / f"{k:04d}-{chance.getrandbits(32):08x}.pdf"
        # White space after the end changes the hash and nothing that a reader of the file sees.
        target.write_bytes((need("papers") / name).read_bytes() + b"\n" + b" " * k + b"\n")
        came_from[target.name] = name
    return came_from


def is_hard(name: str) -> bool:
    """The hard files are named h01 and so on."""
    return name[0] == "h" and name[1:3].isdigit()


@dataclass(slots=True)
class Watched:
    """What was seen of a run: memory of the parent by the number of files that were done, the largest child."""

    seconds: float = 0.0
    exit_code: int = -1
    child_mib: int = 0
    parent_mib: list[tuple[int, int]] = field(default_factory=list)

    def parent_at(self, n_files: int) -> int:
        """The parent's memory in MiB when that many files were done."""
        return next(
            (mib for n, mib in self.parent_mib if n >= n_files), self.parent_mib[-1][1] if self.parent_mib else 0
        )


def ingest(made: Drill, folder: Path) -> Watched:
    """Run `brain ingest --pdfs` and watch it."""
    watched = Watched()
    began = time.monotonic()
    url = made.run("brain", "db", "url").stdout.strip()
    with tempfile.TemporaryFile() as said, psycopg.connect(url, autocommit=True) as connection:
        process = subprocess.Popen(
            [str(BIN / "brain"), "ingest", "--pdfs", str(folder)],
            env=made.env,
            cwd=made.folder,
            stdout=said,
            stderr=said,
        )
        parent = psutil.Process(process.pid)
        while process.poll() is None:
            row = connection.execute("SELECT count(*) FROM document WHERE verdict IS NOT NULL").fetchone()
            try:
                watched.parent_mib.append((row[0] if row else 0, parent.memory_info().rss // _MIB))
                sizes = [child.memory_info().rss // _MIB for child in parent.children(recursive=True)]
            except psutil.Error:
                continue
            watched.child_mib = max([watched.child_mib, *sizes])
            time.sleep(0.25)
    watched.seconds, watched.exit_code = time.monotonic() - began, process.returncode
    return watched


def judge(made: Drill, came_from: dict[str, str]) -> tuple[list[str], dict[str, Counter[str]]]:
    """What is wrong with the verdicts and texts; and the verdicts of each kind of file."""
    rows = [json.loads(line) for line in (need("papers") / "MANIFEST.jsonl").read_text().splitlines()]
    asked = {row["file"]: row["expect"]["action"] for row in rows}
    wrong: list[str] = []
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    texts: dict[str, set[str]] = defaultdict(set)
    seen: set[str] = set()
    url = made.run("brain", "db", "url").stdout.strip()
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT file_name, coalesce(verdict, 'none'), warnings, coalesce(length(text), 0), encode(text_sha256, 'hex'), reason FROM document"
        ).fetchall()
    for name, verdict, warnings, n_chars, digest, reason in found:
        origin = came_from[name]
        seen.add(name)
        kinds[origin][verdict] += 1
        texts[origin].add(digest or "")
        verdicts, flags = _WANTED[asked[origin]]
        if verdict not in verdicts and not (verdict == "ok" and flags & {w.split(":")[0] for w in warnings}):
            wrong.append(f"{name} ({origin}): {verdict} ({reason}), wanted {asked[origin]}")
        elif not is_hard(origin) and n_chars < _MIN_CHARS:
            wrong.append(f"{name} ({origin}): {n_chars} characters of a real paper")
        elif (verdict == "ok") != (n_chars > 0):
            wrong.append(f"{name} ({origin}): {verdict} with {n_chars} characters")
    wrong += [f"{name} ({came_from[name]}): not in the database" for name in came_from if name not in seen]
    wrong += [
        f"{origin}: {len(each)} different texts of equal pages" for origin, each in texts.items() if len(each) > 1
    ]
    return wrong, kinds


def table(kinds: dict[str, Counter[str]]) -> None:
    """Print how many copies of each file got which verdict."""
    for name in sorted(kinds):
        print(f"{name[:60]:60}  {', '.join(f'{n} {verdict}' for verdict, n in kinds[name].most_common())}")


def is_ours(process: psutil.Process, home: str) -> bool:
    """Whether a process is a reader of this drill."""
    try:
        return "ingest.text.child" in process.cmdline() and process.environ().get("BRAIN_HOME") == home
    except psutil.Error:
        return False


if __name__ == "__main__":
    main()
