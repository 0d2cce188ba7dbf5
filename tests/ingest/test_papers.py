"""Papers in the database: loaded, loaded again, changed, by several processes at once."""

import hashlib
import threading

from psycopg.rows import dict_row

from ingest.papers import write_papers
from ingest.records import PaperRecord


def record(name, text="some words", **more):
    return PaperRecord(f"p:{name}", is_prefixed=True, title=f"Title of {name}", abstract=text, **more)


def write(connection, *records, **more):
    return write_papers(connection, records, **more)


def one(connection, query, *values):
    return connection.execute(query, values).fetchone()[0]


def test_the_same_papers_twice_change_nothing(connection):
    papers = [record(n, "long " * 900) for n in "abc"]
    assert write(connection, *papers).n_new == 3
    before = connection.execute("SELECT passage_id FROM passage ORDER BY 1").fetchall()
    jobs = one(connection, "SELECT count(*) FROM job")
    again = write(connection, *papers)
    assert (again.n_new, again.n_changed, again.n_unchanged) == (0, 0, 3)
    assert connection.execute("SELECT passage_id FROM passage ORDER BY 1").fetchall() == before
    assert one(connection, "SELECT count(*) FROM job") == jobs


def test_a_changed_text_replaces_passages_and_lets_its_embeddings_go(connection):
    write(connection, record("a", "old " * 1000))
    encoder = one(connection, "SELECT active_encoder_id()")
    connection.execute(
        "INSERT INTO passage_embedding SELECT %s, text_sha256, array_fill(0.036, ARRAY[768])::real[]::vector(768)::halfvec FROM passage",
        [encoder],
    )
    write(connection, record("a", "new words"))
    texts = [row[0] for row in connection.execute("SELECT text FROM passage")]
    assert texts == ["Title of a\n\nnew words"]
    assert one(connection, "SELECT count(*) FROM passage_embedding") == 0


def test_metadata_alone_keeps_the_passages(connection):
    write(connection, record("a"))
    before = one(connection, "SELECT passage_id FROM passage")
    assert write(connection, record("a", year=2020)).n_changed == 1
    assert one(connection, "SELECT passage_id FROM passage") == before


def test_a_text_embedded_before_is_not_queued_again(connection):
    write(connection, record("a", "same"))
    encoder = one(connection, "SELECT active_encoder_id()")
    digest = hashlib.sha256(b"Title of a\n\nsame").digest()
    connection.execute("DELETE FROM job")
    connection.execute(
        "INSERT INTO imported_embedding VALUES (%s, %s, array_fill(0.036, ARRAY[768])::real[]::vector(768)::halfvec)",
        [encoder, digest],
    )
    write(connection, PaperRecord("p:b", is_prefixed=True, title="Title of a", abstract="same"))
    assert one(connection, "SELECT count(*) FROM job") == 0
    assert one(connection, "SELECT count(*) FROM paper_embedding") == 1
    assert one(connection, "SELECT count(*) FROM passage_embedding") == 1


def test_every_passage_is_its_slice(connection):
    write(connection, record("a", "Sentence one. " * 400), record("b", "x" * 5000))
    with connection.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute("SELECT q.text AS whole, p.* FROM passage p JOIN paper q USING (paper_pk)"):
            assert row["whole"][row["char_start"] : row["char_end"]] == row["text"]
            assert row["text_sha256"] == hashlib.sha256(row["text"].encode()).digest()
            assert len(row["text"]) <= 1800


def test_a_paper_without_title_and_abstract_has_no_passage_and_no_job(connection):
    write(connection, PaperRecord("p:empty", is_prefixed=True))
    assert one(connection, "SELECT count(*) FROM paper") == 1
    assert one(connection, "SELECT count(*) FROM passage") == 0
    assert one(connection, "SELECT count(*) FROM job") == 0


def test_topics_are_replaced_when_stated_and_kept_when_not(connection):
    def topics():
        return [
            row[0]
            for row in connection.execute(
                'SELECT name FROM paper_topic JOIN topic USING (topic_id) ORDER BY name COLLATE "C"'
            )
        ]

    write(connection, record("a", topics=("o'brien", "nan", "100% x")))
    assert topics() == ["100% x", "nan", "o'brien"]
    write(connection, record("a", topics=None))
    assert len(topics()) == 3
    write(connection, record("a", topics=("nan",)))
    assert topics() == ["nan"]
    write(connection, record("a", topics=()))
    assert topics() == []


def test_papers_that_share_a_doi_under_a_prefix_stay_apart(connection):
    write(connection, *(record(str(n), f"text {n}", identifiers={"doi": "10.1/same"}) for n in range(2174)))
    assert one(connection, "SELECT count(*) FROM paper") == 2174
    assert one(connection, "SELECT count(*) FROM paper_identifier WHERE value = '10.1/same'") == 2174


def test_an_open_paper_is_found_again_by_another_identifier_and_keeps_its_key(connection):
    write(connection, PaperRecord("doi:10.1/a", title="T", identifiers={"doi": "10.1/a", "arxiv": "2401.00001"}))
    write(connection, PaperRecord("arxiv:2401.00001", abstract="A", year=2024, identifiers={"arxiv": "2401.00001"}))
    row = connection.execute("SELECT paper_id, title, abstract, year FROM paper").fetchall()
    assert row == [("doi:10.1/a", "T", "A", 2024)]


def test_an_open_paper_never_takes_the_place_of_a_prefixed_one(connection):
    write(connection, record("a", identifiers={"doi": "10.1/a"}))
    write(connection, PaperRecord("doi:10.1/a", title="Other", identifiers={"doi": "10.1/a"}))
    assert one(connection, "SELECT count(*) FROM paper") == 2
    found = dict(
        connection.execute(
            "SELECT r.key, p.paper_id FROM paper_resolve(ARRAY['doi:10.1/a', 'p:a', 'doi:10.1/b']) r JOIN paper p USING (paper_pk)"
        ).fetchall()
    )
    assert found == {"doi:10.1/a": "doi:10.1/a", "p:a": "p:a"}


def test_single_papers_overtake_a_backlog(connection):
    write(connection, *(record(str(n)) for n in range(200)))
    write(connection, record("new", "fresh words"))
    claimed = connection.execute(
        "SELECT priority FROM job_claim('embed_papers', active_encoder_id(), NULL, 1, 60)"
    ).fetchone()
    assert claimed[0] == 10


def test_loads_in_opposite_directions_do_not_wait_for_each_other(database):
    papers = [record(f"{n:03}", f"words {n}") for n in range(180)]
    failures = []

    def load(order):
        try:
            with database.connect(autocommit=True) as connection:
                for at in range(0, 180, 20):
                    write(connection, *order[at : at + 20])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=load, args=(order,)) for order in (papers, papers[::-1], papers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with database.connect() as connection:
        assert one(connection, "SELECT count(*) FROM paper") == 180
        assert one(connection, "SELECT count(*) FROM passage") == 180


def test_every_change_of_words_or_filters_is_recorded_with_its_transaction(connection):
    write(connection, record("a", topics=("t",)))
    seen = one(connection, "SELECT count(*) FROM change")
    assert seen > 0
    write(connection, record("a", topics=("t",)))
    assert one(connection, "SELECT count(*) FROM change") == seen
    write(connection, record("a", topics=("t",), year=2001))
    assert one(connection, "SELECT count(*) FROM change") == seen + 1
    connection.execute("DELETE FROM paper")
    assert one(connection, "SELECT count(*) FROM change") > seen + 1
