"""What tests share: where the real papers and collections lie, what to do when they do not, a free port."""

import os
import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("BRAIN_TEST_SHARED") or ROOT.parent / "shared")


def shared(*parts: str) -> Path:
    """A path below the shared data; skips the test when it is missing, fails it when CI is set."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        reason = f"{path} is missing: this test reads real papers, collections or recordings beside the checkout"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
