"""`brain encode`: the embedding of each line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json, say

if TYPE_CHECKING:
    from corpus.settings import Settings
    from encoders.base import EncoderSpec


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
    from contextlib import nullcontext

    from corpus.errors import InputError
    from encoders.lines import encode_lines, iter_lines
    from encoders.load import load_encoder, resolve_spec

    try:
        source = nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    settings = get_settings()
    spec = resolve_spec(encoder) if encoder else _active_spec(db, settings)
    with source as stream:
        model = load_encoder(spec, cache=settings.cache_dir, progress=_tell)
        try:
            for vector in encode_lines(model, iter_lines(stream), kind="query" if query else "document"):
                if json:
                    print_json([round(float(x), 8) for x in vector])
                else:
                    print(" ".join(f"{x:+.4f}" for x in vector[:8]), "…")
        finally:
            model.close()
    return 0


def _tell(what: str, done: int, total: int) -> None:
    if done in {0, total}:
        say(what)


def _active_spec(db: str | None, settings: Settings) -> EncoderSpec:
    """The encoder that the database serves; BRAIN_ENCODER where there is no database yet."""
    from corpus.database import Database
    from corpus.encoders import find_active
    from encoders.base import EncoderSpec
    from encoders.load import resolve_spec

    database = Database.named(db, settings)
    if database.embedded is None or database.embedded.is_initialised:
        with get_database(db, settings).connect() as connection:
            active = find_active(connection)
        if active is not None:
            return EncoderSpec.from_dict(active.spec)
    return resolve_spec(settings.encoder)
