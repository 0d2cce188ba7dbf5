"""Text recognition as an optional extra, through OCRmyPDF and Tesseract: off unless asked for, and marked."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from corpus.errors import BrainError

HOW_TO_INSTALL = "install OCRmyPDF and Tesseract to read it (pip install ocrmypdf; apt install tesseract-ocr)"


class RecognitionFailed(BrainError):
    """Text recognition is not installed, or gave nothing."""


def recognise(content: bytes, scratch: Path, seconds: float) -> bytes:
    """Return the PDF with a text layer that was recognised from its pages; raises RecognitionFailed.

    Working files lie below `scratch`, which whoever called removes.
    """
    command = _command()
    if command is None:
        raise RecognitionFailed("text recognition is not installed.", mend=HOW_TO_INSTALL)
    source, target = scratch / "in.pdf", scratch / "out.pdf"
    source.write_bytes(content)
    arguments = [
        "--force-ocr",
        "--output-type",
        "pdf",
        "--optimize",
        "0",
        "--jobs",
        "1",
        "--quiet",
        str(source),
        str(target),
    ]
    try:
        done = subprocess.run(
            [*command, *arguments], capture_output=True, timeout=seconds, check=False,
            env={**os.environ, "TMPDIR": str(scratch)},  # its own working files go with `scratch`, also when it is killed
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RecognitionFailed(f"text recognition took longer than {seconds:g} seconds.") from None
    except OSError as error:
        raise RecognitionFailed(f"text recognition cannot be started: {error}.", mend=HOW_TO_INSTALL) from error
    if done.returncode != 0 or not target.exists():
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RecognitionFailed(f"text recognition failed (status {done.returncode}): {(words or [''])[-1][:200]}")
    return target.read_bytes()


def _command() -> list[str] | None:
    found = shutil.which("ocrmypdf")
    if found:
        return [found]
    return [sys.executable, "-m", "ocrmypdf"] if importlib.util.find_spec("ocrmypdf") else None
