import asyncio
import json

import pytest
from psycopg import errors

from corpus import vector_index
from search_server import tune as tune_module
from search_server.audit import Audit
from search_server.tune import Measured, NothingToTune, tune
from tests.search.corpus import embed, in_step, load, params


def rows(n):
    return [
        {"_id": f"p{i}", "title": f"Paper {i}", "text": f"word{i % 17} word{i % 5} word{i % 29} about number {i}"}
        for i in range(n)
    ]


def measure_as(monkeypatch, is_missed, index_ms, exact_ms):
    """Scans by the index find one row where `is_missed(width, ef_search)`, and all scans take the times given."""
    real = tune_module._run

    async def run(pool, how, questions, encoder_id, width, settings):
        found, _ = await real(pool, how, questions, encoder_id, width, settings)
        if how == "exact":
            return found, exact_ms
        return ([row[:1] for row in found] if is_missed(width, settings.ef_search) else found), index_ms(width)

    monkeypatch.setattr(tune_module, "_run", run)


async def test_tune_stores_what_it_chose_with_the_evidence(database):
    load(database, rows(150))
    embed(database)
    with database.connect() as connection:
        connection.execute("""INSERT INTO setting (name, value) VALUES ('search', '{"per_list": 30}')""")
    chosen = await tune(database, n_questions=10)
    assert chosen["evidence"]["n_passages"] == 150
    assert {row["width"] for row in chosen["evidence"]["measured"]} == {1, 3, 40}
    with database.connect() as connection:
        value, evidence = connection.execute("SELECT value, evidence FROM setting WHERE name = 'search'").fetchone()
    assert value == {"per_list": 30, "ef_search": chosen["ef_search"], "exact_below": chosen["exact_below"]}
    assert json.loads(json.dumps(evidence))["at"]


async def test_widths_that_an_exact_scan_answers_faster_are_measured_once(database, monkeypatch):
    """By the index they take the longest of all, and ever longer the further it searches."""
    load(database, rows(150))
    embed(database)
    measure_as(monkeypatch, lambda width, ef: width == 1 and ef < 100, lambda width: 9.0 if width == 40 else 5.0, 5.0)
    chosen = await tune(database, n_questions=10, store=False)
    assert chosen["ef_search"] == 100
    measured = [(row["width"], row["ef_search"]) for row in chosen["evidence"]["measured"]]
    assert [ef for width, ef in measured if width == 40] == [40]
    assert [ef for width, ef in measured if width == 1] == [40, 60, 80, 100]


@pytest.mark.parametrize(("right_from", "ef_search"), [(60, 60), (80, 80), (100, 40)])
async def test_a_filter_may_ask_for_twice_the_search_but_no_more(database, monkeypatch, right_from, ef_search):
    """An exact scan would answer it too, many times slower; but every question pays for a longer search."""
    load(database, rows(150))
    embed(database)
    monkeypatch.setattr(tune_module, "LEAST_EXACT", 1)
    measure_as(monkeypatch, lambda width, ef: width == 3 and ef < right_from, lambda _: 5.0, 9.0)
    chosen = await tune(database, n_questions=10, store=False)
    assert chosen["ef_search"] == ef_search
    assert (chosen["exact_below"] >= 50) is (right_from == 100)


