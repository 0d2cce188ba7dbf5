import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_server.errors import BadParameter, EmptyQuestion, SearchProblem
from search_server.params import SEARCH_PARAMETERS, parse_search


def test_defaults():
    found = parse_search([("q", "  how  ")])
    assert (found.q, found.k, found.weights, found.fusion, found.explain, found.passages) == (
        "how",
        8,
        None,
        None,
        False,
        1,
    )


@pytest.mark.parametrize("q", ["", " ", "\t\n", "\u3000"])
def test_a_question_of_blanks_is_empty(q):
    with pytest.raises(EmptyQuestion):
        parse_search([("q", q)])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", "0"), ("k", "101"), ("k", "1000"), ("k", "-1"), ("k", "8.0"), ("k", ""), ("k", "١"), ("k", "1e1"),
        ("per_list", "0"), ("per_list", "201"), ("year_from", "x"), ("year_from", "20200"), ("explain", "maybe"),
        ("weights", "passage_vector:nan"), ("weights", "passage_vector:inf"), ("weights", "passage_vector:-1"),
        ("weights", "passage_vector:0"), ("weights", "vector:1"), ("weights", "passage_vector"), ("weights", ""),
        ("weights", "passage_vector:1,passage_vector:2"), ("weights", "passage_vector:1e999"),
        ("boosts", "velocity:1.3"), ("boosts", "velocity:0.7"), ("boosts", "fame:1.1"), ("fusion", "magic"),
        ("kind", "poem"), ("nothing", "1"), ("passages", "11"),
    ],
)  # fmt: skip
def test_out_of_bounds_is_named(name, value):
    with pytest.raises(BadParameter) as caught:
        parse_search([("q", "x"), (name, value)])
    assert caught.value.parameter == name
    assert caught.value.mend


def test_a_single_parameter_given_twice():
    with pytest.raises(BadParameter, match="twice"):
        parse_search([("q", "x"), ("k", "3"), ("k", "4")])


def test_the_nearest_parameter_is_named():
    with pytest.raises(BadParameter, match="exclude_topic"):
        parse_search([("q", "x"), ("exclude_topics", "a")])


def test_years_the_wrong_way_round():
    with pytest.raises(BadParameter):
        parse_search([("q", "x"), ("year_from", "2021"), ("year_to", "2020")])


def test_nul_and_surrogates_are_replaced():
    assert parse_search([("q", "a\0b\ud800c")]).q == "a\ufffdb\ufffdc"


def test_unnamed_lists_weigh_nothing():
    weights = parse_search([("q", "x"), ("weights", "passage_bm25:2")]).weights
    assert weights == {"passage_vector": 0.0, "passage_bm25": 2.0, "paper_vector": 0.0}


@given(st.lists(st.tuples(st.sampled_from([*SEARCH_PARAMETERS, "other"]), st.text(max_size=20)), max_size=6))
def test_anything_is_read_or_refused(items):
    try:
        found = parse_search(items)
    except SearchProblem as problem:
        assert 400 <= problem.status < 500
    else:
        assert 1 <= found.k <= 100
        assert found.q.strip()
