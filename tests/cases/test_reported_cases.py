"""Faults that users of systems like this one met, each as a small input with the right outcome."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, SHARED, shared

BRAIN = Path(sys.executable).parent / "brain"
CASES = sorted(path.parent.name for path in (SHARED / "cases").glob("*/check.py")) or [
    "00-no-cases-beside-this-checkout"
]
NEEDS_ENCODER = {"13-the-tail-counts"}


@pytest.mark.shared
@pytest.mark.parametrize("case", CASES)
def test_case(case):
    check = shared("cases", case, "check.py")
    environment = dict(os.environ)
    if case in NEEDS_ENCODER:
        environment.setdefault("BRAIN_ENCODER", "all-mpnet-base-v2")
    done = subprocess.run(
        [sys.executable, str(check), "--brain", str(BRAIN)],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
