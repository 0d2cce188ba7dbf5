"""Each paper without a full text says why: nobody asked, no place, refused places, put aside, waiting and until when."""

import pytest

from ingest.acquire.report import topic_report

A, B = "https://one.example.org/a.pdf", "https://two.example.org/b.pdf"


@pytest.fixture
def connection(database):
    with database.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO topic (name) VALUES ('snails')")
        connection.execute("INSERT INTO paper (paper_id, title) VALUES ('arxiv:2401.00001', 'Snails')")
        connection.execute("INSERT INTO paper_topic (paper_pk, topic_id) SELECT paper_pk, topic_id FROM paper, topic")
        yield connection


def why(connection):
    (row,) = topic_report(connection, "snails")["missing"]
    return row["why"]


def tried(connection, url, outcome, reason):
    connection.execute(
        "INSERT INTO fetch_attempt (paper_pk, url, outcome, reason, ended_at) SELECT paper_pk, %s, %s, %s, now() FROM paper",
        [url, outcome, reason],
    )


def queued(connection, **columns):
    names = ", ".join(columns)
    connection.execute(
        f"INSERT INTO job (kind, item_ids, {names}) SELECT 'fetch', ARRAY[paper_pk], {', '.join(['%s'] * len(columns))} FROM paper",
        list(columns.values()),
    )


def test_nobody_asked_and_then_no_place_is_known(connection):
    assert why(connection) == "not asked for"
    tried(connection, "", "absent", "no open place is known")
    assert why(connection) == "no full text: no open place is known"


def test_each_place_has_its_last_word_and_files_that_were_put_aside_come_first(connection):
    tried(connection, A, "down", "it does not work now")
    tried(connection, A, "refused", "the host does not let programs in")
    tried(connection, B, "quarantined", "wrong paper: none of the authors is named")
    tried(connection, "", "absent", "no open place is known")
    assert why(connection) == (
        f"no full text: {B}: quarantined, wrong paper: none of the authors is named; "
        f"{A}: refused, the host does not let programs in"
    )


def test_what_waits_says_until_when(connection):
    queued(connection, error="waits: one.example.org asks to wait", run_after="2999-01-02 03:04:00+00")
    assert why(connection) == (
        "full text waits: one.example.org asks to wait; it is asked for again after 2999-01-02 03:04 UTC"
    )
    connection.execute("UPDATE job SET run_after = '-infinity'")
    assert why(connection).endswith("the next run asks again")
    connection.execute("UPDATE job SET error = NULL")
    assert why(connection) == "its full text is still to be asked for"


def test_an_address_of_a_persons_own_that_failed_says_how(connection):
    queued(connection, state="failed", error=f"{A}: absent, it is not there", error_class="absent")
    assert why(connection) == f"no full text: {A}: absent, it is not there"
