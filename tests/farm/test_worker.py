"""A worker from claim to completion, in this process, on a real database."""

from __future__ import annotations

import asyncio

import numpy as np
import psycopg
import pytest

from corpus.errors import (
    BadEmbedding,
    EncoderOutOfMemory,
    EncoderRefused,
    EncoderThrottled,
    EncoderUnavailable,
    UsageError,
)
from corpus.passages import cut_passages
from embed_worker.worker import Worker
from encoders.hashing import HashingEncoder
from tests.farm.support import add_document, add_papers, add_passages, check_whole, drain, one, options, until


async def test_everything_that_waits_is_embedded_once(database):
    with database.connect() as connection:
        add_papers(connection, [f"paper {i} of the reef" for i in range(150)])
        add_passages(connection, [f"passage {i} about kelp" for i in range(300)] + ["the same words"] * 20)
    assert await drain(database) == 0
    assert check_whole(database) == 150 + 301


async def test_a_document_is_cut_exactly_and_queued(database):
    text = "First words. " + " ".join(f"Sentence {i} speaks of corals." for i in range(400))
    with database.connect() as connection:
        document_id = add_document(connection, text, page_starts=[0, 2000, 6000])
    assert await drain(database) == 0
    check_whole(database)
    with psycopg.connect(database.conninfo) as connection:
        rows = connection.execute(
            "SELECT char_start, char_end, text, page_from, page_to FROM passage WHERE document_id = %s ORDER BY ordinal",
            [document_id],
        ).fetchall()
        assert connection.execute("SELECT is_cut FROM document").fetchone() == (True,)
    expected = cut_passages(text, (), [0, 2000, 6000])
    assert [(r[0], r[1], r[3], r[4]) for r in rows] == [
        (e.char_start, e.char_end, e.page_from, e.page_to) for e in expected
    ]
    assert all(text[start:end] == words for start, end, words, *_ in rows)


async def test_cutting_again_keeps_unchanged_passages_and_forgets_the_others(database):
    text = " ".join(f"Sentence {i} speaks of corals." for i in range(400))
    with database.connect() as connection:
        document_id = add_document(connection, text)
    assert await drain(database) == 0
    before = {(i, h) for i, h in _passages(database)}
    changed = text[:4000] + " A new end."
    with database.connect() as connection:
        from tests.farm.support import sha

        connection.execute("UPDATE document SET text = %s, text_sha256 = %s, is_cut = false", [changed, sha(changed)])
        connection.execute("INSERT INTO job (kind, item_ids) VALUES ('chunk', ARRAY[%s::bigint])", [document_id])
    assert await drain(database) == 0
    after = {(i, h) for i, h in _passages(database)}
    assert len(before & after) == 2
    check_whole(database)


def _passages(database):
    with psycopg.connect(database.conninfo) as connection:
        return connection.execute("SELECT passage_id, text_sha256 FROM passage").fetchall()


async def test_what_is_gone_is_skipped(database):
    with database.connect() as connection:
        add_passages(connection, [f"text {i}" for i in range(10)])
        connection.execute("INSERT INTO job (kind, item_ids) VALUES ('chunk', ARRAY[987654321])")
        connection.execute("DELETE FROM passage WHERE ordinal > 5")
    assert await drain(database) == 0
    assert check_whole(database) == 5


class _Failing(HashingEncoder):
    """The hashing encoder, with texts and moments that it fails at."""

    def __init__(self, fail):
        super().__init__()
        self.n_calls = 0
        self._fail = fail

    def encode(self, texts, *, kind="document"):
        self.n_calls += 1
        found = super().encode(texts, kind=kind)
        return self._fail(self.n_calls, list(texts), found)


def _loader(encoder):
    return lambda row, device, cache: encoder


async def test_a_poisonous_text_stands_alone(database):
    def fail(n, texts, found):
        if any("POISON" in text for text in texts):
            raise ValueError("cannot read this")
        return found

    texts = [f"passage {i}" for i in range(63)]
    with database.connect() as connection:
        bad_id = add_passages(connection, [*texts[:20], "POISON", *texts[20:]])[20]
    assert await drain(database, loader=_loader(_Failing(fail))) == 3
    with psycopg.connect(database.conninfo) as connection:
        rows = connection.execute("SELECT state, item_ids, error_class, error, error_detail FROM job").fetchall()
        assert connection.execute("SELECT count(*) FROM passage_embedding").fetchone() == (63,)
    assert len(rows) == 1
    state, items, error_class, error, detail = rows[0]
    assert (state, items, error_class) == ("failed", [bad_id], "poison")
    assert "cannot read this" in error
    assert detail["node"] == "tester"
    assert "Traceback" in detail["stack"]
    assert len(detail["text_sha256"]) == 64


