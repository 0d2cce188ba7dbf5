"""`brain topic report`: what acquisition did for a topic, and what is missing."""

from __future__ import annotations

from typing import Any

from brain.common import Db, Json, get_database, print_json


def report(topic: str, /, *, db: Db = None, json: Json = False) -> int:
    """Show per round and source what was new, how many papers have full texts and why the others have none.

    The number of papers still unseen is an estimate by capture and recapture: from how many papers one source alone
    gave, and how many two. Papers that share no word with any of the topic's queries are named, and stay.
    """
    from ingest.acquire.report import topic_report

    with get_database(db).connect() as connection:
        found = topic_report(connection, topic)
    if json:
        print_json(found)
    else:
        for line in lines_of(found):
            print(line)
    return 0


def lines_of(found: dict[str, Any]) -> list[str]:
    """The report for people."""
    lines = [f"{found['topic']}: {found['n_papers']} papers, {found['n_full_texts']} with full text"]
    for entry in found["rounds"]:
        lines.append(f"  {entry['round']}: {entry['n_found']} found, {entry['n_new']} new")
        lines += [f"    {name}: {n['n_found']} found, {n['n_new']} new" for name, n in entry["sources"].items()]
    lines += [
        f"  waits: {row['source']}, {row['query']!r}: {row['outcome']}, {row['detail'] or ''}"
        for row in found["searches"]
        if row["outcome"] in {"throttled", "down", "refused", "nonsense"}
    ]
    unseen = found["n_unseen"]
    lines.append(
        "  still unseen: cannot be estimated, no paper was given by two sources"
        if unseen is None
        else f"  still unseen, at least (Chao): {unseen:g}"
    )
    lines += [
        f"  off the topic, it seems: {row['paper_id']}: {row['title'] or ''} ({', '.join(row['sources'])})"
        for row in found["off_topic"][:50]
    ]
    lines += [f"  no full text: {row['paper_id']}: {row['why']}" for row in found["missing"][:200]]
    return lines
