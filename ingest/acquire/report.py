"""What acquisition did for a topic: rounds, sources, full texts, what is missing and why, and how much is still unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import dict_row

from corpus.errors import UsageError
from ingest.acquire.desk import SQL
from ingest.fulltext.letters import content_words
from ingest.sources.arxiv import without_operators

_STEM: Final = 5


def estimate_unseen(captures: dict[int, int]) -> float | None:
    """Papers of the topic that no source has given yet, by Chao's lower bound from those that one or two sources gave.

    f1 (f1 - 1) / (2 (f2 + 1)), the bias-corrected form (Chao 1987, Biometrics 43:783; Chao and Chiu 2016). `captures`
    maps a number of sources to the papers that so many gave. None while fewer than two sources have given anything in
    common: then nothing can be said.
    """
    f1, f2 = captures.get(1, 0), captures.get(2, 0)
    if not any(n > 1 and count for n, count in captures.items()):
        return None
    return round(f1 * (f1 - 1) / (2 * (f2 + 1)), 1)


def is_off_topic(text: str, queries: Sequence[str]) -> bool:
    """Whether a text shares no word with any query, words being one that begin with the same five letters.

    Sources search full texts and guess, so that a stranger among what they give is told and not thrown away.
    """
    asked = {word[:_STEM] for query in queries for word in content_words(without_operators(query))}
    return bool(asked) and asked.isdisjoint(word[:_STEM] for word in content_words(text))


def topic_report(connection: Connection[Any], topic: str) -> dict[str, Any]:
    """Everything that `brain topic report` shows. Raises UsageError for a topic that the database does not have."""
    with connection.cursor(row_factory=dict_row) as cursor:
        if cursor.execute(SQL["find_topic"], [topic]).fetchone() is None:
            raise UsageError(f"There is no topic {topic!r}.", mend="`brain seed list` names the topics.")
        values = {"topic": topic}
        counts = cursor.execute(SQL["report_counts"], values).fetchone() or {}
        rounds = cursor.execute(SQL["report_rounds"], values).fetchall()
        missing = cursor.execute(SQL["report_missing"], values).fetchall()
        searches = cursor.execute(SQL["report_searches"], values).fetchall()
        found = cursor.execute(SQL["report_found"], values).fetchall()
    queries = sorted({row["query"] for row in searches})
    off_topic = [
        {"paper_id": row["paper_id"], "title": row["title"], "sources": row["sources"]}
        for row in found
        if is_off_topic(f"{row['title'] or ''} {row['abstract'] or ''}", queries)
    ]
    captures = dict(connection.execute(SQL["report_captures"], values).fetchall())
    by_round: dict[str, dict[str, Any]] = {}
    for row in rounds:
        entry = by_round.setdefault(row["round"], {"round": row["round"], "n_found": 0, "n_new": 0, "sources": {}})
        entry["n_found"] += row["n_found"]
        entry["n_new"] += row["n_new"]
        entry["sources"][row["source"]] = {"n_found": row["n_found"], "n_new": row["n_new"]}
    return {
        "topic": topic, **counts, "rounds": list(by_round.values()), "searches": searches,
        "n_by_sources": {str(n): count for n, count in sorted(captures.items())}, "n_unseen": estimate_unseen(captures),
        "n_off_topic": len(off_topic), "off_topic": off_topic, "missing": missing,
    }  # fmt: skip


def sources_today(connection: Connection[Any]) -> dict[str, dict[str, Any]]:
    """Today's counts of each source that was ever asked, and its last answer whenever that was."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["select_today"]).fetchall()
    return {row.pop("source"): row for row in rows}
