"""Receipts are stable, and a comparison names each thing that is missing, changed or new."""

import gzip
import json

import pytest

from corpus import receipt
from corpus.errors import InputError
from corpus.receipt_compare import compare
from ingest.papers import write_papers
from ingest.records import PaperRecord
from sql.files import queries
from tests.search.corpus import embed

ROWS = [
    PaperRecord("p:a", is_prefixed=True, title="Snails", abstract="Slow animals with houses.", topics=("one", "two")),
    PaperRecord("p:b", is_prefixed=True, title="Bees", abstract="Quick animals.", topics=("two",)),
    PaperRecord("p:c", is_prefixed=True, title="Moss", abstract="No animal."),
]


@pytest.fixture
def filled(database):
    with database.connect() as connection:
        write_papers(connection, ROWS)
    embed(database)
    return database


def take(database):
    with database.connect(autocommit=True) as connection:
        return receipt.take(connection)


def change(database, *queries):
    with database.connect() as connection:
        for query in queries:
            connection.execute(query)


def test_the_same_corpus_gives_the_same_files_whatever_its_row_numbers(filled, tmp_path):
    before = take(filled)
    receipt.write(before, tmp_path / "one")
    with filled.connect() as connection:
        connection.execute("DELETE FROM paper WHERE paper_id = 'p:a'")
        write_papers(connection, ROWS[:1])
    embed(filled)
    receipt.write(take(filled), tmp_path / "two")
    assert (tmp_path / "one" / receipt.DETAIL).read_bytes() == (tmp_path / "two" / receipt.DETAIL).read_bytes()
    heads = [json.loads((tmp_path / name / receipt.NAME).read_text()) | {"taken_at": ""} for name in ("one", "two")]
    assert heads[0] == heads[1]
    assert heads[0]["topics"]["two"]["papers"]["n"] == 2
    assert heads[0]["topics"][""]["papers"]["n"] == 1
    assert compare(receipt.read(tmp_path / "one"), take(filled)).is_equal


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_no_table_is_read_once_for_each_paper(filled, is_analyzed):
    """A database that was just restored has no statistics."""
    named = queries("receipt")
    with filled.connect(autocommit=True) as connection:
        if is_analyzed:
            connection.execute("ANALYZE")
        with connection.transaction():
            connection.execute(named["plan"])
            lines = [row[0] for row in connection.execute("EXPLAIN " + named["papers"], {"encoder_id": 1}).fetchall()]
    assert not [line for line in lines if "Seq Scan on passage" in line or "Seq Scan on paper_embedding" in line], lines


@pytest.mark.parametrize(
    ("query", "side", "part", "named"),
    [
        ("DELETE FROM paper WHERE paper_id = 'p:b'", "missing", "papers", "p:b"),
        ("DELETE FROM passage WHERE text LIKE '%%Slow%%'", "missing", "passages", "p:a"),
        ("DELETE FROM paper_embedding", "missing", "embeddings", "p:c"),
        ("DELETE FROM topic WHERE name = 'one'", "missing", "topics", "one"),
        ("UPDATE passage_embedding SET embedding = (SELECT embedding FROM paper_embedding JOIN paper USING (text_sha256) WHERE paper_id = 'p:b')", "changed", "embeddings", "p:a"),
        ("UPDATE paper SET mark = 'star' WHERE paper_id = 'p:c'", "changed", "papers", "facts"),
        ("UPDATE paper SET title = 'Slugs' WHERE paper_id = 'p:a'", "changed", "papers", "words"),
        ("INSERT INTO paper_identifier SELECT 'doi', '10.1/y', paper_pk FROM paper WHERE paper_id = 'p:a'", "changed", "papers", "identifiers"),
        ("UPDATE topic SET title = 'x' WHERE name = 'two'", "changed", "topics", "two"),
        ("INSERT INTO paper (paper_id) VALUES ('doi:10.1/new')", "new", "papers", "doi:10.1/new"),
        ("INSERT INTO setting (name, value) VALUES ('search', '{}')", "new", "other", "setting search"),
        ("INSERT INTO document (paper_pk, sha256, n_bytes, file_name) SELECT paper_pk, sha256('x'), 1, 'x.pdf' FROM paper WHERE paper_id = 'p:a'", "new", "documents", "x.pdf"),
    ],
)  # fmt: skip
def test_each_difference_is_named(filled, query, side, part, named):
    before = take(filled)
    change(filled, query)
    found = compare(before, take(filled))
    assert not found.is_equal
    assert named in json.dumps(getattr(getattr(found, side), part))


def test_without_the_detail_file_topics_are_told_apart(filled, tmp_path):
    receipt.write(take(filled), tmp_path)
    (tmp_path / receipt.DETAIL).write_bytes(gzip.compress(b"{}\n"))
    change(filled, "DELETE FROM paper WHERE paper_id = 'p:b'")
    found = compare(receipt.read(tmp_path), take(filled))
    assert not found.is_named
    assert any(text.startswith("papers of two: 2 before, 1 now") for text in found.missing.other)


def test_what_is_no_receipt_is_said(tmp_path):
    with pytest.raises(InputError, match="There is no receipt"):
        receipt.read(tmp_path)
    for text in ("not json", "[]", '{"format": 99, "whole": {}}'):
        (tmp_path / receipt.NAME).write_text(text)
        with pytest.raises(InputError):
            receipt.read(tmp_path)
