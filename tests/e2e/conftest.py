"""Programs as people start them, in a home of their own, with the hashing encoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, free_port

BIN = Path(sys.executable).parent


class Bench:
    """A home, and programs that run on it until the test ends."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "BRAIN_"))}
        self.env = {**kept, "BRAIN_HOME": str(home), "BRAIN_ENCODER": "hashing", "BRAIN_SEEDS": str(home / "seeds")}
        if "BRAIN_CACHE" in os.environ:
            self.env["BRAIN_CACHE"] = os.environ["BRAIN_CACHE"]
        self.processes: list[subprocess.Popen[bytes]] = []
        self.log = (home / "programs.log").open("ab")
        self.base = ""

    def run(self, *words: object, code: int | None = 0, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(BIN / str(words[0])), *map(str, words[1:])],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT,
        )
        assert code is None or done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(BIN / str(words[0])), *map(str, words[1:])], env=self.env, stdout=self.log, stderr=self.log, cwd=ROOT
        )
        self.processes.append(process)
        return process

    def serve(self, *words: object) -> subprocess.Popen[bytes]:
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        process = self.start(*(words or ("search-server",)), "--port", port)
        self.until(lambda: self.get("/readyz")[0] == 200, 90)
        return process

    def get(self, path: str, timeout: float = 30, **params: object) -> tuple[int, Any]:
        query = urllib.parse.urlencode({k: v for k, v in params.items() if v is not None}, doseq=True)
        try:
            with urllib.request.urlopen(f"{self.base}{path}{'?' + query if query else ''}", timeout=timeout) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")
        except OSError:
            return 0, None

    def ask(self, question: str, **params: object) -> list[dict[str, Any]]:
        status, body = self.get("/brain_search", q=question, **params)
        assert status == 200, body
        return body["hits"]

    def until(self, condition, seconds: float = 60):
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.1)
        return value

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()


@pytest.fixture
def bench(home: Path) -> Iterator[Bench]:
    bench = Bench(home)
    yield bench
    bench.close()
