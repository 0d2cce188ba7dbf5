"""Embeddings in and out of the database by content: vector shards that any corpus with the same texts can use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from psycopg import Connection
from psycopg.rows import class_row

from corpus import vector_index
from corpus.encoders import EncoderRow, get_active
from corpus.errors import EncoderRefused, InputError
from corpus.halfvec import COPY_HEAD, COPY_TAIL, pack_copy_rows, unpack
from corpus.shards import Shard, read_shard, write_shard
from sql.files import queries

ROWS_A_SHARD = 20_000
_COPY_ROWS = 2_000
_MOST_JOBS = 50_000
"""In a longer queue finished jobs are left to the workers, who end them without encoding anything."""

Progress = Callable[[str, int, int], None]


def _silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


_log = structlog.get_logger()


@dataclass(slots=True)
class ImportReport:
    """What an import did; `problems` names each file that was refused, wholly or in part."""

    n_files: int = 0
    n_rows: int = 0
    n_papers: int = 0
    n_passages: int = 0
    n_kept: int = 0
    n_refused: int = 0
    n_scaled: int = 0
    n_unqueued: int = 0
    problems: list[str] = field(default_factory=list)
    exit_code: int = 0
    """0 all taken, 3 something refused, 5 a file of another encoder, 1 nothing could be used."""


def import_vectors(
    connection: Connection[Any], paths: Sequence[Path], progress: Progress = _silent, *, is_index_built: bool = True
) -> ImportReport:
    """Take in shards made by an encoder that this database has.

    Idempotent; each file is all or nothing, apart from rows that are refused. Texts that no paper or passage has yet are
    kept for those that come later.

    The connection must be in autocommit. A file that cannot be used is named in the report and the others are taken.
    Without `is_index_built` an index that was taken away is left to the caller, who loads more before it is built.
    """
    assert connection.autocommit
    report = ImportReport()
    encoders = _list_encoders(connection)
    touched: set[int] = set()
    codes: set[int] = set()
    try:
        for number, path in enumerate(paths):
            progress(f"importing {path.name}", number, len(paths))
            try:
                shard = read_shard(path)
                encoder = _match(path, shard, encoders)
                _write(connection, encoder, shard, report, touched)
            except (InputError, EncoderRefused) as error:
                report.problems.append(str(error))
                codes.add(error.exit_code)
                continue
            report.n_files += 1
            report.n_rows += len(shard.hashes)
            report.n_refused += shard.n_refused
            report.n_scaled += shard.n_scaled
            report.problems += shard.reasons
    finally:
        for encoder_id in touched if is_index_built else ():
            vector_index.ensure(connection, encoder_id, progress)
    for encoder_id in {each.encoder_id for each in encoders}:
        report.n_unqueued += _drop_done_jobs(connection, encoder_id)
    report.exit_code = _exit_code(report, codes)
    return report


def _exit_code(report: ImportReport, codes: set[int]) -> int:
    if not report.problems:
        return 0
    if EncoderRefused.exit_code in codes and not report.n_files:
        return EncoderRefused.exit_code
    return 3 if report.n_files else 1


def _list_encoders(connection: Connection[Any]) -> list[EncoderRow]:
    with connection.cursor(row_factory=class_row(EncoderRow)) as cursor:
        rows = cursor.execute(queries("vectors")["list_identities"]).fetchall()
    if not rows:
        get_active(connection)  # says what to do
    return rows


def _match(path: Path, shard: Shard, encoders: Sequence[EncoderRow]) -> EncoderRow:
    """The encoder of this database that made the shard's vectors."""
    reasons: list[str] = []
    for row in encoders:
        if not (differing := differences(row, shard.encoder)):
            return row
        reasons.append(f"{row.name}: {'; '.join(differing)}")
    raise EncoderRefused(
        f"{path} was made by another encoder than this database has ({' / '.join(reasons)}).",
        mend="Import it into a database with that encoder, or add it with `brain encoder add`.",
    )


def differences(row: EncoderRow, identity: Mapping[str, Any]) -> list[str]:
    """Why vectors labelled `identity` may not stand beside the encoder's; only what changes the numbers counts."""
    theirs = (
        str(identity.get("weights_sha256", "")).lower(),
        identity.get("max_tokens"),
        _prompts(identity.get("prompts")),
    )
    ours = (row.weights_sha256, row.max_tokens, _prompts(row.prompts))
    names = ("weights_sha256", "max_tokens", "prompts")
    return [
        f"{name} is {json.dumps(a)}, not {json.dumps(b)}"
        for name, a, b in zip(names, theirs, ours, strict=True)
        if a != b
    ]


def _prompts(given: object) -> dict[str, str]:
    """Prompts with both keys; `document` is another word for `passage`."""
    known = {str(k): str(v or "") for k, v in given.items()} if isinstance(given, Mapping) else {}
    return {"query": known.get("query", ""), "passage": known.get("passage", known.get("document", ""))}


def _write(
    connection: Connection[Any], encoder: EncoderRow, shard: Shard, report: ImportReport, touched: set[int]
) -> None:
    named = queries("vectors")
    values = {"encoder_id": encoder.encoder_id}
    _copy(connection, shard)
    n_new = connection.execute(named["count_new"], values).fetchone()
    assert n_new is not None
    if encoder.state == "active":
        _drop_dear_indexes(connection, encoder.encoder_id, n_new, touched)
    with connection.transaction():
        report.n_papers += connection.execute(named["write_papers"], values).rowcount
        report.n_passages += connection.execute(named["write_passages"], values).rowcount
        report.n_kept += connection.execute(named["write_imported"], values).rowcount


