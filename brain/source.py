"""`brain source parse`: what an adapter reads in a stored payload."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from corpus.errors import SourceError, UsageError


def parse(
    name: str, file: str, /, *files: str, status: int | None = None, content_type: str = "", url: str = ""
) -> None:
    """Print the works that a source's adapter reads in stored payloads, one JSON object a line.

    An error that the payload holds is printed as one line with `outcome`, `detail` and `retry_after_s`; an empty
    search prints nothing. Both are successes of this command.

    Parameters
    ----------
    name
        The source, such as `openalex` or `europe-pmc`.
    file
        The payload, `-` for standard input.
    files
        More payloads of the same source.
    status
        The HTTP status that came with it; without one the content decides.
    content_type
        The content type that came with it.
    url
        The address that was asked, where the payload alone does not tell what it is about.

    """
    for line in parse_lines(name, [file, *files], status=status, content_type=content_type, url=url):
        print(line)


def parse_lines(
    name: str, files: list[str], *, status: int | None = None, content_type: str = "", url: str = ""
) -> Iterator[str]:
    """Give the lines that `parse` prints.

    Raises UsageError for an unknown source, and for a file that cannot be read.
    """
    from ingest.sources import SOURCES
    from ingest.sources.base import Access, Answer

    if name not in SOURCES:
        near = difflib.get_close_matches(name, SOURCES, n=1, cutoff=0.4)
        raise UsageError(f"There is no source {name!r}.", mend=f"Use {near[0] if near else ', '.join(SOURCES)}.")
    source = SOURCES[name](Access())
    for file in files:
        try:
            works = source.parse(Answer(_read(file), status, content_type, url)).works
        except SourceError as error:
            yield json.dumps(
                {"outcome": error.outcome, "detail": error.what, "retry_after_s": error.retry_after_s},
                ensure_ascii=False,
            )
            continue
        for work in works:
            yield json.dumps(work.to_json(), ensure_ascii=False)


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.", mend="Give the path of a payload.") from error
