"""`brain sources`: every source, whether it is on, what it lacks, and how often it may be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from brain.common import Db, Json, get_settings, print_json

_TODAY = (
    "last_answer",
    "last_at",
    "n_asked",
    "n_found",
    "n_new",
    "n_absent",
    "n_throttled",
    "n_down",
    "n_refused",
    "n_nonsense",
)
_PROBE = {"doi": "10.1101/1", "arxiv": "2005.11401", "acl": "J89-1001"}


def sources(*, db: Db = None, json: Json = False) -> None:
    """Show the sources: on or off, why, what a key or an address would add, the limits, and what asking them gave today.

    The counts come from the database where it answers; the rest needs none.
    """
    rows = list_sources(os.environ, find_today(db))
    if json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['name']:17} {'on' if row['is_on'] else 'off':4} {row['limit']}")
        for word in row["lacks"]:
            print(f"{'':22} {word}")
        if row["today"]["last_answer"]:
            counts = ", ".join(f"{name[2:]} {n}" for name, n in row["today"].items() if name.startswith("n_") and n)
            print(f"{'':22} today: {counts or 'not asked'}; last answer: {row['today']['last_answer']}")


def find_today(db: str | None) -> dict[str, dict[str, Any]]:
    """Today's counts, or none: a server that does not run is not started for them, and one that is away is no error."""
    from corpus.database import Database
    from corpus.errors import DatabaseError, EmbeddedServerError

    settings = get_settings()
    try:
        database = Database.named(db, settings, application_name="brain sources")
        if database.embedded is not None and database.embedded.find_pid() is None:
            return {}
        from ingest.acquire.report import sources_today

        with database.connect() as connection:
            return sources_today(connection)
    except (DatabaseError, EmbeddedServerError):
        if db is not None:
            raise
        return {}


def list_sources(
    environment: Mapping[str, str], today: Mapping[str, Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Give one row a source, by name: `is_on`, `lacks`, `limit`, `rules`, and today's counts where there are any.

    `environment` holds the contact address and the keys; `today` maps names to the counts of the day.
    """
    from ingest.sources import KEYED, key_setting, make_sources

    rows: list[dict[str, Any]] = []
    for name, source in make_sources(environment).items():
        can = [source.search("x"), source.lookup(_PROBE)]
        counts = (today or {}).get(name, {})
        first = source.hosts[0]
        rows.append(
            {
                "name": name,
                "is_on": any(request is not None for request in can),
                "lacks": list(source.lacks()),
                "key": key_setting(name) if name in KEYED else None,
                "limit": f"{first.n_requests} in {first.per_s:g} s, {first.concurrency} at once",
                "rules": [
                    {
                        "host": r.host,
                        "n_requests": r.n_requests,
                        "per_s": r.per_s,
                        "concurrency": r.concurrency,
                        "rule": r.rule,
                    }
                    for r in source.hosts
                ],
                "today": {word: counts.get(word) for word in _TODAY},
            }
        )
    return rows
