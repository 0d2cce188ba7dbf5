"""Topics in the database, and the export of every paper into seed files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from ingest.decisions import write_decisions
from ingest.seeds import SeedFile, entry_of, find_seed_file, seed_path, write_seed_file
from sql import files

SQL = files.queries("topics")


def write_topic(connection: Connection[Any], seed: SeedFile) -> None:
    """Bring the topic's row to what the seed file's first line says."""
    if seed.topic is None:
        return
    known = {"topic", "title", "description", "queries", "fetched_at"}
    connection.execute(
        SQL["upsert_topic"],
        {
            "name": seed.topic, "title": seed.meta.get("title"), "description": seed.meta.get("description"),
            "queries": json.dumps(seed.meta.get("queries") or [], ensure_ascii=False),
            "meta": json.dumps({k: v for k, v in seed.meta.items() if k not in known}, ensure_ascii=False),
        },
    )  # fmt: skip


def list_topics(connection: Connection[Any]) -> list[dict[str, Any]]:
    """Name, title and number of papers of every topic."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(SQL["list_topics"]).fetchall()


def export_seeds(
    connection: Connection[Any], folder: Path, *, only: Collection[str | None] | None = None
) -> dict[str, int]:
    """Write every paper of the database into the seed files of its topics; returns the number of papers per file.

    A topic's first line is kept as the file has it; entries that the database does not know (not fetched yet) stay.
    With `only` the files of these topics alone are written (None: papers without one).
    """
    by_topic: dict[str | None, dict[str, dict[str, Any]]] = defaultdict(dict)
    identifiers, documents, topics = (
        _by_paper(connection, "select_identifiers"),
        _documents(connection),
        _topics(connection),
    )
    with connection.transaction(), connection.cursor("seed_export", row_factory=dict_row) as cursor:
        for row in cursor.execute(SQL["select_papers"]):
            pk = row["paper_pk"]
            if only is not None and not any(topic in only for topic in topics.get(pk) or [None]):
                continue
            entry = entry_of(row, identifiers.get(pk, []), documents.get(pk, []))
            for topic in topics.get(pk) or [None]:
                if only is not None and topic not in only:
                    continue
                by_topic[topic][row["paper_id"]] = entry
    written: dict[str, int] = {}
    for topic in connection.execute(SQL["select_topic_names"]).fetchall():
        if only is None or topic[0] in only:
            by_topic.setdefault(topic[0], {})
    for topic, entries in by_topic.items():
        seed = (find_seed_file(folder, topic) if topic is not None else None) or SeedFile(
            seed_path(folder, topic), topic
        )
        if topic is not None:
            known = _meta(connection, topic)
            seed.meta = {**known, **seed.meta, **({"fetched_at": known["fetched_at"]} if only is not None else {})}
        seed.entries = [*_unknown_entries(connection, seed, entries), *entries.values()]
        write_seed_file(seed)
        written[seed.path.name] = len(entries)
    write_decisions(connection, folder)
    return written


def _unknown_entries(
    connection: Connection[Any], seed: SeedFile, entries: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Entries of the file that no paper of the database stands for: they wait to be acquired."""
    from ingest.seeds import read_entry

    kept: list[dict[str, Any]] = []
    hashes = {e.get("sha256") for e in entries.values()}
    for entry in seed.entries:
        try:
            read = read_entry(entry, seed.path.parent.parent)
        except Exception:
            kept.append(entry)
            continue
        if read.record is not None:
            if read.record.paper_id in entries:
                continue
            row = connection.execute(SQL["find_key"], {"paper_id": read.record.paper_id}).fetchone()
            if row is None or row[0] not in entries:
                kept.append(entry)
        elif read.sha256 not in hashes or read.sha256 is None:
            is_known = read.path is not None and any(e.get("file_name") == read.path.name for e in entries.values())
            is_known = is_known or (
                read.url is not None and any(e.get("pdf_url") == read.url for e in entries.values())
            )
            if not is_known:
                kept.append(entry)
    return kept


def _meta(connection: Connection[Any], topic: str) -> dict[str, Any]:
    row = connection.execute(SQL["select_topic"], [topic]).fetchone()
    if row is None:
        return {}
    title, description, queries, meta, fetched_at = row
    return {
        "topic": topic, "title": title, "description": description, "queries": queries,
        "fetched_at": (fetched_at or datetime.now(UTC)).isoformat(timespec="seconds"), **meta,
    }  # fmt: skip


def _by_paper(connection: Connection[Any], query: str) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for pk, kind, value in connection.execute(SQL[query]):
        found[pk].append((kind, value))
    return found


def _topics(connection: Connection[Any]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for pk, name in connection.execute(SQL["select_paper_topics"]):
        found[pk].append(name)
    return found


def _documents(connection: Connection[Any]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    with connection.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute(SQL["select_documents"]):
            found[row.pop("paper_pk")].append(row)
    return found
