import hashlib
import threading
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import StoreDamaged, StoreError, StoreMissing
from ingest.store import Store

CONTENT = b"%PDF-1.7 some bytes"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(params=["folder", "file-url", "memory"])
def store(request, tmp_path):
    urls = {
        "folder": str(tmp_path / "s"),
        "file-url": f"file://{tmp_path}/s",
        "memory": f"memory://{uuid.uuid4().hex}/s",
    }
    return Store(urls[request.param])


def test_what_is_put_is_read_back(store, tmp_path):
    path = tmp_path / "x.pdf"
    path.write_bytes(CONTENT)
    assert list(store.iter_sha256()) == []
    assert store.put_file(path) == store.put_bytes(CONTENT) == SHA256
    assert store.read(SHA256) == CONTENT
    assert store.has(SHA256)
    assert store.local_path(SHA256).read_bytes() == CONTENT
    assert list(store.iter_sha256()) == [SHA256]
    with store.open(SHA256) as file:
        assert file.read(4) == b"%PDF"
    store.remove(SHA256)
    store.remove(SHA256)
    assert not store.has(SHA256)


def test_a_file_that_is_not_there_is_missing(store):
    for read in (store.read, store.open, store.local_path):
        with pytest.raises(StoreMissing, match=SHA256):
            read(SHA256)
    assert not store.has(SHA256)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", SHA256.upper(), SHA256 + "\n", SHA256[:-1]])
def test_names_from_outside_are_no_paths(store, name):
    with pytest.raises(StoreMissing):
        store.read(name)


def test_damaged_bytes_are_never_given_and_a_good_copy_mends_them(tmp_path):
    store = Store(tmp_path)
    store.put_bytes(CONTENT)
    path = tmp_path / SHA256[:2] / SHA256[2:4] / SHA256
    path.write_bytes(CONTENT[:-1])
    assert store.has(SHA256)
    assert not store.has(SHA256, intact=True)
    for read in (store.read, store.open, store.local_path):
        with pytest.raises(StoreDamaged):
            read(SHA256)
    store.put_bytes(CONTENT)
    assert store.read(SHA256) == CONTENT


def test_a_second_put_writes_nothing(tmp_path):
    store = Store(tmp_path)
    store.put_bytes(CONTENT)
    path = tmp_path / SHA256[:2] / SHA256[2:4] / SHA256
    before = path.stat()
    store.put_bytes(CONTENT)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    store = Store(tmp_path / "s")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / SHA256[:2]).write_text("a file where a folder must be")
    with pytest.raises(StoreError, match="cannot be written"):
        store.put_bytes(CONTENT)
    assert not store.has(SHA256)
    assert list((tmp_path / "s" / "tmp").iterdir()) == []


def test_leftovers_of_a_killed_run_are_no_files(tmp_path):
    store = Store(tmp_path)
    store.put_bytes(CONTENT)
    (tmp_path / "tmp" / "half").write_bytes(b"half")
    (tmp_path / "aa" / "bb").mkdir(parents=True)
    (tmp_path / "aa" / "bb" / SHA256).write_bytes(b"in a wrong place")
    assert list(store.iter_sha256()) == [SHA256]


def test_many_writers_of_one_file_leave_one(tmp_path):
    threads = [threading.Thread(target=lambda: Store(tmp_path).put_bytes(CONTENT * 1000)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sha256 = hashlib.sha256(CONTENT * 1000).hexdigest()
    assert list(Store(tmp_path).iter_sha256()) == [sha256]
    assert Store(tmp_path).read(sha256) == CONTENT * 1000


def test_an_unknown_kind_of_url_says_so():
    with pytest.raises(StoreError, match="nosuch"):
        Store("nosuch://bucket/x")


@given(st.binary(max_size=200))
def test_any_bytes_come_back(content):
    store = Store("memory://any")
    assert store.read(store.put_bytes(content)) == content
