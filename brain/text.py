"""`brain text FILE`: what extraction makes of a file, for people and (with --json) for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


def show_text(file: Path, *, json_output: bool = False, ocr: bool = False) -> int:
    """Print what extraction makes of a file; returns the exit code. A refused file is an answer: 0."""
    from ingest.text.extract import extract_file

    if not file.is_file():
        print(f"{file}: no such file. Give the path of a PDF, HTML, XML, Markdown or text file.", file=sys.stderr)
        return EXIT_FAILED
    extraction = extract_file(file, is_ocr=ocr)
    if json_output:
        json.dump(extraction.to_json(), sys.stdout, ensure_ascii=True)
        print()
    else:
        from brain.text_view import render

        print(render(file.name, extraction))
    return EXIT_DONE


def text(
    file: Path,
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON for programs.")] = False,
    ocr: Annotated[bool, Parameter(negative=(), help="Read scanned pages by OCR (needs the extra).")] = False,
) -> int:
    """Show what extraction makes of a file: its text with page and section marks, or why there is none.

    Example: `brain text paper.pdf`. It needs neither a database nor an encoder.
    """
    return show_text(file, json_output=json, ocr=ocr)


def main() -> int:
    """Run the command alone: python -m brain.text FILE [--json] [--ocr]."""
    words = sys.argv[1:]
    flags = {word for word in words if word.startswith("--")}
    files = [word for word in words if not word.startswith("--")]
    if len(files) != 1 or flags - {"--json", "--ocr"}:
        print("usage: python -m brain.text FILE [--json] [--ocr]", file=sys.stderr)
        return EXIT_USAGE
    return show_text(Path(files[0]), json_output="--json" in flags, ocr="--ocr" in flags)


if __name__ == "__main__":
    sys.exit(main())
