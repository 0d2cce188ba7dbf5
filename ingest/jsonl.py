"""Reads JSONL files, plain or gzip: joined members are one file, a cut-off file is said to be one.

Only LF ends a line. Whatever else looks like a line end inside a string (U+2028, U+0085, …) is a character.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from corpus.errors import InputError

_BLOCK = 1 << 20
_MAX_LINE = 256 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line that holds something: its number (from 1) and either its value or what is wrong with it."""

    number: int
    value: Any = None
    error: str | None = None


def iter_lines(path: Path) -> Iterator[Line]:
    """The lines of a JSONL file, blank ones left out.

    Raises InputError, after the whole lines before, when the file cannot be read, is damaged or cut off.
    """
    number = 0
    for raw in _iter_raw(path):
        number += 1
        line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        line = line.strip(b" \t\r\n")
        if not line:
            continue
        try:
            yield Line(number, json.loads(line.decode("utf-8"), parse_constant=_refuse_constant))
        except UnicodeDecodeError:
            yield Line(number, error="it is not UTF-8")
        except RecursionError:
            yield Line(number, error="it is nested too deeply")
        except ValueError as error:
            yield Line(number, error=f"it is not JSON ({error})")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _iter_raw(path: Path) -> Iterator[bytes]:
    """Lines as bytes; the last one only when the file is whole."""
    pending: list[bytes] = []  # pieces of the line that goes on, joined once: a line without end costs no copies
    n_pending = 0
    for block in _iter_blocks(path):
        *whole, rest = block.split(b"\n")
        if whole:
            yield b"".join([*pending, whole[0]])
            yield from whole[1:]
            pending, n_pending = [], 0
        pending.append(rest)
        n_pending += len(rest)
        if n_pending > _MAX_LINE:
            raise InputError(f"{path} has a line of more than {_MAX_LINE >> 20} MB.", file=str(path))
    if n_pending:
        yield b"".join(pending)


def _iter_blocks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(2)
            file.seek(0)
            yield from _iter_gunzipped(file, path) if magic == b"\x1f\x8b" else iter(lambda: file.read(_BLOCK), b"")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.", file=str(path)) from error


def _iter_gunzipped(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """All members of a gzip file; zero bytes behind the last one are padding (RFC 1952 leaves them to the reader)."""
    member = zlib.decompressobj(wbits=31)
    is_inside = False
    pending = b""
    while True:
        data = pending or file.read(_BLOCK)
        pending = b""
        if not data:
            break
        if not is_inside:
            data = data.lstrip(b"\0")
            if not data:
                continue
            member = zlib.decompressobj(wbits=31)
            is_inside = True
        try:
            plain = member.decompress(data, _BLOCK)
            if plain:
                yield plain
            while member.unconsumed_tail:
                plain = member.decompress(member.unconsumed_tail, _BLOCK)
                yield plain
        except zlib.error as error:
            raise InputError(
                f"{path} is damaged gzip ({error}); the lines before the damage were loaded.",
                mend="Fetch or compress it again and load it once more.", file=str(path),
            ) from error  # fmt: skip
        if member.eof:
            is_inside = False
            pending = member.unused_data
    if is_inside:
        raise InputError(
            f"{path} ends in the middle of its gzip data: it was cut off; the whole lines before were loaded.",
            mend="Fetch it again and load it once more; what is loaded already is not loaded twice.", file=str(path),
        )  # fmt: skip
