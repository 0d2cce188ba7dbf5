"""One extractor child as its parent sees it: start, ask, watch, replace.

Requests are JSON lines on the child's standard input; answers are four bytes of length and JSON on its standard
output. The parent watches clock and memory, since a PDF library in C can be stopped by nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ingest.text.limits import MIB, Limits
from ingest.text.result import Extraction, refuse

_RECYCLE_AFTER_FILES = 300
_RECYCLE_ABOVE_BYTES = 350 * MIB
_WATCH_EVERY_S = 0.1
_START_SECONDS = 60.0  # importing the PDF library on a cold, busy disk is no fault of the file
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


class _ChildFailure(Exception):
    def __init__(self, outcome: Extraction) -> None:
        self.outcome = outcome
        super().__init__(outcome.reason)


class ExtractorChild:
    """A child process that extracts one file at a time; started when first asked, ended by `close`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._n_files = 0
        self._is_closed = False

    def extract(self, path: Path, *, name: str, is_ocr: bool = False) -> Extraction:
        """Return what the child makes of the file, or the verdict that its end or its limits give."""
        with contextlib.ExitStack() as stack:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="brain-ocr-")) if is_ocr else None
            return self._extract(path, name, scratch)

    def _extract(self, path: Path, name: str, scratch: str | None) -> Extraction:
        try:
            process = self._running()
            request = {
                "path": str(path.absolute()),
                "name": name,
                "limits": self._limits.to_json(),
                "ocr_scratch": scratch,
            }
            self._send(process, request)
            answer = self._read_answer(process, self._limits.ocr_seconds if scratch else self._limits.seconds)
            outcome = Extraction.from_json(json.loads(answer))
        except _ChildFailure as failure:
            self._kill()
            return failure.outcome
        except BaseException:
            self._kill()
            raise
        self._n_files += 1
        if self._n_files >= _RECYCLE_AFTER_FILES or _resident_bytes(process.pid) > _RECYCLE_ABOVE_BYTES:
            self._kill()
        return outcome

    def close(self) -> None:
        """End the child, also one that is at work."""
        self._is_closed = True
        self._kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise _ChildFailure(refuse("timeout", "the extractor was closed before it came to this file"))
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._kill()
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
        environment["PYTHONPATH"] = os.pathsep.join(p for p in (_PACKAGE_ROOT, os.environ.get("PYTHONPATH")) if p)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ingest.text.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        self._n_files = 0
        return self._process

    def _send(self, process: subprocess.Popen[bytes], request: dict[str, object]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise _ChildFailure(_died(process)) from None

    def _read_answer(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        start_seconds = 0.0 if self._n_files else _START_SECONDS
        deadline = time.monotonic() + seconds + start_seconds
        received = bytearray()
        wanted: int | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while wanted is None or len(received) < wanted + 4:
                if not selector.select(_WATCH_EVERY_S):
                    self._watch(process, deadline, seconds)
                    continue
                block = os.read(descriptor, 1 << 20)
                if not block:
                    raise _ChildFailure(_died(process))
                received += block
                while wanted is None and len(received) >= 4:
                    wanted = struct.unpack(">I", received[:4])[0]
                    if wanted == 0:  # the child is up; the clock of the file starts now
                        del received[:4]
                        wanted = None
                        deadline = time.monotonic() + seconds
        return bytes(received[4:])

    def _watch(self, process: subprocess.Popen[bytes], deadline: float, seconds: float) -> None:
        if time.monotonic() > deadline:
            raise _ChildFailure(refuse("timeout", f"took longer than {seconds:g} seconds"))
        if _resident_bytes(process.pid) > self._limits.memory_mib * MIB:
            raise _ChildFailure(refuse("too_large", f"needs more than {self._limits.memory_mib} MiB of memory"))

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # The child leads its own session, so that what it started (OCR) goes with it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _resident_bytes(pid: int) -> int:
    import psutil

    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0


def _died(process: subprocess.Popen[bytes]) -> Extraction:
    status = process.wait()
    if status == -signal.SIGALRM:
        return refuse("timeout", "took too long")
    if status == -signal.SIGKILL:
        return refuse("too_large", "the system ended the reader: out of memory")
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return refuse("damaged", f"the reader crashed on this file ({how})")
