"""A JSONL row as a record: what is taken, what is unknown, what cannot be used."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import InputError
from corpus.texts import paper_text, storable
from ingest.records import parse_year, record_from_row


@pytest.mark.parametrize(
    ("value", "year"),
    [
        (2019, 2019), ("2021", 2021), (2020.0, 2020), ("2020.0", 2020), (" 1999 ", 1999), ("2018-05-01", 2018), (None, None),
        ("", None), ("n.d.", None), (0, None), ("0", None), (True, None), (float("nan"), None), (2020.5, None), (99, None),
        (12345, None), (-2020, None), ([], None), ("in press", None), ("20191", None), ("２０２１", 2021),
    ],
)  # fmt: skip
def test_years(value, year):
    assert parse_year(value) == year


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.integers())))
def test_a_year_is_null_or_one(value):
    year = parse_year(value)
    assert year is None or 1000 <= year <= 2999


@pytest.mark.parametrize(
    "row", [None, [], "x", 1, {}, {"_id": None}, {"_id": ""}, {"_id": "  "}, {"_id": True}, {"_id": []},
            {"_id": "a", "title": 5}, {"_id": "a", "text": ["x"]}, {"_id": "a", "metadata": [1]}],
)  # fmt: skip
def test_rows_that_cannot_be_used(row):
    with pytest.raises(InputError):
        record_from_row(row, prefix="p")


@pytest.mark.parametrize(
    "row",
    [
        {"_id": "x" * 20_000}, {"_id": "a", "metadata": {"doi": "10.1234/" + "x" * 20_000}},
        {"_id": "a", "metadata": {"topics": ["t" * 20_000]}}, {"_id": "a", "metadata": {"x": json.loads("[" * 300 + "]" * 300)}},
    ],
)  # fmt: skip
def test_rows_that_no_index_can_hold_are_refused_one_by_one(row):
    with pytest.raises(InputError):
        record_from_row(row, prefix="p")


def test_an_endless_year_is_unknown():
    assert parse_year(10**400) is None
    assert parse_year(-(10**400)) is None


def test_a_prefixed_row_keeps_its_key_whatever_identifiers_it_states():
    record = record_from_row(
        {"_id": "10.1/x/text", "title": "T", "metadata": {"doi": "10.5555/ABC", "arxiv": "2401.00042v2"}}, prefix="p"
    )
    assert record.paper_id == "p:10.1/x/text"
    assert record.identifiers == {"doi": "10.5555/abc", "arxiv": "2401.00042"}
    assert record.is_prefixed


def test_without_a_prefix_the_first_known_identifier_is_the_key():
    assert record_from_row({"_id": "x1", "metadata": {"doi": "10.5555/A"}}, prefix=None).paper_id == "doi:10.5555/a"
    assert record_from_row({"_id": "arXiv:2401.00042v3"}, prefix=None).paper_id == "arxiv:2401.00042"
    with pytest.raises(InputError, match="--prefix"):
        record_from_row({"_id": "row-7"}, prefix=None)


def test_topics_stated_empty_are_none_and_not_stated_are_left_alone():
    assert record_from_row({"_id": "1", "metadata": {"topics": []}}, prefix="p").topics == ()
    assert record_from_row({"_id": "1"}, prefix="p").topics is None
    assert record_from_row({"_id": "1", "metadata": {"topics": ["a", "a", "b "]}}, prefix="p").topics == ("a", "b ")


def test_the_rest_of_the_metadata_is_kept_raw_and_can_be_stored():
    record = record_from_row({"_id": "1", "metadata": {"year": 2020, "x": {"y": ["\ud800", float("inf")]}}}, prefix="p")
    assert json.loads(json.dumps(record.raw, allow_nan=False)) == {"x": {"y": ["\ufffd", None]}}


def test_what_no_database_holds_is_replaced_and_counted():
    record = record_from_row({"_id": "1", "title": "a\x00b", "text": "c\udbffd"}, prefix="p")
    assert (record.title, record.abstract, record.n_replaced_chars) == ("a\ufffdb", "c\ufffdd", 2)


@given(st.text(st.characters(exclude_categories=[])))
def test_storable_text_is_utf8_without_nul_and_keeps_everything_else(text):
    kept, n = storable(text)
    kept.encode()
    assert "\x00" not in kept
    assert len(kept) == len(text)
    assert sum(a != b for a, b in zip(text, kept, strict=True)) == n


@pytest.mark.parametrize(
    ("title", "abstract", "text"),
    [
        ("T", "A", "T\n\nA"),
        (" T\n", "\tA ", "T\n\nA"),
        ("", "A", "A"),
        ("T", None, "T"),
        (None, "  ", None),
        (None, None, None),
    ],
)
def test_paper_text(title, abstract, text):
    assert paper_text(title, abstract) == text
