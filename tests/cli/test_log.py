"""The log of a running program: whoever reads it may go away."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
import structlog

from corpus.command import set_up_log


@pytest.fixture(autouse=True)
def _own_configuration():
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_a_closed_stderr_ends_no_work(monkeypatch):
    closed, opened = io.StringIO(), io.StringIO()
    closed.close()
    set_up_log()
    log = structlog.get_logger()
    monkeypatch.setattr(sys, "stderr", closed)
    log.warning("nobody_hears_this")
    monkeypatch.setattr(sys, "stderr", opened)
    log.warning("somebody_hears_this")
    assert "somebody_hears_this" in opened.getvalue()


def test_a_broken_pipe_ends_no_work():
    code = (
        "import structlog; from corpus.command import set_up_log; set_up_log(); log = structlog.get_logger()\n"
        "for i in range(1000): log.warning('said', number=i)\n"
        "print('all done', flush=True)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stderr:
        found = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr, check=False, text=True
        )
    assert found.stdout == "all done\n"
