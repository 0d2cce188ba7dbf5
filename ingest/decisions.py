"""What no source can give again, written beside the seed files: settings, encoders, refusals, daily counts, citation links.

`_decisions.json` and `_citations.tsv` are written whole, by rename, in a stable order, so that version control shows what
changed. A rebuild reads them back; what the new database has decided already is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from corpus.errors import InputError
from corpus.receipt import OWN_SETTINGS as RECEIPT_OWN
from sql import files

SQL = files.queries("rebuild")
DECISIONS = "_decisions.json"
CITATIONS = "_citations.tsv"
OWN_SETTINGS = tuple(RECEIPT_OWN)
"""Settings that belong to one database, and mean nothing in another."""
_BATCH = 5000


def write_decisions(connection: Connection[Any], folder: Path) -> None:
    """Write both files; a file that would be empty is not made, but an old one is emptied."""
    with connection.cursor(row_factory=dict_row) as cursor:
        found = {
            "settings": {
                row["name"]: {"value": row["value"], "evidence": row["evidence"]}
                for row in cursor.execute(SQL["select_settings"], {"own": list(OWN_SETTINGS)}).fetchall()
            },
            "encoders": cursor.execute(SQL["select_encoders"]).fetchall(),
            "refused": cursor.execute(SQL["select_refused"]).fetchall(),
            "apart": [list(row.values()) for row in cursor.execute(SQL["select_apart"]).fetchall()],
            "daily_counts": cursor.execute(SQL["select_daily"]).fetchall(),
        }
    replace_text(folder / DECISIONS, [json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)])
    with connection.transaction(), connection.cursor("citations") as cursor:
        lines = ("\t".join(row) for row in cursor.execute(SQL["select_citations"]))
        first = next(lines, None)
        if first is not None or (folder / CITATIONS).exists():
            replace_text(folder / CITATIONS, [first, *lines] if first is not None else [])


def replace_text(path: Path, lines: Iterable[str]) -> None:
    """Write a file whole: a reader sees the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    fresh.replace(path)


def read_decisions(folder: Path) -> dict[str, Any]:
    """What `_decisions.json` holds; empty without one. Raises InputError for a file that cannot be read."""
    path = folder / DECISIONS
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {error}.", mend="Take an older copy of it.", file=str(path)
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is not one JSON object.", mend="Take an older copy of it.", file=str(path))
    return found


def restore_settings(connection: Connection[Any], decisions: dict[str, Any]) -> None:
    """Bring settings, merges undone and daily counts back. Idempotent."""
    for pair in decisions.get("apart") or ():
        connection.execute(SQL["insert_apart"], list(pair))
    for name, row in (decisions.get("settings") or {}).items():
        if name not in OWN_SETTINGS:
            evidence = row.get("evidence")
            connection.execute(
                SQL["insert_settings"],
                {
                    "name": name,
                    "value": json.dumps(row.get("value")),
                    "evidence": None if evidence is None else json.dumps(evidence),
                },
            )
    for row in decisions.get("daily_counts") or ():
        connection.execute(SQL["insert_daily"], {**row, "by_topic": json.dumps(row["by_topic"])})


def restore_refusals(connection: Connection[Any], decisions: dict[str, Any]) -> None:
    """Bring back which files were refused, once their papers are there. Idempotent."""
    for row in decisions.get("refused") or ():
        connection.execute(SQL["insert_refused"], {"sha256": None, **row})


def restore_citations(connection: Connection[Any], folder: Path) -> int:
    """Bring the links between papers back; how many lines the file has. Idempotent."""
    path = folder / CITATIONS
    if not path.exists():
        return 0
    n = 0
    batch: list[list[str]] = []

    def flush() -> None:
        columns = list(zip(*batch, strict=True))
        values = {"citing": list(columns[0]), "cited": list(columns[1]), "sources": list(columns[2])}
        connection.execute(SQL["insert_citations"], values)
        batch.clear()

    with path.open(encoding="utf-8") as file:
        for line in file:
            parts = line.rstrip("\n").split("\t")
            if len(parts) == 3:
                batch.append(parts)
                n += 1
            if len(batch) == _BATCH:
                flush()
    if batch:
        flush()
    return n