def _copy(connection: Connection[Any], shard: Shard) -> None:
    connection.execute(queries("vectors")["incoming_make"])
    connection.execute(queries("vectors")["incoming_clear"])
    with connection.cursor() as cursor, cursor.copy(queries("vectors")["incoming_copy"]) as copy:
        copy.write(COPY_HEAD)
        for start in range(0, len(shard.hashes), _COPY_ROWS):
            part = slice(start, start + _COPY_ROWS)
            copy.write(pack_copy_rows(shard.hashes[part], shard.vectors[part]))
        copy.write(COPY_TAIL)
    connection.execute("ANALYZE incoming_embedding")


def _drop_dear_indexes(connection: Connection[Any], encoder_id: int, n_new: tuple[int, int], touched: set[int]) -> None:
    states = vector_index.list_states(connection, encoder_id)
    parts: tuple[tuple[vector_index.Part, int], ...] = (("paper", n_new[0]), ("passage", n_new[1]))
    for part, n in parts:
        if not states.get(part):
            touched.add(encoder_id)
            continue
        leaf = f"{part}_embedding_{encoder_id}"
        row = connection.execute(queries("vectors")["count_leaf"], {"leaf": leaf}).fetchone()
        if vector_index.is_rebuild_cheaper(n, row[0] if row else 0):
            vector_index.drop(connection, encoder_id, part)
            touched.add(encoder_id)


def _drop_done_jobs(connection: Connection[Any], encoder_id: int) -> int:
    """How many items left the queue. Drafts that are complete by now serve, however long it is."""
    named = queries("vectors")
    row = connection.execute(named["count_jobs"], {"encoder_id": encoder_id, "most": _MOST_JOBS}).fetchone()
    if row is None or row[0] >= _MOST_JOBS:
        connection.execute(named["settle_drafts"])
        return 0
    done = connection.execute(named["reslice"], {"encoder_id": encoder_id}).fetchone()
    return done[0] if done else 0


def export_vectors(
    connection: Connection[Any],
    folder: Path,
    *,
    since: Sequence[Path] = (),
    encoder: EncoderRow | None = None,
    progress: Progress = _silent,
) -> list[Path]:
    """Write what is embedded under the encoder (default: the active one) into shards; returns the new files.

    What the shards of the folder, or of the folders and files in `since`, hold already is not written again, so that
    exporting now and then costs what is new; no file that is there is touched. Numbers go on above those in `since`, so
    that all shards may lie in one folder later. Raises InputError where `since` names nothing.
    """
    row = encoder or get_active(connection)
    identity = {
        "name": row.name, "revision": row.revision, "weights_sha256": row.weights_sha256, "max_tokens": row.max_tokens,
        "prompts": row.prompts, "dimension": 768, "normalized": True,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() or c in "-._" else "-" for c in row.name)
    shards = [*_shards_of(since), *folder.glob("*.npz")]
    there = _hashes_there(shards, row)
    written: list[Path] = []
    number = _next_number(shards, stem)
    hashes: list[bytes] = []
    sent: list[bytes] = []
    with connection.transaction(), connection.cursor(name="export", binary=True) as cursor:
        cursor.itersize = 2_000
        cursor.execute(queries("vectors")["export"], {"encoder_id": row.encoder_id})
        for text_sha256, vector in cursor:
            if text_sha256 in there:
                continue
            hashes.append(text_sha256)
            sent.append(vector)
            if len(hashes) == ROWS_A_SHARD:
                written.append(_write_next(folder, stem, number + len(written), identity, hashes, sent))
                progress("exporting", len(written) * ROWS_A_SHARD, 0)
    if hashes:
        written.append(_write_next(folder, stem, number + len(written), identity, hashes, sent))
    return written


def _write_next(
    folder: Path, stem: str, number: int, identity: Mapping[str, Any], hashes: list[bytes], sent: list[bytes]
) -> Path:
    path = folder / f"{stem}-{number:05d}.npz"
    write_shard(path, identity, hashes, unpack(sent))
    hashes.clear()
    sent.clear()
    return path


def _shards_of(since: Sequence[Path]) -> list[Path]:
    """The shards that are named, or lie in the folders that are."""
    found: list[Path] = []
    for path in since:
        if not path.exists():
            raise InputError(
                f"There is no {path}.", mend="--since takes shards, or the folder of an earlier export.", file=str(path)
            )
        found += sorted(path.glob("*.npz")) if path.is_dir() else [path]
    return found


def _next_number(shards: Iterable[Path], stem: str) -> int:
    numbers = [
        int(path.stem[len(stem) + 1 :])
        for path in shards
        if path.stem.startswith(f"{stem}-") and path.stem[len(stem) + 1 :].isdigit()
    ]
    return max(numbers, default=-1) + 1


def _hashes_there(paths: Iterable[Path], row: EncoderRow) -> set[bytes]:
    there: set[bytes] = set()
    for path in paths:
        try:
            with np.load(path, allow_pickle=False) as arrays:
                identity = json.loads(str(arrays["encoder"].item()))
                _ = arrays["vector"]  # numpy reads and checks what is asked for, no more
                if not differences(row, identity):
                    there |= {bytes.fromhex(each) for each in arrays["text_sha256"].tolist()}
        except Exception as error:  # numpy and zipfile raise whatever their parsers meet
            _log.warning(
                "shard_unread",
                file=str(path),
                why=f"{type(error).__name__}: {error}",
                mend="its rows are written again",
            )
    return there
