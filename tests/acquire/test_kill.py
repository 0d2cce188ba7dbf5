"""A run that is killed goes on where it was: nothing lost, no download repeated."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ingest.acquire import fetch_jobs
from tests.acquire.internet import Internet, serving
from tests.acquire.support import ingest, state, write_topic
from tests.support import ROOT

pytestmark = pytest.mark.shared
_PROGRAM = """
import sys
from pathlib import Path
from corpus.database import Database
from corpus.dburl import DatabaseUrl
from ingest.acquire import fetch_jobs
from tests.acquire.internet import Internet
from tests.acquire.support import ingest
fetch_jobs.LEASE_S = 1.0
ingest(Database(DatabaseUrl(conninfo=sys.argv[1])), Path(sys.argv[2]), Internet(base_url=sys.argv[3]))
"""
_FILES = ("arxiv.org/pdf/", "aclanthology.org/")


def _run_until(internet, database, folder, is_moment):
    """Start a run and kill it at the first request for which it is the moment."""
    process: list[subprocess.Popen] = []

    def kill(url, n):
        if is_moment(url, n) and process[0].poll() is None:
            time.sleep(0.5)  # what has been delivered by now has arrived
            process[0].send_signal(signal.SIGKILL)
            process[0].wait()
            raise ConnectionResetError  # nobody is there to be answered

    internet.on_request = kill
    words = [sys.executable, "-c", _PROGRAM, database.conninfo, str(folder), internet.base_url]
    process.append(
        subprocess.Popen(
            words,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    code = process[0].wait(120)
    internet.on_request = lambda _url, _n: None
    return code


def test_kills_cost_nothing(database, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_jobs, "LEASE_S", 1.0)
    write_topic(tmp_path)
    with serving(Internet()) as internet:
        files: list[str] = []

        def nth_file(n):
            def is_moment(url, _):
                if url.startswith(_FILES) and "pdf" in url and url not in files:
                    files.append(url)
                return len(files) >= n and url.startswith(_FILES)

            return is_moment

        assert _run_until(internet, database, tmp_path, lambda url, n: n > 8 and "works" in url) == -signal.SIGKILL
        assert _run_until(internet, database, tmp_path, nth_file(3)) == -signal.SIGKILL
        report = ingest(database, tmp_path, internet)
        assert report.problems == []
        once = {url: n for url, n in internet.delivered.items() if url.startswith(_FILES)}
        assert len(once) == 3
        assert set(once.values()) == {1}, "a file that had arrived was fetched again"
        assert [row[0] for row in state(database)[3]] == ["acl:N18-3011", "arxiv:2007.01282", "arxiv:2203.14465"]
        assert {row[2] for row in state(database)[6]} <= {"ok", "absent"}
