"""`brain text FILE`: what extraction makes of a file, for people and (with --json) for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from brain.common import Json, print_json


def text(
    file: Annotated[Path, Parameter(help="A PDF, HTML page, JATS XML, Markdown or plain text; told by its content.")],
    /,
    *,
    ocr: Annotated[
        bool, Parameter(negative=(), help="Recognise pages without a usable text layer (needs OCRmyPDF).")
    ] = False,
    json: Json = False,
) -> int:
    """Show the text of a file with page and section marks, or the verdict why it has none.

    A refused file is an answer too: exit code 0.
    """
    from corpus.errors import InputError
    from ingest.text.extract import extract_file

    if not file.is_file():
        raise InputError(f"{file}: no such file.", mend="Give the path of a file.", file=str(file))
    extraction = extract_file(file, is_ocr=ocr)
    if json:
        print_json(extraction.to_json())
    else:
        from brain.text_view import render

        print(render(file.name, extraction))
    return 0


def main() -> None:
    """Run this command alone: python -m brain.text FILE [--json] [--ocr]."""
    from cyclopts import App

    app = App(name="brain text")
    app.default(text)
    raise SystemExit(app())


if __name__ == "__main__":
    main()
