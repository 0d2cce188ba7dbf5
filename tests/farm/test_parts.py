"""The parts of a worker by themselves: what is sent to the database, what a bad text costs, how fast a node says it is."""

from __future__ import annotations

import threading
import uuid

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.errors import BadEmbedding, EncoderOutOfMemory, EncoderUnavailable
from corpus.halfvec import COPY_HEAD, COPY_TAIL, DIM, fetch_halfvec_oid, pack_array, pack_copy_rows, unpack
from corpus.jobs import Cursors, Job
from corpus.vector_index import is_rebuild_cheaper
from embed_worker.encode import Batches
from embed_worker.held import Held
from embed_worker.rates import Rates
from encoders.hashing import HashingEncoder
from tests.farm.support import sha


def test_embeddings_come_back_to_the_bit(database):
    vectors = HashingEncoder().encode([f"text {i}" for i in range(50)])
    hashes = [sha(str(i)) for i in range(50)]
    with psycopg.connect(database.conninfo) as connection:
        by_array = connection.execute(
            "SELECT halfvec_send(e) FROM unnest(%s::halfvec[]) e", [pack_array(vectors, fetch_halfvec_oid(connection))]
        ).fetchall()
        none = connection.execute(
            "SELECT cardinality(%s::halfvec[])", [pack_array(vectors[:0], fetch_halfvec_oid(connection))]
        ).fetchone()
        connection.execute("CREATE TEMP TABLE t (text_sha256 bytea, embedding halfvec(768))")
        with connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN (FORMAT binary)") as copy:
            copy.write(COPY_HEAD + pack_copy_rows(hashes, vectors) + COPY_TAIL)
        by_copy = connection.execute("SELECT text_sha256, halfvec_send(embedding) FROM t").fetchall()
    expected = vectors.astype(np.float16)
    assert np.array_equal(unpack([row[0] for row in by_array]), expected)
    assert none == (0,)
    assert [row[0] for row in by_copy] == hashes
    assert np.array_equal(unpack([row[1] for row in by_copy]), expected)
    assert unpack([]).shape == (0, DIM)


class Picky(HashingEncoder):
    """Fails on texts that hold `bad`, and on more than `most` texts at once."""

    def __init__(self, most: int = 10_000) -> None:
        super().__init__()
        self.most = most
        self.n_calls = 0

    def encode(self, texts, *, kind="document"):
        self.n_calls += 1
        if len(texts) > self.most:
            raise EncoderOutOfMemory("too many")
        if any("bad" in text for text in texts):
            raise BadEmbedding("not finite")
        return super().encode(texts, kind=kind)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 150).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=5))),
    st.integers(1, 40),
)
def test_exactly_the_bad_texts_fail_whatever_fits(sizes, most):
    n, bad = sizes
    texts = [f"{'bad' if i in bad else 'good'} text {i}" for i in range(n)]
    found = Batches(Picky(most), threading.Event()).encode(texts)
    assert set(found.bad) == bad == set(found.stacks)
    assert set(np.flatnonzero(~found.is_done)) == bad
    good = [i for i in range(n) if i not in bad]
    assert np.array_equal(found.embeddings[good], HashingEncoder().encode([texts[i] for i in good]))


def test_one_bad_text_costs_few_calls():
    encoder = Picky()
    Batches(encoder, threading.Event()).encode([f"{'bad' if i == 41 else 'good'} {i}" for i in range(64)])
    assert encoder.n_calls < 20


def test_a_text_that_does_not_fit_alone_blames_the_device():
    with pytest.raises(EncoderOutOfMemory):
        Batches(Picky(0), threading.Event()).encode(["one"])


def test_an_encoder_that_fails_on_everything_is_unavailable():
    class Broken(Picky):
        def encode(self, texts, *, kind="document"):
            raise ValueError("no kernel")

    with pytest.raises(EncoderUnavailable, match="no kernel"):
        Batches(Broken(), threading.Event()).encode([f"text {i}" for i in range(64)])


def test_a_stop_between_calls_leaves_the_rest_undone():
    stop = threading.Event()

    class Once(Picky):
        def encode(self, texts, *, kind="document"):
            stop.set()
            return super().encode(texts, kind=kind)

    found = Batches(Once(), stop).encode([f"text {i}" for i in range(200)])
    assert 0 < found.is_done.sum() < 200
    assert not found.bad


def test_rates_by_a_clock_of_our_own():
    now = [0.0]
    rates = Rates(lambda: now[0])
    assert rates.working is None
    assert rates.windows() == {"1": 0.0, "10": 0.0, "60": 0.0}
    for _ in range(120):
        now[0] += 1
        rates.completed(10)
    assert rates.windows() == pytest.approx({"1": 10.0, "10": 10.0, "60": 10.0}, rel=0.05)
    now[0] += 300
    assert rates.windows()["1"] == 0
    assert rates.windows()["10"] == pytest.approx(1200 / 420, rel=0.05)
    rates.encoded(100, 2.0)
    assert rates.working == 50
    rates.encoded(100, 10.0)
    assert 10 < rates.working < 50


def _job(number: int, priority: int = 100, kind: str = "embed_passages") -> Job:
    return Job(number, kind, [number], 1, priority, uuid.uuid4())


def test_what_is_held_goes_by_urgency_and_like_with_like():
    held = Held()
    held.add([_job(5), _job(1), _job(3, kind="embed_papers"), _job(9, priority=10), _job(7, kind="chunk")], 1)
    assert [job.job_id for job in held.take(5)] == [9]
    assert [job.job_id for job in held.take(5)] == [3]
    assert set(held.tokens) == {1, 3, 5, 7, 9}
    assert held.lose({1, 3}) == 1  # 3 is being encoded: its completion decides
    assert [job.job_id for job in held.take(5)] == [5]
    assert held.first is None
    assert set(held.tokens) == {3, 5, 7, 9}
    held.add([_job(11)], 2)
    assert [job.job_id for job in held.take_of_encoder(2)] == [11]
    held.forget([3, 5, 7, 9, 11])
    assert not held


@given(
    st.lists(
        st.tuples(st.sampled_from([10, 50, 100]), st.sampled_from(["chunk", "embed_passages"]), st.integers(1, 1000))
    )
)
def test_cursors_begin_behind_what_was_claimed(seen):
    cursors = Cursors()
    cursors.passed(_job(number, priority, kind) for priority, kind, number in seen)
    priorities, from_ids = cursors.steps(["chunk", "embed_passages"])
    assert priorities == sorted({10, 100, 200} | {priority for priority, _, _ in seen})
    for (priority, kind), start in zip(
        [(p, k) for p in priorities for k in ("chunk", "embed_passages")], from_ids, strict=True
    ):
        assert start == max((n + 1 for p, k, n in seen if (p, k) == (priority, kind)), default=0)
    assert cursors.steps(["chunk"], below=100)[0] == [p for p in priorities if p < 100]


def test_an_index_is_built_anew_only_for_many_rows():
    assert not is_rebuild_cheaper(500, 0)
    assert is_rebuild_cheaper(2000, 0)
    assert not is_rebuild_cheaper(2000, 1_000_000)
    assert is_rebuild_cheaper(60_000, 60_000)
