import sqlite3
from itertools import pairwise

import pytest

from ingest.http import VirtualClock
from ingest.http.ledger import FileLedger, MemoryLedger


@pytest.fixture
def clock():
    return VirtualClock()


def wall_of(clock, offset=1_800_000_000.0):
    return lambda: clock.now() + offset


def test_two_processes_keep_one_limit(tmp_path, clock):
    a, b = (FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock)) for _ in range(2))
    starts = [ledger.reserve("h", [(1, 3.0)], clock.now(), 1e9) for ledger in (a, b, a, b)]
    assert all(later - first >= 3.0 for first, later in pairwise(starts))
    assert b.reserve("other", [(1, 3.0)], clock.now(), 1e9) == clock.now()


def test_a_process_that_starts_later_with_another_clock_keeps_on(tmp_path, clock):
    FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock)).reserve("h", [(1, 60.0)], clock.now(), 1e9)
    booted = VirtualClock(5.0)
    later = FileLedger(tmp_path / "x.sqlite", booted, lambda: clock.now() + 1_800_000_000.0 + (booted.now() - 5.0) + 20)
    assert later.reserve("h", [(1, 60.0)], booted.now(), 1e9) == pytest.approx(45.05)


def test_a_pause_outlives_the_process(tmp_path, clock):
    FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock)).pause("h", clock.now() + 3600)
    FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock)).pause("h", clock.now() + 60)
    assert FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock)).paused_until("h") == pytest.approx(
        clock.now() + 3600
    )


def test_a_turn_that_is_too_late_is_not_taken(tmp_path, clock):
    for ledger in (MemoryLedger(), FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock))):
        now = clock.now()
        assert ledger.reserve("h", [(1, 100.0)], now, now + 10) == now
        assert ledger.reserve("h", [(1, 100.0)], now, now + 10) == pytest.approx(now + 100.05)
        assert ledger.reserve("h", [(1, 100.0)], now, now + 10) == pytest.approx(now + 100.05)


def test_a_broken_file_costs_no_request(tmp_path, clock):
    (tmp_path / "x.sqlite").write_bytes(b"no database, but long enough to be looked at" * 100)
    ledger = FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock))
    ledger.pause("h", clock.now() + 5)
    assert ledger.paused_until("h") == clock.now() + 5
    now = clock.now()
    assert [ledger.reserve("h", [(1, 3.0)], now, 1e9) for _ in range(2)] == [now, pytest.approx(now + 3.05)]


def test_a_clock_that_was_set_back_does_not_stop_everything(tmp_path, clock):
    ahead = FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock, 1_900_000_000.0))
    ahead.reserve("h", [(1, 3.0)], clock.now(), 1e9)
    back = FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock))
    assert back.reserve("h", [(1, 3.0)], clock.now(), 1e9) == clock.now()


def test_old_starts_are_forgotten(tmp_path, clock):
    ledger = FileLedger(tmp_path / "x.sqlite", clock, wall_of(clock))
    for _ in range(5):
        ledger.reserve("h", [(10, 1.0)], clock.now(), 1e9)
        clock.advance(90_000)
    ledger.reserve("h", [(10, 1.0)], clock.now(), 1e9)
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM start").fetchone() == (1,)
