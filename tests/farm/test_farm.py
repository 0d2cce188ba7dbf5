"""What `brain status`, GET /farm and `brain failures` show."""

from __future__ import annotations

import json

import psycopg
import pytest

from corpus import farm
from tests.farm.support import add_document, add_passages, check_whole, drain
from tests.farm.test_worker import _Failing, _loader


@pytest.fixture
def connection(database):
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        yield connection


async def test_stages_count_items_and_end_as_done(database, connection):
    add_passages(connection, [f"text {i}" for i in range(100)])
    add_document(connection, "One short document.")
    before = farm.status(connection)
    assert set(before) >= {"stages", "topics", "nodes", "verdicts", "eta_s"}
    assert before["stages"]["embed_passages"] == {"waiting": 100, "running": 0, "failed": 0, "done": 0}
    assert before["stages"]["chunk"] == {"waiting": 1, "running": 0, "failed": 0, "done": 1}
    assert before["eta_s"] is None
    await drain(database)
    after = farm.status(connection)
    assert after["stages"]["embed_passages"] == {"waiting": 0, "running": 0, "failed": 0, "done": 101}
    assert after["stages"]["chunk"]["done"] == 2
    assert (after["eta_s"], after["verdicts"]) == ([0.0, 0.0], {"ok": 2})
    (node,) = after["nodes"]
    assert (node["name"], node["state"], node["n_texts"], node["encoder"]) == ("tester", "stopped", 102, "hashing")
    json.dumps(after)


def test_a_count_that_takes_too_long_is_an_estimate_and_says_so(database, connection, monkeypatch):
    connection.execute(
        "INSERT INTO job (kind, encoder_id, item_ids) SELECT 'embed_passages', 1, ARRAY[g] FROM generate_series(1, 50000) g"
    )
    connection.execute("ANALYZE job")
    with database.connect() as within:  # in a transaction of the caller's own
        assert farm.status(within)["stages"]["embed_passages"]["waiting"] == 50_000
        assert within.execute("SELECT current_setting('statement_timeout')").fetchone() == ("0",)
        monkeypatch.setattr(farm, "COUNT_MS", 1)
        stage = farm.status(within)["stages"]["embed_passages"]
    assert stage["is_estimate"]
    assert stage["waiting"] == pytest.approx(50_000, rel=0.5)


def _node(connection, name, state="working", silent="1 second", rate=0.0):
    connection.execute(
        "INSERT INTO node (name, role, host, pid, version, state, last_seen_at, rate) "
        "VALUES (%s, 'worker', 'h', 1, '1', %s, clock_timestamp() - %s::interval, %s)",
        [name, state, silent, json.dumps({"1": rate, "10": rate, "60": rate * 2})],
    )


def test_a_node_without_a_sign_of_life_is_silent_and_counts_for_nothing(connection):
    _node(connection, "alive", rate=10.0)
    _node(connection, "dead", silent="2 minutes", rate=1000.0)
    _node(connection, "gone", state="stopped", silent="2 minutes")
    add_passages(connection, [f"text {i}" for i in range(100)])
    found = farm.status(connection)
    assert {n["name"]: n["state"] for n in found["nodes"]} == {"alive": "working", "dead": "silent", "gone": "stopped"}
    low, high = found["eta_s"]
    assert low == pytest.approx(100 / 22, abs=0.1)
    assert high == pytest.approx(100 / 9, abs=0.1)


async def test_failures_are_listed_explained_and_retried(database, connection):
    def fail(n, texts, found):
        if any("POISON" in text for text in texts):
            raise ValueError("cannot read this")
        return found

    add_passages(connection, ["good", "POISON one", "POISON two"])
    assert await drain(database, loader=_loader(_Failing(fail))) == 3
    failures = farm.list_failures(connection)
    assert len(failures) == 2
    for each in failures:
        assert {"id", "kind", "paper_id", "file", "reason", "class", "n_attempts", "at"} <= set(each)
        assert (each["kind"], each["class"]) == ("embed_passages", "poison")
        assert each["paper_id"].startswith("file:")
        assert "cannot read this" in each["reason"]
    json.dumps(failures)
    assert farm.retry_failures(connection, [failures[0]["id"]]) == [failures[0]["id"]]
    assert len(farm.list_failures(connection)) == 1
    assert len(farm.retry_failures(connection)) == 1
    assert await drain(database) == 0
    assert check_whole(database) == 3
