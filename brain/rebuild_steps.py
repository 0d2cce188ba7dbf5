"""The steps of a rebuild in order: schema, papers, embeddings, files, texts, passages, sources, index, comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brain.common import get_database
from corpus import receipt as receipts
from corpus import vector_index
from corpus.database import Database
from corpus.encoders import EncoderRow, find_active, register_encoder
from corpus.errors import BrainError, InputError
from corpus.passages import Section
from corpus.receipt_compare import Comparison, compare
from corpus.schema import migrate
from corpus.settings import Settings
from corpus.vectors import import_vectors
from embed_worker.cut import Document, cut
from encoders.base import EncoderSpec
from encoders.canary import find_reference
from encoders.load import resolve_spec
from ingest.acquire.run import MakeFetcher
from ingest.decisions import read_decisions
from ingest.http.clock import Clock, SystemClock
from ingest.http.fetcher import Fetcher
from ingest.pipeline import Ingest, Progress, Wanted
from ingest.rebuild import SQL, Rebuild, Rebuilt, begin, end
from ingest.rebuild_fetch import fetch_absent, name_absent
from ingest.store import Store
from sql.files import queries

if TYPE_CHECKING:
    from psycopg import Connection

_CUT_AT_ONCE = 8
_CUT_LEASE_S = 120.0


@dataclass(slots=True)
class Outcome:
    """What a rebuild ended with; `comparison` is None where no receipt lies beside the seed files."""

    report: Rebuilt
    counts: dict[str, int] = field(default_factory=dict)
    n_imported: int = 0
    n_queued: int = 0
    comparison: Comparison | None = None


def run(
    settings: Settings,
    *,
    db: str | None,
    vectors: Path | None,
    is_offline: bool,
    progress: Progress,
    make_fetcher: MakeFetcher = Fetcher,
    clock: Clock | None = None,
) -> Outcome:
    """Rebuild; raises only for what stops everything. May be killed at any moment and run again."""
    database = get_database(db, settings, name="brain rebuild", any_schema=True)
    migrate(database)
    with database.connect(autocommit=True) as connection:
        is_again = begin(connection, settings.seeds_dir)
        encoder = _restore_encoders(connection, settings)
        for part in () if is_again else ("passage", "paper"):
            # Built once, after the load; until then the rows there are are compared exactly.
            vector_index.drop(connection, encoder.encoder_id, part)
    rebuild = Rebuild(database, Store(settings.store_url), settings.seeds_dir, progress)
    outcome = Outcome(rebuild.report)
    documents = rebuild.write_papers()
    if vectors is not None:
        outcome.n_imported = _import(database, vectors, rebuild.report, progress)
    rebuild.write_documents(documents)
    rebuild.read_documents(n_children=settings.extract_children, after_batch=lambda: _cut_all(database))
    if not is_offline and (rebuild.report.absent or rebuild.report.n_waiting):
        _ask_sources(database, settings, rebuild, progress, make_fetcher, clock or SystemClock())
    _cut_all(database)
    with database.connect(autocommit=True) as connection:
        outcome.n_queued = _queue_and_index(connection, encoder.encoder_id, progress)
        old = _find_receipt(settings.seeds_dir, rebuild.report)
        progress.begin("comparing with the receipt", None)
        now = receipts.take(connection)
        outcome.counts = receipts.counts(now)
        outcome.comparison = compare(old, now) if old is not None else None
        if is_offline and old is None:
            name_absent(database, rebuild.report, {})  # no comparison names them
        end(connection, is_whole=outcome.comparison is None or not len(outcome.comparison.missing))
    return outcome


def _restore_encoders(connection: Connection[Any], settings: Settings) -> EncoderRow:
    """The encoder that served; without a decision file the one that `brain init` would take. No weights are needed."""
    active = find_active(connection)
    if active is not None:
        return active
    for row in read_decisions(settings.seeds_dir).get("encoders") or ():
        try:
            spec = EncoderSpec.from_dict({**row, **(row.get("spec") or {})})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"The encoder in {settings.seeds_dir} cannot be read: {error}.",
                mend="Run `brain init --encoder NAME` first.",
            ) from error
        with connection.transaction():
            register_encoder(connection, spec, activate=row.get("state") == "active", canary=row.get("canary"))
    active = find_active(connection)
    if active is None:
        spec = resolve_spec(settings.encoder)
        with connection.transaction():
            active = register_encoder(connection, spec, activate=True, canary=find_reference(spec))
    return active


def _import(database: Database, folder: Path, report: Rebuilt, progress: Progress) -> int:
    shards = sorted(folder.glob("*.npz"))
    progress.begin("vector shards", len(shards))
    n = 0
    for shard in shards:
        with database.connect(autocommit=True) as connection:
            found = import_vectors(connection, [shard], is_index_built=False)
        report.problems += found.problems
        n += found.n_rows
        progress.step(note=shard.name)
    return n


def _cut_all(database: Database) -> None:
    """Cut what has been read, as a worker would."""
    named = queries("jobs")
    with database.connect(autocommit=True) as connection:
        connection.execute(SQL["list_uncut"])
        while jobs := connection.execute(
            "SELECT job_id, lease_token, item_ids[1] FROM job_claim('chunk', NULL, NULL, %s, %s)",
            [_CUT_AT_ONCE, _CUT_LEASE_S],
        ).fetchall():
            with connection.cursor(binary=True) as cursor:
                rows = cursor.execute(named["chunk_read"], {"ids": [job[2] for job in jobs]}).fetchall()
            texts = {
                row[0]: Document(
                    row[0], row[1], row[2], [Section.from_json(each) for each in row[3] or []], row[4] or []
                )
                for row in rows
            }
            for job_id, token, document_id in jobs:
                columns, seconds = cut(texts.get(document_id))
                connection.execute(
                    named["chunk_complete"], {"id": job_id, "token": token, "node_id": 0, "seconds": seconds, **columns}
                )


def _ask_sources(
    database: Database,
    settings: Settings,
    rebuild: Rebuild,
    progress: Progress,
    make_fetcher: MakeFetcher,
    clock: Clock,
) -> None:
    """Full texts that the store has not, and papers that were never acquired: as `brain ingest` gets them."""
    reasons: dict[str, str] = {}
    try:
        reasons = fetch_absent(database, rebuild.store, settings, rebuild.report, progress, make_fetcher)
        rebuild.read_documents(n_children=settings.extract_children, after_batch=lambda: _cut_all(database))
        made = Ingest(database, rebuild.store, settings, progress, make_fetcher=make_fetcher, clock=clock)
        found = made.run(Wanted(is_all_topics=True, has_searches=False))
        rebuild.report.problems += found.problems
    except BrainError as error:
        rebuild.report.problems.append(f"the sources could not be asked: {error}")
    name_absent(database, rebuild.report, reasons)


def _queue_and_index(connection: Connection[Any], encoder_id: int, progress: Progress) -> int:
    connection.execute("SELECT job_enqueue_missing(%s, 100)", [encoder_id])
    progress.begin("vector index", None)
    connection.execute("ANALYZE")
    vector_index.ensure(connection, encoder_id)
    row = connection.execute(
        "SELECT coalesce(sum(n_items), 0) FROM job WHERE encoder_id = %s AND state IN ('waiting', 'running')",
        [encoder_id],
    ).fetchone()
    return int(row[0]) if row else 0


def _find_receipt(folder: Path, report: Rebuilt) -> receipts.Receipt | None:
    if not (folder / receipts.NAME).exists():
        return None
    try:
        return receipts.read(folder)
    except InputError as error:
        report.problems.append(str(error))
        return None
