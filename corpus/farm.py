"""The farm as it is now: what waits, runs, failed and is done, the nodes, and how long the rest will take.

This is the data of `brain status`, `GET /farm` and `brain failures`. It answers within a second however long the queue:
what cannot be counted in time is estimated and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection
from psycopg.errors import QueryCanceled
from psycopg.rows import dict_row

from corpus.nodes import SILENT_S
from sql.files import queries

STAGES = ("fetch", "extract", "chunk", "embed_papers", "embed_passages")
EMBEDS = ("embed_papers", "embed_passages")
COUNT_MS = 500
"""Longest that an exact count may take."""


def status(connection: Connection[Any]) -> dict[str, Any]:
    """`{stages, topics, nodes, verdicts, selftest, eta_s}` as `brain status --json` prints it.

    Stages count items: papers, documents, passages. A stage whose counts are estimates has `is_estimate: true`. Nodes
    are those seen in the last 30 days, each with its state: working, idle, loading, waiting, silent, stopped,
    refused-by-canary. `eta_s` is null while there is nothing to learn it from.
    """
    stages = _stages(connection)
    nodes = list_nodes(connection)
    named = queries("farm")
    with connection.cursor(row_factory=dict_row) as cursor:
        topics = cursor.execute(named["list_topics"]).fetchall()
    verdicts = dict(connection.execute(named["count_verdicts"]).fetchall())
    row = connection.execute(named["find_selftest"]).fetchone()
    return {
        "stages": stages, "topics": topics, "nodes": nodes, "verdicts": verdicts, "selftest": row[0] if row else None,
        "eta_s": _eta(connection, stages, nodes),
    }  # fmt: skip


def _stages(connection: Connection[Any]) -> dict[str, dict[str, Any]]:
    named = queries("farm")
    rows, is_estimate = _counted(connection, "count_jobs", ("count_jobs_waiting_sampled", "count_jobs_not_waiting"))
    live = [row[0] for row in connection.execute(named["list_live_encoders"]).fetchall()]
    stages: dict[str, dict[str, Any]] = {
        stage: {"waiting": 0, "running": 0, "failed": 0, "done": 0} for stage in STAGES
    }
    for kind, encoder_id, state, _, n_items in rows:
        if encoder_id is None or encoder_id in live:
            stages[kind][state] += n_items
    if is_estimate:
        for kind in {row[0] for row in rows}:
            stages[kind]["is_estimate"] = True
    document = connection.execute(named["count_documents"]).fetchone()
    texts, is_rough = _counted(connection, "count_texts", ("count_texts_roughly",))
    assert document is not None
    stages["fetch"]["done"], stages["extract"]["done"], stages["chunk"]["done"] = document
    for stage, n_texts in zip(EMBEDS, texts[0], strict=True):
        left = sum(stages[stage][state] for state in ("waiting", "running", "failed"))
        stages[stage]["done"] = max(0, n_texts * max(1, len(live)) - left)
        if is_rough:
            stages[stage]["is_estimate"] = True
    return stages


def _counted(connection: Connection[Any], exact: str, rough: Sequence[str]) -> tuple[list[Any], bool]:
    """The exact rows, or the rough ones when the exact take too long; and whether they are rough."""
    named = queries("farm")
    try:
        with connection.transaction():
            before = connection.execute("SELECT current_setting('statement_timeout')").fetchone()
            assert before is not None
            connection.execute("SELECT set_config('statement_timeout', %s, true)", [str(COUNT_MS)])
            rows = connection.execute(named[exact]).fetchall()
            # Inside a caller's transaction the setting would live on.
            connection.execute("SELECT set_config('statement_timeout', %s, true)", [before[0]])
            return rows, False
    except QueryCanceled:
        return [row for name in rough for row in connection.execute(named[name]).fetchall()], True


def list_nodes(connection: Connection[Any]) -> list[dict[str, Any]]:
    """The nodes, workers first, each with the state that a person should see."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(queries("farm")["list_nodes"]).fetchall()
    for row in rows:
        for column in ("first_seen_at", "last_seen_at", "last_error_at"):
            row[column] = row[column].isoformat() if row[column] else None
        row["silent_s"] = round(row["silent_s"], 1)
        if row["state"] not in {"stopped", "refused-by-canary"} and row["silent_s"] > SILENT_S:
            row["state"] = "silent"
        row["rate"] = {
            minutes: 0.0
            if row["state"] in {"silent", "stopped", "refused-by-canary"}
            else row["rate"].get(minutes, 0.0)
            for minutes in ("1", "10", "60")
        }
    return rows


def _eta(
    connection: Connection[Any], stages: Mapping[str, Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]]
) -> list[float] | None:
    """Seconds until everything is embedded, as a range from the slowest to the fastest rate that was seen."""
    n_left = sum(stages[stage][state] for stage in EMBEDS for state in ("waiting", "running"))
    n_uncut = stages["chunk"]["waiting"] + stages["chunk"]["running"]
    if n_uncut:
        n_cut = stages["chunk"]["done"]
        n_passages = stages["embed_passages"]["done"] + n_left
        n_left += n_uncut * (n_passages / n_cut if n_cut else 40)
    if not n_left:
        return [0.0, 0.0]
    rates: list[float] = [
        sum(node["rate"][minutes] for node in nodes if node["role"] == "worker") for minutes in ("1", "10", "60")
    ]
    hour = connection.execute(queries("farm")["rate_of_hour"]).fetchone()
    if hour and hour[0]:
        rates.append(float(hour[0]))
    seen = [rate for rate in rates if rate > 0]
    if not seen or rates[0] == rates[1] == 0:
        return None
    return [round(n_left / (max(seen) * 1.1), 1), round(n_left / (min(seen) * 0.9), 1)]


def list_failures(connection: Connection[Any], most: int = 10_000) -> list[dict[str, Any]]:
    """`[{id, kind, paper_id, file, reason, class, n_attempts, at, detail}]`, the newest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(queries("farm")["list_failures"], {"most": most}).fetchall()
    for row in rows:
        row["at"] = row["at"].isoformat() if row["at"] else None
    return rows


def retry_failures(connection: Connection[Any], ids: Sequence[int] | None = None) -> list[int]:
    """Send failed jobs back to the queue, all of them without `ids`; returns those that were sent."""
    values = {"ids": list(ids) if ids is not None else None}
    return [row[0] for row in connection.execute(queries("farm")["retry_failures"], values).fetchall()]