@pytest.mark.parametrize(
    ("measured", "crossing"),
    [
        ({1: (2, 90), 40: (20, 9), 500: (200, 4)}, (1_900, 4_000)),  # equally fast between 1,500 and 60,000 rows
        ({1: (2, 90), 3: (3, 60), 40: (20, 35), 500: (140, 33)}, (600, 750)),
        ({1: (2, 90), 3: (3, 60), 40: (20, 35)}, (200, 200)),  # the index is always the faster one
        ({1: (3, 2), 3: (4, 2), 40: (9, 1)}, (60_000, 60_000)),  # and here never
    ],
)
def test_the_crossing_lies_where_both_scans_take_as_long(measured, crossing):
    rows = [Measured(width, 40, 1.0, index, exact, 60_000 // width) for width, (index, exact) in measured.items()]
    assert crossing[0] <= tune_module._crossing(rows) <= crossing[1]


def test_a_width_that_the_index_misses_is_scanned_exactly():
    rows = [Measured(w, 40, recall, 1, 5, 60_000 // w) for w, recall in ((1, 1.0), (3, 1.0), (40, 0.9))]
    assert 1_500 < tune_module._crossing(rows) < 20_000


async def test_the_longest_search_that_is_tried_for_filters_is_twice_the_first(database, monkeypatch):
    load(database, rows(150))
    embed(database)
    measure_as(monkeypatch, lambda width, ef: width == 3 or (width == 1 and ef < 120), lambda _: 5.0, 9.0)
    chosen = await tune(database, n_questions=10, store=False)
    assert chosen["ef_search"] == 120
    assert max(row["ef_search"] for row in chosen["evidence"]["measured"]) == 200


async def test_nothing_is_tuned_while_the_passages_have_no_index(database):
    load(database, rows(150))
    embed(database)
    with database.connect(autocommit=True) as connection:
        vector_index.drop(connection, 1, "passage")
    with pytest.raises(NothingToTune, match="no whole vector index"):
        await tune(database)


async def test_the_binary_index_is_tuned_as_it_is_asked(database):
    load(database, rows(150))
    embed(database)
    with database.connect(autocommit=True) as connection:
        assert vector_index.switch_kind(connection, 1, "binary")
    chosen = await tune(database, n_questions=10, store=False)
    assert chosen["ef_search"] >= 400, "a binary scan keeps its candidates"
    assert min(row["recall"] for row in chosen["evidence"]["measured"]) > 0.9, "by exact scores, as the truth is"


async def test_too_little_to_tune(database):
    load(database, rows(3))
    embed(database)
    with pytest.raises(NothingToTune):
        await tune(database)


async def test_servers_take_the_stored_setting_up(database, service):
    with database.connect() as connection:
        connection.execute(
            """INSERT INTO setting (name, value) VALUES ('search', '{"ef_search": 222, "per_list": 33}')"""
        )
    await service.state.refresh()
    assert service.state.scan.ef_search == 222
    assert service.state.tuned.per_list == 33


async def test_the_audit_samples_questions_and_raises_ef_below_its_target(database, service, monkeypatch):
    load(database, rows(60))
    embed(database)
    await in_step(service)
    assert service.audit.report()["recall_at_20"] is None
    await service.search(params("word3 about number"))
    assert await service.audit.look() == 1.0
    assert service.audit.report()["n_samples"] == 1
    assert await service.audit.look() is None
    audit = Audit(service.pool, service.state)
    before = service.state.scan.ef_search
    audit._recalls.extend([0.5] * 20)
    audit._raise_if_needed(service.state.scan)
    assert service.state.scan.ef_search > before
    assert audit.report()["ef_search_raised_to"] == service.state.scan.ef_search


async def test_the_audit_counts_any_of_equal_texts(database, service):
    same = [{"_id": f"s{n}", "title": "", "text": "word3 about number seven, the same for all"} for n in range(60)]
    load(database, [*rows(20), *same])
    embed(database)
    await in_step(service)
    for _ in range(3):
        await service.search(params("word3 about number"))
        assert await service.audit.look() == 1.0


async def test_a_look_of_the_audit_that_fails_is_counted(database, service, monkeypatch):
    audit = Audit(service.pool, service.state, every_s=0.01)
    looked = asyncio.Event()

    async def fail():
        looked.set()
        raise errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(audit, "look", fail)
    keeping = asyncio.create_task(audit.keep())
    async with asyncio.timeout(10):
        await looked.wait()
        while not audit.report()["n_failed"]:
            await asyncio.sleep(0)
    keeping.cancel()
