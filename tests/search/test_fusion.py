import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_server.fusion import (
    BOOST_RANGE,
    EQUAL_WEIGHTS,
    LISTS,
    Entry,
    Fused,
    apply_boosts,
    entries,
    fuse_rrf,
    order,
    put_first,
    share,
)


def test_seventh_in_a_and_tenth_in_b():
    a = entries((100 + n, 1000 + n, 1.0 - n / 100) for n in range(6))
    b = entries((200 + n, 2000 + n, 9.0 - n / 10) for n in range(9))
    a.append(Entry(1, 1, 7, 0.741))
    b.append(Entry(1, 1, 10, 12.3))
    fused = {row.paper_pk: row for row in fuse_rrf({"passage_vector": a, "passage_bm25": b}, EQUAL_WEIGHTS)}
    assert round(fused[1].score, 5) == 0.00974


def test_shares_of_two_passages_of_one_paper_do_not_add_up():
    lists = {"passage_vector": [Entry(1, 11, 1, 0.9)], "passage_bm25": [Entry(1, 12, 2, 3.0)]}
    (row,) = fuse_rrf(lists, EQUAL_WEIGHTS)
    assert row.score == pytest.approx(1 / 3 / 61)
    assert row.passage_id == 11
    assert set(row.places) == {"passage_vector"}


def test_share_of_the_paper_list_is_added_to_the_best_passage():
    lists = {"passage_bm25": [Entry(1, 12, 2, 3.0)], "paper_vector": [Entry(1, 0, 5, 0.5), Entry(2, 0, 6, 0.4)]}
    first, second = fuse_rrf(lists, EQUAL_WEIGHTS)
    assert first.score == pytest.approx(1 / 3 / 62 + 1 / 3 / 65)
    assert (second.paper_pk, second.passage_id) == (2, 0)


def test_equal_scores_go_by_single_rank_then_paper_id():
    rows = [Fused(1, 0, 1.0, {"paper_vector": Entry(1, 0, 3, 0.1)}, paper_id="b"),
            Fused(2, 0, 1.0, {"paper_vector": Entry(2, 0, 3, 0.1)}, paper_id="a"),
            Fused(3, 0, 1.0, {"paper_vector": Entry(3, 0, 2, 0.1)}, paper_id="z")]  # fmt: skip
    assert [row.paper_pk for row in order(rows)] == [3, 2, 1]


def test_a_list_of_weight_zero_brings_nothing_in():
    lists = {name: [Entry(n, n + 10, 1, 1.0)] for n, name in enumerate(LISTS)}
    rows = fuse_rrf(lists, {"passage_vector": 0.0, "passage_bm25": 2.0, "paper_vector": 0.0})
    assert [(row.paper_pk, row.score) for row in rows] == [(1, 2.0 / 61)]


def test_named_papers_come_first_and_keep_their_order():
    rows = [Fused(n, 0, 1.0 / n) for n in range(1, 6)]
    lifted = put_first(rows, {9: "identifier", 4: "title", 2: "title"})
    assert [row.paper_pk for row in lifted] == [2, 4, 9, 1, 3, 5]


@st.composite
def three_lists(draw):
    owners = draw(st.lists(st.integers(1, 6), min_size=1, max_size=30))
    passages = {100 + n: owner for n, owner in enumerate(owners)}
    lists = {}
    for name in LISTS[:2]:
        chosen = draw(st.permutations(sorted(passages)))[: draw(st.integers(0, len(passages)))]
        lists[name] = entries((passages[p], p, 1.0 / (n + 1)) for n, p in enumerate(chosen))
    papers = draw(st.permutations(range(1, 7)))[: draw(st.integers(0, 6))]
    lists["paper_vector"] = entries((p, 0, 1.0 / (n + 1)) for n, p in enumerate(papers))
    return lists


@given(three_lists(), st.lists(st.floats(0, 10), min_size=3, max_size=3))
def test_the_rule_by_another_way(lists, numbers):
    """Every score is what the rule says, worked out paper by paper."""
    weights = dict(zip(LISTS, numbers, strict=True))
    found = {row.paper_pk: row for row in fuse_rrf(lists, weights)}
    a, b, c = ({(e.passage_id or e.paper_pk): e for e in lists[name]} if weights[name] > 0 else {} for name in LISTS)
    owners = {e.passage_id: e.paper_pk for e in [*a.values(), *b.values()]}
    expected: dict[int, float] = {}
    for passage, owner in owners.items():
        total = sum(
            share(weights[n], side[passage].rank) for n, side in zip(LISTS[:2], (a, b), strict=True) if passage in side
        )
        expected[owner] = max(expected.get(owner, 0.0), total)
    for paper, entry in c.items():
        expected[paper] = expected.get(paper, 0.0) + share(weights["paper_vector"], entry.rank)
    assert set(found) == set(expected)
    for paper, score in expected.items():
        assert math.isclose(found[paper].score, score, rel_tol=1e-12)
    scores = [row.score for row in fuse_rrf(lists, weights)]
    assert scores == sorted(scores, reverse=True)


@given(three_lists(), st.floats(0.0, 5.0))
def test_boosts_are_bounded_and_remember_the_place_before(lists, factor):
    fused = fuse_rrf(lists, EQUAL_WEIGHTS)
    before = {row.paper_pk: row.score for row in fused}
    boosted = apply_boosts(fused, {pk: {"velocity": factor} for pk in before})
    for row in boosted:
        assert BOOST_RANGE[0] <= row.boosts["velocity"] <= BOOST_RANGE[1]
        assert math.isclose(row.score, before[row.paper_pk] * row.boosts["velocity"])
    assert sorted(row.rank_before for row in boosted) == list(range(1, len(boosted) + 1))
