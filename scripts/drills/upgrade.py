"""A rolling upgrade for real: the previous schema's programs run while the schema is upgraded, and are started beside it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
from common import ROOT, Drill, drill, finish, say

PORT = 5951


def main() -> None:
    """Install the old code, fill a database with it, upgrade under its feet."""
    parser = argparse.ArgumentParser(prog="scripts/drill upgrade")
    parser.add_argument("--old", help="a commit; else the last one before the schema changed")
    wanted = parser.parse_args()
    commit = wanted.old or git("log", "-1", "--format=%h", "--", "sql/migrations") + "^"
    with drill("hashing") as made:
        old = made.folder / "old"
        old.mkdir()
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "x", "-C", str(old)], input=archive, check=True)
        say(f"the old code is that of {git('log', '-1', '--format=%h %s', commit)}")
        result = upgrade(made, Code(made, old), Code(made, ROOT))
    finish(result, bool(result.pop("is_good")))


def git(*words: str) -> str:
    """What git says, in one line."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


class Code:
    """The programs of one version, on the drill's home."""

    def __init__(self, made: Drill, folder: Path) -> None:
        self.env = {**made.env, "PYTHONPATH": str(folder)}
        self.folder = made.folder

    def run(self, module: str, *words: str) -> tuple[int, str]:
        """Exit code, and what it said on stderr; a program that does not end within a minute is stopped with 124."""
        try:
            done = subprocess.run(
                self._words(module, words), env=self.env, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, ""
        return done.returncode, done.stderr.strip()

    def start(self, module: str, *words: str) -> subprocess.Popen[str]:
        """A program that goes on running."""
        return subprocess.Popen(
            self._words(module, words), env=self.env, cwd=self.folder, stderr=subprocess.PIPE, text=True
        )

    def _words(self, module: str, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-c", f"from {module}.cli import main; main()", *words]


def upgrade(made: Drill, old: Code, new: Code) -> dict[str, object]:
    """The whole drill; `is_good` says whether all went as it must."""
    rows = made.folder / "rows.jsonl"
    write(rows, 0, 300)
    load = ("ingest", "--jsonl", str(rows), "--prefix", "drill")
    for words in (("init",), load):
        code, said = old.run("brain", *words)
        if code:
            sys.exit(f"the old code cannot {words[0]}: {said[-2000:]}")
    too_old = {name: new.run(*words) for name, words in starts().items()}
    worker, server = old.start("embed_worker"), old.start("search_server", "--port", str(PORT))
    before = wait_answer("snails")
    migrated = new.run("brain", "init")
    write(rows, 300, 600)
    loaded = new.run("brain", *load)
    after = wait_answer("number 555 word555")
    embedded = wait_embedded(made)
    states = {"worker": worker.poll(), "server": server.poll()}
    for child in (worker, server):
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
        child.kill()
    too_new = {name: old.run(*words) for name, words in starts().items()}
    drained, _ = new.run("embed_worker", "--drain")
    refuses = all(code == 5 and said.count("\n") == 0 for code, said in (*too_old.values(), *too_new.values()))
    return {
        "today's programs beside the old schema": too_old, "answers_before": before, "brain init": migrated,
        "ingest after it": loaded[0], "the old server, running": after, "the old worker embedded all": embedded,
        "ended": states, "the old programs beside today's schema": too_new, "drain": drained,
        "is_good": refuses and before == after == 200 and embedded and set(states.values()) == {None} and drained == 0
        and migrated[0] == loaded[0] == 0,
    }  # fmt: skip


def starts() -> dict[str, tuple[str, ...]]:
    """The programs of a farm, as they are started."""
    return {
        "embed-worker": ("embed_worker", "--drain"), "search-server": ("search_server", "--port", str(PORT + 1)),
        "brain search": ("brain", "search", "snails"),
    }  # fmt: skip


def write(path: Path, first: int, last: int) -> None:
    """Rows that are found by their number."""
    lines = [
        json.dumps({"_id": str(n), "title": f"Snails, number {n}", "text": f"word{n} of slow snails"})
        for n in range(first, last)
    ]
    path.write_text("\n".join(lines) + "\n")


def wait_answer(question: str) -> int:
    """The status of the server's first answer that has a hit, or of its last one."""
    status, end = 0, time.monotonic() + 30
    url = f"http://127.0.0.1:{PORT}/brain_search?q={question.replace(' ', '+')}&k=3"
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                status, body = answer.status, json.load(answer)
            if body["hits"] and question.rsplit(maxsplit=1)[-1] in json.dumps(body["hits"][0]):
                return status
        except urllib.error.HTTPError as error:
            status = error.code
        except OSError:
            status = 0
        time.sleep(0.2)
    return status


def wait_embedded(made: Drill) -> bool:
    """Whether everything is embedded within a while."""
    sys.path.insert(0, str(ROOT))
    from corpus.embedded import EmbeddedServer

    end = time.monotonic() + 40
    query = "SELECT count(*) FROM passage p WHERE NOT EXISTS (SELECT FROM passage_embedding e WHERE e.text_sha256 = p.text_sha256)"
    with psycopg.connect(EmbeddedServer(made.home / "db").conninfo, autocommit=True) as connection:
        while time.monotonic() < end:
            row = connection.execute(query).fetchone()
            if row is not None and row[0] == 0:
                return True
            time.sleep(0.2)
    return False


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
