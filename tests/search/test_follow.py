"""The word index follows the database: late commits, deletions, restores, damage, several owners."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from search_server.filters import Filters
from search_server.service import SearchService
from search_server.words.folder import WordFolder, damage
from search_server.words.follow import Follower
from tests.search.corpus import WORDS, delete, ids, in_step, load, params, ready, settings_at


def rows(*names, text="moraine survey of a glacier"):
    return [{"_id": name, "title": f"Title {name}", "text": f"{text} {name}word"} for name in names]


def follow(database, home) -> Follower:
    follower = Follower(database, home / "word-index", poll=timedelta(seconds=0.2))
    follower.start()
    assert follower.wait_open(timedelta(seconds=30))
    return follower


def found(follower: Follower, q: str) -> list[int]:
    reader = follower.reader
    assert reader is not None
    return [hit.paper_pk for hit in reader.search(reader.ask(q), Filters(), 50)]


async def test_changes_and_deletions_are_followed(database, service):
    load(database, rows("a", "b"))
    await in_step(service)
    assert ids(await service.search(params("moraine", **WORDS))) == ["t:a", "t:b"]
    load(database, [{"_id": "a", "title": "Title a", "text": "basalt"}])
    delete(database, "t:b")
    await in_step(service)
    assert ids(await service.search(params("moraine", **WORDS))) == []
    assert ids(await service.search(params("basalt", **WORDS))) == ["t:a"]


async def test_a_transaction_that_commits_late_is_not_missed(database, service):
    """It took its numbers first and commits last; the index must not have gone past it."""
    load(database, rows("first"))
    with database.connect() as slow:
        slow.execute("INSERT INTO paper (paper_id, title) VALUES ('t:slow', 'Slow one')")
        slow.execute(
            "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT paper_pk, 'abstract', 0, 0, 8, 'slowword', sha256('x') FROM paper WHERE paper_id = 't:slow'"
        )
        await asyncio.to_thread(_load_apart, database)
        await in_step(service)
        assert ids(await service.search(params("quickword", **WORDS))) == ["t:quick"]
        assert ids(await service.search(params("slowword", **WORDS))) == []
    await in_step(service)
    async with asyncio.timeout(5):
        while ids(await service.search(params("slowword", **WORDS))) != ["t:slow"]:
            await asyncio.sleep(0.02)


def _load_apart(database):
    with database.connect() as other:
        other.execute("INSERT INTO paper (paper_id, title) VALUES ('t:quick', 'Quick one')")
        other.execute(
            "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT paper_pk, 'abstract', 0, 0, 9, 'quickword', sha256('y') FROM paper WHERE paper_id = 't:quick'"
        )


def test_a_restart_needs_no_rebuild(database, home):
    load(database, rows("a", "b"))
    first = follow(database, home)
    assert first.state.n_rebuilds == 1
    first.stop()
    load(database, rows("c"))
    second = follow(database, home)
    assert second.state.n_rebuilds == 0
    assert len(found(second, "moraine")) == 3
    second.stop()


@pytest.mark.parametrize("harm", ["flip", "cut", "missing", "meta", "all"])
def test_a_damaged_index_is_built_anew(database, home, harm):
    load(database, rows("a", "b"))
    first = follow(database, home)
    first.stop()
    current = next((home / "word-index").glob("*-0"))
    generation = current / (current / "current").read_text()
    assert damage(generation) is None
    victim = max(generation.glob("*.idx"), key=lambda p: p.stat().st_size)
    data = bytearray(victim.read_bytes())
    if harm == "flip":
        data[len(data) // 3] ^= 0xFF
        victim.write_bytes(data)
    elif harm == "cut":
        victim.write_bytes(data[:-20])
    elif harm == "missing":
        victim.unlink()
    elif harm == "meta":
        (generation / "meta.json").write_text("{")
    else:
        shutil.rmtree(generation)
    second = follow(database, home)
    assert second.state.n_rebuilds == 1
    assert len(found(second, "moraine")) == 2
    second.stop()


def test_a_database_that_went_back_in_time_is_noticed(database, home):
    """The copy is the same cluster and database; only what was committed since is gone."""
    load(database, rows("monday"))
    first = follow(database, home)
    first.stop()
    with database.connect() as connection:
        state = connection.execute("SELECT change_id, token FROM change ORDER BY change_id DESC LIMIT 1").fetchone()
        # What a restore does: the last rows are gone, and others take their numbers.
        connection.execute("DELETE FROM paper")
        connection.execute("DELETE FROM change WHERE change_id >= %s", [state[0]])
        connection.execute("SELECT setval(pg_get_serial_sequence('change', 'change_id'), %s, false)", [state[0]])
    load(database, rows("tuesday"))
    second = follow(database, home)
    assert second.state.n_rebuilds == 1
    assert found(second, "mondayword") == []
    assert len(found(second, "tuesdayword")) == 1
    second.stop()


def test_it_goes_back_in_time_while_followed(database, home):
    load(database, rows("monday"))
    follower = follow(database, home)
    with database.connect() as connection:
        connection.execute("ALTER TABLE passage DISABLE TRIGGER USER; ALTER TABLE paper DISABLE TRIGGER USER")
        connection.execute("DELETE FROM paper")
        connection.execute("UPDATE change SET token = token + 1")
        connection.execute("ALTER TABLE passage ENABLE TRIGGER USER; ALTER TABLE paper ENABLE TRIGGER USER")
    load(database, rows("tuesday"))
    end = _deadline(10)
    while found(follower, "mondayword") or not found(follower, "tuesdayword") if follower.reader else True:
        assert not end()
    follower.stop()


def test_another_instance_is_another_index(database, home):
    load(database, rows("a"))
    first = follow(database, home)
    first.stop()
    with database.connect() as connection:
        connection.execute("UPDATE setting SET value = to_jsonb('other'::text) WHERE name = 'instance'")
    second = follow(database, home)
    assert second.state.n_rebuilds == 1
    second.stop()


def test_each_server_of_one_home_has_an_index_of_its_own(database, home):
    load(database, rows("a"))
    first, second = follow(database, home), follow(database, home)
    folders = sorted(p.name[-2:] for p in (home / "word-index").iterdir())
    assert folders == ["-0", "-1"]
    load(database, rows("b"))
    for follower in (first, second):
        end = _deadline(5)
        while not found(follower, "bword"):
            assert not end()
    first.stop()
    second.stop()


def test_a_command_reads_the_servers_index(database, home):
    load(database, rows("a"))
    owner = follow(database, home)
    reader = Follower(database, home / "word-index", share=True)
    reader.start()
    assert reader.wait_open(timedelta(seconds=10))
    assert reader.state.n_rebuilds == 0
    assert len(found(reader, "moraine")) == 1
    assert len(list((home / "word-index").iterdir())) == 1
    reader.stop()
    owner.stop()


def test_a_folder_has_one_owner(home: Path):
    one = WordFolder.take(home, "x")
    other = WordFolder.take(home, "x")
    assert one.path != other.path
    one.release()
    assert WordFolder.take(home, "x").path == one.path


async def test_replaced_passages_leave_no_trace_in_the_scores(database, home):
    old = rows("a", "b", "c", text="moraine moraine " * 40)
    new = rows("a", "b", "c", text="moraine and scree")
    others = rows(*"defghij", text="lichen on scree")
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        load(database, others)
        for _ in range(4):
            load(database, old)
            await in_step(service)
            load(database, new)
            await in_step(service)
        mine = await service.search(params("moraine scree", **WORDS))
    shutil.rmtree(home / "word-index")
    async with SearchService.open(database, settings_at(home)) as service:
        theirs = await (await ready(service)).search(params("moraine scree", **WORDS))
    assert sorted(ids(mine)) == sorted(ids(theirs))
    scores = {hit["paper_id"]: hit["lists"]["passage_bm25"]["score"] for hit in theirs["hits"]}
    for hit in mine["hits"]:
        assert hit["lists"]["passage_bm25"]["score"] == pytest.approx(scores[hit["paper_id"]], rel=0.05)


async def test_freshness(database, service):
    """A commit is found within two seconds."""
    await in_step(service)
    load(database, rows("fresh"))
    async with asyncio.timeout(2):
        while ids(await service.search(params("freshword", **WORDS))) != ["t:fresh"]:
            await asyncio.sleep(0.02)


async def test_a_lost_connection_is_taken_up_again(database, service):
    load(database, rows("a"))
    await in_step(service)
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    load(database, rows("b"))
    async with asyncio.timeout(10):
        while (service.words.reader.n_passages if service.words.reader else 0) != 2:
            await asyncio.sleep(0.05)
    assert ids(await service.search(params("moraine", **WORDS))) == ["t:a", "t:b"]


def _deadline(seconds: float):
    import time

    end = time.monotonic() + seconds

    def over() -> bool:
        time.sleep(0.02)  # polling another thread
        return time.monotonic() > end

    return over
