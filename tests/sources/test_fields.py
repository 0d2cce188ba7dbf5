"""Forgiving access to fields, identifiers, names, dates, licences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources import fields as f
from ingest.sources.licences import is_free, licence_word

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=5), inside, max_size=4),
    max_leaves=10,
)


@given(anything)
def test_no_shape_breaks_a_reader(value: object):
    for reader in (
        f.mapping, f.listed, f.objects, f.text, f.texts, f.number, f.flag, f.day, f.day_of_ms, f.year, f.link, f.named,
        f.month_number, f.version_of, licence_word,
    ):  # fmt: skip
        reader(value)
    f.identifiers(
        doi=value, arxiv=value, pmid=value, pmcid=value, openalex=value, s2=value, acl=value, openreview=value
    )
    f.day_of(value, value, value)
    f.person(value, value, value)
    f.reference(value, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("109", 109), (109, 109), (109.0, 109), (True, None), (-1, None), ("1,000", None), (None, None), ([], None)],
)
def test_numbers(value: object, expected: int | None):
    assert f.number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2018-02-13T00:00:00Z", "2018-02-13"), ("2024/02/03", "2024-02-03"), ("20240203", "2024-02-03"),
        ("2018-02", None), ("2018", None), ("2018-13-40", None), (2018, None), (None, None),
    ],
)  # fmt: skip
def test_days(value: object, expected: str | None):
    assert f.day(value) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [(("2018",), 2018), ((2018,), 2018), ((None, "2019-04"), 2019), (("20240203",), 2024), (("n.d.", 0), None)],
)
def test_years(values: tuple[object, ...], expected: int | None):
    assert f.year(*values) == expected


@pytest.mark.parametrize(
    ("given_", "family", "whole", "expected"),
    [
        ("Ada", "Lovelace", None, "Ada Lovelace"),
        (None, None, "Lovelace, Ada", "Ada Lovelace"),
        (None, None, "Gigantum, Inc.", "Gigantum, Inc."),
        (None, None, "King, Martin Luther, Jr.", "King, Martin Luther, Jr."),
        (None, "Collaboration", None, "Collaboration"),
        (None, None, None, None),
    ],
)
def test_names(given_: object, family: object, whole: object, expected: str | None):
    assert f.person(given_, family, whole) == expected


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"doi": "https://doi.org/10.1000/ABC"}, {"doi": "10.1000/abc"}),
        ({"doi": "10.48550/arXiv.2005.11401"}, {"doi": "10.48550/arxiv.2005.11401", "arxiv": "2005.11401"}),
        ({"arxiv": "oai:arXiv.org:hep-th/9901001"}, {"arxiv": "hep-th/9901001"}),
        ({"arxiv": "http://arxiv.org/abs/2005.11401v4"}, {"arxiv": "2005.11401"}),
        ({"pmid": 37258680, "pmcid": "pmc10949956"}, {"pmid": "37258680", "pmcid": "PMC10949956"}),
        ({"doi": None, "pmid": "", "s2": "no"}, {}),
    ],
)
def test_identifiers(given_: dict[str, object], expected: dict[str, str]):
    assert f.identifiers(**given_) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://creativecommons.org/licenses/by/4.0/", "cc-by-4.0"), ("CC BY-NC-ND 4.0", "cc-by-nc-nd-4.0"),
        ("cc by", "cc-by"), ("CCBY", "cc-by"), ("cc_by_nc_nd", "cc-by-nc-nd"), ("cc-by", "cc-by"), ("CC0", "cc0"),
        ("https://creativecommons.org/publicdomain/zero/1.0/legalcode", "cc0-1.0"), ("cc_no", None), ("", None),
        ("http://arxiv.org/licenses/nonexclusive-distrib/1.0/", "http://arxiv.org/licenses/nonexclusive-distrib/1.0/"),
        ("other-oa", "other-oa"), (None, None),
    ],
)  # fmt: skip
def test_licences(value: object, expected: str | None):
    assert licence_word(value) == expected


def test_free_licences():
    assert is_free("cc-by-nc-4.0")
    assert is_free("cc0-1.0")
    assert not is_free("https://www.springer.com/tdm")
    assert not is_free(None)
