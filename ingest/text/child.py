"""The child process that extracts: reads requests from standard input until it ends, answers on standard output.

Nothing else may reach standard output, so the answer's descriptor is moved away first. An alarm ends a child whose
parent is gone in the middle of a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

from ingest.text.limits import MIB, Limits
from ingest.text.result import Extraction, refuse

_ALARM_GRACE_S = 10.0
_MAPPED_MIB = 512


def main() -> None:
    """Serve requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes where the errors go
    _send(answers, b"")
    for line in sys.stdin.buffer:
        request: dict[str, Any] = json.loads(line)
        limits = Limits(**request["limits"])
        if not request["ocr_scratch"]:  # Tesseract maps more than it uses; the parent watches what is used
            _limit_memory(limits)
        scratch = Path(request["ocr_scratch"]) if request["ocr_scratch"] else None
        signal.setitimer(signal.ITIMER_REAL, (limits.ocr_seconds if scratch else limits.seconds) + _ALARM_GRACE_S)
        outcome = _extract(Path(request["path"]), request["name"], limits, scratch)
        signal.setitimer(signal.ITIMER_REAL, 0)
        with contextlib.suppress(MemoryError):
            _send(answers, json.dumps(outcome.to_json()).encode())
            continue
        _send(answers, json.dumps(refuse("too_large", _memory_reason(limits)).to_json()).encode())


def _extract(path: Path, name: str, limits: Limits, scratch: Path | None) -> Extraction:
    from ingest.text.documents import extract_document

    try:
        return extract_document(path, name, limits, ocr_scratch=scratch)
    except MemoryError:
        return refuse("too_large", _memory_reason(limits))
    except RecursionError:
        return refuse("damaged", "the file is nested too deeply")
    except Exception as error:
        return refuse("damaged", f"cannot be read: {type(error).__name__}: {str(error)[:300]}")


def _memory_reason(limits: Limits) -> str:
    return f"needs more than {limits.memory_mib} MiB of memory"


def _limit_memory(limits: Limits) -> None:
    """Bound the address space, so that one huge allocation fails at once instead of filling the machine."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return  # elsewhere the parent's watch stands alone
    # Resident memory is what is promised; libraries map more than they touch.
    wanted = (limits.memory_mib + _MAPPED_MIB) * MIB
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _send(answers: BinaryIO, payload: bytes) -> None:
    answers.write(struct.pack(">I", len(payload)) + payload)
    answers.flush()


if __name__ == "__main__":
    main()