async def test_bad_numbers_are_never_stored(database):
    def fail(n, texts, found):
        for i, text in enumerate(texts):
            if "nan" in text:
                found[i, 5] = np.nan
            if "zero" in text:
                found[i] = 0
            if "long" in text:
                found[i] *= 1.5
        return found

    with database.connect() as connection:
        add_passages(connection, ["good one", "a nan", "good two", "a zero", "a long one", "good three"])
    assert await drain(database, loader=_loader(_Failing(fail))) == 3
    assert one(database, "SELECT count(*) FROM passage_embedding") == 3
    assert (
        one(database, "SELECT count(*) FROM job WHERE state = 'failed' AND n_items = 1 AND error LIKE 'BadEmbedding%%'")
        == 3
    )


async def test_throttling_waits_and_costs_no_attempt(database):
    def fail(n, texts, found):
        if n <= 3:
            raise EncoderThrottled("slow down", retry_after_s=0.05)
        return found

    with database.connect() as connection:
        add_passages(connection, [f"passage {i}" for i in range(10)])
    attempts = []
    encoder = _Failing(fail)
    assert await drain(database, loader=_loader(encoder)) == 0
    assert encoder.n_calls >= 4
    check_whole(database)
    del attempts


async def test_a_batch_that_does_not_fit_is_made_smaller(database):
    def fail(n, texts, found):
        if len(texts) > 3:
            raise EncoderOutOfMemory("too many")
        return found

    with database.connect() as connection:
        add_passages(connection, [f"passage {i}" for i in range(64)])
    assert await drain(database, loader=_loader(_Failing(fail))) == 0
    check_whole(database)


async def test_an_encoder_that_fails_on_everything_blames_no_text(database):
    def fail(n, texts, found):
        if n <= 20:
            raise BadEmbedding("wrong width")
        return found

    with database.connect() as connection:
        add_passages(connection, [f"passage {i}" for i in range(64)])
    assert await drain(database, loader=_loader(_Failing(fail))) == 0
    assert one(database, "SELECT count(*) FROM job") == 0
    check_whole(database)


@pytest.mark.parametrize(
    ("error", "is_draining", "code", "state", "told"),
    [
        (EncoderRefused("canary 1 has cosine 0.5"), True, 5, "refused-by-canary", "canary 1 has cosine 0.5"),
        (EncoderUnavailable("no weights here"), True, 1, "stopped", "no weights here"),
        (UsageError("There is no device 'abacus'."), False, 2, "stopped", "There is no device 'abacus'."),
    ],
    ids=["refused", "cannot be had while draining", "no such device"],
)
async def test_an_encoder_that_does_not_load_ends_the_worker_at_no_cost(
    database, error, is_draining, code, state, told
):
    def loader(row, device, cache):
        raise error

    with database.connect() as connection:
        add_passages(connection, ["a text"])
    assert await drain(database, is_draining=is_draining, loader=loader) == code
    assert one(database, "SELECT state || ': ' || last_error FROM node WHERE name = 'tester'") == f"{state}: {told}"
    assert one(database, "SELECT state || n_attempts FROM job") == "waiting0"


async def test_stopping_gives_everything_back_without_an_attempt(database):
    import threading

    entered, leave = threading.Event(), threading.Event()

    def fail(n, texts, found):
        entered.set()
        leave.wait(20)
        return found

    with database.connect() as connection:
        add_passages(connection, [f"passage {i}" for i in range(640)])
    worker = Worker(database, options(is_draining=False, loader=_loader(_Failing(fail))))
    running = asyncio.create_task(worker.run())
    await until(entered.is_set)
    worker.stop()
    async with asyncio.timeout(10):
        assert await running == 0
    leave.set()
    assert (
        one(database, "SELECT sum(n_items) FROM job WHERE state = 'waiting' AND n_attempts = 0 AND node_id IS NULL")
        == 640
    )
    assert one(database, "SELECT state FROM node WHERE name = 'tester'") == "stopped"


async def test_an_idle_worker_wakes_for_a_new_paper(database):
    worker = Worker(database, options(is_draining=False))
    running = asyncio.create_task(worker.run())
    await until(lambda: one(database, "SELECT count(*) FROM node WHERE state = 'idle'") == 1)
    with database.connect() as connection:
        add_passages(connection, ["fresh words"], priority=10)
    await until(lambda: one(database, "SELECT count(*) FROM passage_embedding") == 1, 1.5)
    worker.stop()
    assert await running == 0


async def test_counts_go_to_the_node_and_its_hour(database):
    with database.connect() as connection:
        add_passages(connection, [f"passage {i}" for i in range(100)])
    await drain(database)
    assert one(database, "SELECT n_texts FROM node WHERE n_jobs >= 2") == 100
    assert one(database, "SELECT sum(n_texts) FROM node_hour WHERE kind = 'embed_passages'") == 100
