"""Vector shards: what comes out goes in again, and nothing bad ever does."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import psycopg
import pytest

from corpus import vector_index
from corpus.encoders import register_encoder
from corpus.errors import InputError
from corpus.shards import read_shard
from corpus.vectors import export_vectors, import_vectors
from encoders.hashing import HASHING, HashingEncoder
from encoders.load import resolve_spec
from tests.farm.support import add_papers, add_passages, check_whole, drain, make_filling, one, sha
from tests.support import shared

TEXTS = [f"text {i} of the reef" for i in range(40)]


@pytest.fixture
def connection(database):
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        yield connection


def _shard(path: Path, texts, vectors=None, encoder=None, hashes=None) -> Path:
    found = HashingEncoder().encode(texts) if vectors is None else vectors
    np.savez(
        path, text_sha256=np.array([sha(t).hex() for t in texts] if hashes is None else hashes), vector=np.asarray(found, dtype=np.float16),
        encoder=json.dumps(encoder or HASHING.identity()),
    )  # fmt: skip
    return path


async def test_what_is_exported_is_imported_elsewhere(database, connection, tmp_path):
    add_papers(connection, TEXTS)
    add_passages(connection, [f"passage {i}" for i in range(30)])
    await drain(database)
    (path,) = export_vectors(connection, tmp_path)
    assert export_vectors(connection, tmp_path) == []
    with zipfile.ZipFile(path) as archive:
        assert {"text_sha256.npy", "vector.npy", "encoder.npy"} == set(archive.namelist())
    connection.execute("DELETE FROM paper_embedding")
    connection.execute("DELETE FROM passage_embedding")
    connection.execute("SELECT job_enqueue_missing(1, 100)")
    report = import_vectors(connection, [path])
    assert (report.exit_code, report.n_papers, report.n_passages, report.n_kept) == (0, 40, 30, 0)
    assert check_whole(database) == 70


def test_since_an_earlier_export_only_what_is_new_is_written(database, connection, tmp_path):
    """Into the same folder or another one; shards that are there stay as they are, and all fit into one folder."""
    old, new, newest = tmp_path / "old", tmp_path / "new", tmp_path / "newest"
    import_vectors(connection, [_shard(tmp_path / "a.npz", TEXTS[:10])])
    (first,) = export_vectors(connection, old)
    kept = first.read_bytes()
    import_vectors(connection, [_shard(tmp_path / "b.npz", TEXTS[:15])])
    (second,) = export_vectors(connection, new, since=[old])
    import_vectors(connection, [_shard(tmp_path / "c.npz", TEXTS[:17])])
    (third,) = export_vectors(connection, newest, since=[first, new])
    assert export_vectors(connection, newest, since=[old, new]) == []
    assert first.read_bytes() == kept
    assert len({path.name for path in (first, second, third)}) == 3
    held = [read_shard(path).hashes for path in (first, second, third)]
    assert [len(hashes) for hashes in held] == [10, 5, 2]
    assert {h for hashes in held for h in hashes} == {sha(text) for text in TEXTS[:17]}
    with pytest.raises(InputError, match="There is no"):
        export_vectors(connection, new, since=[tmp_path / "nothing"])


@pytest.mark.parametrize("damage", ["torn", "array", "text", "rows"])
def test_a_shard_that_cannot_be_read_is_written_again_beside_it(connection, tmp_path, damage):
    import_vectors(connection, [_shard(tmp_path / "a.npz", TEXTS[:10])])
    (first,) = export_vectors(connection, tmp_path / "out")
    if damage == "torn":
        first.write_bytes(first.read_bytes()[:-200])
    elif damage == "array":
        with first.open("wb") as file:
            np.save(file, np.zeros(3))
    elif damage == "rows":
        with zipfile.ZipFile(first) as archive:
            rows = archive.getinfo("vector.npy")
        torn = bytearray(first.read_bytes())
        torn[rows.header_offset + rows.compress_size // 2] ^= 255
        first.write_bytes(torn)
    else:
        first.write_text("no shard")
    damaged = first.read_bytes()
    (second,) = export_vectors(connection, tmp_path / "out")
    assert len(read_shard(second).hashes) == 10
    assert first.read_bytes() == damaged


async def test_imported_vectors_wait_for_texts_that_come_later(database, connection, tmp_path):
    path = _shard(tmp_path / "a.npz", TEXTS)
    assert import_vectors(connection, [path]).n_kept == 40
    assert import_vectors(connection, [path]).n_kept == 0
    add_papers(connection, TEXTS[:10])
    add_passages(connection, TEXTS[10:20])

    def loader(row, device, cache):
        class Never(HashingEncoder):
            def encode(self, texts, *, kind="document"):
                assert not texts, "known texts are not encoded again"
                return super().encode(texts)

        return Never()

    assert await drain(database, loader=loader) == 0
    assert check_whole(database) == 20


def test_satisfied_work_leaves_the_queue_and_the_rest_stands_in_full_slices(database, connection, tmp_path):
    add_papers(connection, [f"paper {i}" for i in range(200)])
    some = [f"paper {i}" for i in range(0, 200, 2)]
    report = import_vectors(connection, [_shard(tmp_path / "half.npz", some)])
    assert report.n_papers == report.n_unqueued == 100
    assert connection.execute("SELECT count(*), sum(n_items) FROM job").fetchone() == (2, 100)


def _spoilt(path, change):
    vectors = HashingEncoder().encode(TEXTS)
    return _shard(path, TEXTS, change(vectors))


BAD = {
    "nan": lambda p: _spoilt(p, lambda v: v * np.nan),
    "zeros": lambda p: _spoilt(p, lambda v: v * 0),
    "narrow": lambda p: _spoilt(p, lambda v: v[:, :767]),
    "short": lambda p: _spoilt(p, lambda v: v[:-1]),
    "flat": lambda p: _spoilt(p, lambda v: v.ravel()),
    "hashes": lambda p: _shard(p, TEXTS, hashes=["no hash"] * 40),
    "upper": lambda p: _shard(p, TEXTS, hashes=["A" * 64] * 40),
    "numbers": lambda p: _shard(p, TEXTS, hashes=list(range(40))),
    "page": lambda p: p.write_bytes(b"<!doctype html>") and p,
    "empty": lambda p: p.write_bytes(b"") or p,
    "cut": lambda p: (_shard(p, TEXTS), p.write_bytes(p.read_bytes()[:-200]))[0],
    "pickled": lambda p: (
        np.savez(p, text_sha256=np.array([{}], dtype=object), vector=np.zeros((1, 768)), encoder="{}") or p
    ),
    "nameless": lambda p: np.savez(p, text_sha256=np.array(["0" * 64]), vector=np.zeros((1, 768))) or p,
    "nojson": lambda p: _shard(p, TEXTS, encoder=["a", "list"]),
    "missing": lambda p: p,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_and_nothing_of_it_is_kept(connection, tmp_path, name):
    add_papers(connection, TEXTS[:5])
    bad = tmp_path / f"{name}.npz"
    BAD[name](bad)
    good = _shard(tmp_path / "good.npz", TEXTS[:3])
    report = import_vectors(connection, [bad, good])
    assert report.exit_code == 3
    assert len(report.problems) == 1
    assert f"{name}.npz" in report.problems[0]
    assert connection.execute("SELECT count(*) FROM paper_embedding").fetchone() == (3,)
    assert connection.execute("SELECT count(*) FROM imported_embedding").fetchone() == (0,)
    assert import_vectors(connection, [bad]).exit_code == 1


def test_good_rows_of_a_file_are_kept_and_long_ones_are_scaled(connection, tmp_path):
    add_papers(connection, TEXTS)
    vectors = HashingEncoder().encode(TEXTS)
    vectors[3, 7] = np.inf
    vectors[4] *= 3
    report = import_vectors(connection, [_shard(tmp_path / "mixed.npz", TEXTS, vectors)])
    assert (report.exit_code, report.n_papers, report.n_refused, report.n_scaled) == (3, 39, 1, 1)
    lengths = connection.execute(
        "SELECT min(l2_norm(embedding)), max(l2_norm(embedding)) FROM paper_embedding"
    ).fetchone()
    assert lengths == pytest.approx((1, 1), abs=2e-3)


def test_another_encoders_vectors_are_refused(connection, tmp_path):
    other = {**HASHING.identity(), "max_tokens": 384}
    report = import_vectors(connection, [_shard(tmp_path / "other.npz", TEXTS, encoder=other)])
    assert report.exit_code == 5
    assert "max_tokens is 384" in report.problems[0]


def test_a_large_import_builds_the_index_anew(database, connection, tmp_path):
    texts = [f"paper {i} on tides" for i in range(1500)]
    add_papers(connection, texts)
    report = import_vectors(connection, [_shard(tmp_path / "large.npz", texts)])
    assert (report.n_papers, report.exit_code) == (1500, 0)
    assert vector_index.list_states(connection, 1) == {"paper": True, "passage": True}
    assert check_whole(database) == 1500


def test_a_broken_index_is_built_again(connection):
    make_filling(connection)
    connection.execute(
        "CREATE INDEX passage_embedding_1_hnsw_idx ON passage_embedding_1 USING hnsw (embedding halfvec_cosine_ops)"
    )
    connection.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'passage_embedding_1_hnsw_idx'::regclass"
    )
    assert vector_index.list_states(connection, 1) == {"paper": None, "passage": False}
    assert sorted(vector_index.ensure(connection, 1)) == ["paper", "passage"]
    assert vector_index.list_states(connection, 1) == {"paper": True, "passage": True}


def test_the_shipped_shards_go_into_a_database_of_their_encoder(database, connection):
    path = shared("vectors", "scifact-00000.npz")
    connection.execute("UPDATE encoder SET state = 'retired'")
    with connection.transaction():
        register_encoder(connection, resolve_spec("all-mpnet-base-v2"), activate=True)
    report = import_vectors(connection, [path])
    assert (report.exit_code, report.n_kept) == (0, 4728)
    assert one(database, "SELECT count(*) FROM imported_embedding WHERE encoder_id = 2") == 4728
