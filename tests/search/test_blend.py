import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from search_server.blend import blend
from search_server.fusion import EQUAL_WEIGHTS, Entry
from search_server.rescore import fuse, gather
from search_server.words.search import WordHit

pairs = st.lists(
    st.tuples(st.one_of(st.just(float("nan")), st.floats(-1, 1)), st.floats(0, 30)), min_size=1, max_size=60
)


@given(pairs, st.lists(st.floats(0, 10), max_size=10), st.integers(0, 40))
def test_scores_are_finite_positive_and_the_sum_of_their_shares(rows, idfs, n_words):
    cosines, bm25 = (np.array(column) for column in zip(*rows, strict=True))
    found = blend(cosines, bm25, idfs=idfs, n_words=n_words)
    assert np.isfinite(found.scores).all()
    assert (found.scores > 0).all()
    np.testing.assert_allclose(found.meaning + found.words + 1e-6, found.scores)


@given(pairs)
def test_better_on_both_sides_is_never_behind(rows):
    cosines, bm25 = (np.array(column) for column in zip(*rows, strict=True))
    cosines = np.nan_to_num(cosines, nan=0.0)
    scores = blend(cosines, bm25, idfs=[1.0, 2.0], n_words=4).scores
    for i in range(len(rows)):
        for j in range(len(rows)):
            if cosines[i] > cosines[j] and bm25[i] > bm25[j]:
                assert scores[i] >= scores[j] - 1e-9


def test_no_embeddings_at_all_leave_the_order_of_the_words():
    found = blend(np.full(3, np.nan), np.array([1.0, 3.0, 2.0]), idfs=[2.0], n_words=1)
    assert list(np.argsort(-found.scores)) == [1, 2, 0]
    assert found.meaning_weight == 0


def test_a_weight_of_zero_leaves_one_side():
    cosines, bm25 = np.array([0.9, 0.1, 0.5]), np.array([1.0, 3.0, 2.0])
    assert list(np.argsort(-blend(cosines, bm25, idfs=[2.0], n_words=1, words=0.0).scores)) == [0, 2, 1]
    assert list(np.argsort(-blend(cosines, bm25, idfs=[2.0], n_words=1, meaning=0.0).scores)) == [1, 2, 0]


def test_the_carrier_is_a_passage_of_its_paper_and_places_are_those_of_the_lists():
    lists = {
        "passage_vector": [Entry(1, 11, 1, 0.8), Entry(2, 21, 2, 0.4)],
        "passage_bm25": [Entry(2, 22, 1, 9.0)],
        "paper_vector": [Entry(3, 0, 1, 0.7)],
    }
    by_words = [WordHit(22, 2, 9.0), WordHit(31, 3, 1.0), WordHit(32, 3, 0.5)]
    near = {11: 0.8, 21: 0.4, 22: 0.39, 31: 0.3}
    rows = {row.paper_pk: row for row in fuse(
        gather(lists, by_words), near, {1: 0.5, 2: 0.5, 3: 0.7}, EQUAL_WEIGHTS, idfs=[3.0], n_words=2
    )}  # fmt: skip
    assert rows[1].passage_id == 11
    assert rows[2].passage_id == 22
    assert rows[2].places["passage_bm25"].rank == 1
    assert "passage_vector" not in rows[2].places
    assert rows[3].passage_id == 31
    assert rows[3].places["paper_vector"].rank == 1
