"""`brain vectors …`: embeddings by content, out of and into a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from brain.common import Db, Json, get_database, print_json, say


def export(
    folder: Path,
    /,
    *,
    since: Annotated[
        list[Path] | None,
        Parameter(negative=(), help="Leave out what these shards, or those of this folder, hold; may be repeated."),
    ] = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Write the active encoder's embeddings into shards below FOLDER; what its shards hold already is not written again.

    An earlier export stays as it is; only new shards are added. With --since they may go into another folder, such as one
    that is carried away: `brain vectors export new --since vectors`.
    """
    from corpus.vectors import export_vectors

    with get_database(db).connect() as connection:
        written = export_vectors(connection, folder, since=since or ())
    if json:
        print_json([str(path) for path in written])
    for path in [] if json else written:
        print(path)
    if not written:
        say(f"{' and '.join(map(str, [*(since or ()), folder]))} hold{'' if since else 's'} every embedding already")
    return 0


def import_(
    *files: Annotated[Path, Parameter(help="Shards (.npz).")],
    db: Db = None,
    json: Json = False,
) -> int:
    """Read embeddings from shards. A shard of another encoder, or a vector that is none, is refused and named."""
    from dataclasses import asdict

    from corpus.errors import UsageError
    from corpus.vectors import import_vectors

    if not files:
        raise UsageError("Name at least one shard.", mend="Example: brain vectors import shards/*.npz")
    with get_database(db).connect(autocommit=True) as connection:
        report = import_vectors(connection, files)
    for problem in report.problems:
        say(problem)
    if json:
        print_json(asdict(report))
    else:
        say(
            f"{report.n_files} of {len(files)} files, {report.n_rows} embeddings: {report.n_papers} for papers, "
            f"{report.n_passages} for passages, {report.n_kept} kept for texts to come"
            + (f", {report.n_refused} refused" if report.n_refused else "")
        )
    return report.exit_code


def index(kind: Literal["halfvec", "binary"], /, *, db: Db = None) -> int:
    """Build the passages' vector index as KIND and let it serve; search goes on meanwhile.

    halfvec: 2 kB a passage. binary: a fifth of that; the nearest 400 by signs are compared exactly. See docs/scale.md.
    """
    from corpus.encoders import get_active
    from corpus.vector_index import switch_kind

    with get_database(db).connect(autocommit=True) as connection:
        is_new = switch_kind(connection, get_active(connection).encoder_id, kind)
    say(f"the passages' index is {kind}" + ("" if is_new else " already"))
    return 0
