"""`brain encode`: the embedding of each line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json, say


def encode(
    file: Annotated[Path, Parameter(help="A text file, one text a line; - reads stdin.")] = Path("-"),
    /,
    *,
    query: Annotated[bool, Parameter(negative=(), help="Encode as questions, not as documents.")] = False,
    encoder: Annotated[
        str | None, Parameter(help="Encoder; else the active one of the database, else BRAIN_ENCODER.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Print the embedding of each line, in their order: with --json one list of 768 numbers a line."""
    from corpus.errors import InputError
    from encoders.load import load_encoder, resolve_spec

    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = raw.decode("utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 (byte {error.start}).") from error
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    settings = get_settings()
    spec = resolve_spec(encoder) if encoder else _active_spec(db, settings)
    model = load_encoder(spec, cache=settings.cache_dir, progress=_tell)
    try:
        vectors = model.encode([line.removesuffix("\r") for line in lines], kind="query" if query else "document")
    finally:
        model.close()
    for line, vector in zip(lines, vectors, strict=True):
        if json:
            print_json([round(float(x), 8) for x in vector])
        else:
            print(f"{line[:60]}\t{' '.join(f'{x:+.4f}' for x in vector[:6])} …")
    return 0


def _tell(what: str, done: int, total: int) -> None:
    if done in {0, total}:
        say(what)


def _active_spec(db: str | None, settings):  # noqa: ANN001, ANN202
    """The encoder that the database serves; BRAIN_ENCODER where there is no database yet."""
    from corpus.database import Database
    from corpus.encoders import find_active
    from encoders.base import EncoderSpec
    from encoders.load import resolve_spec

    database = Database.at(db or settings.db, settings.home_dir)
    if database.embedded is None or database.embedded.is_initialised:
        with get_database(db, settings).connect() as connection:
            active = find_active(connection)
        if active is not None:
            return EncoderSpec.from_dict(active.spec)
    return resolve_spec(settings.encoder)
