"""Windows and batches, as pure rules."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from encoders.batches import Budget, next_batch
from encoders.tokens import window_starts


@given(st.integers(0, 5000), st.integers(1, 600))
def test_windows_cover_everything_and_overlap(n_pieces: int, size: int):
    starts = window_starts(n_pieces, size)
    assert starts[0] == 0
    if n_pieces <= size:
        assert starts == [0]
        return
    assert starts[-1] + size == n_pieces
    for before, after in pairwise(starts):
        assert before < after
        assert before + size - after >= size // 8 - 1


def test_windows_are_as_few_as_the_overlap_allows():
    assert window_starts(510, 510) == [0]
    assert window_starts(511, 510) == [0, 1]
    assert window_starts(957, 510) == [0, 447]
    assert len(window_starts(958, 510)) == 3


@given(st.lists(st.integers(1, 512), min_size=1, max_size=100), st.integers(1, 4096))
def test_batches_keep_the_budget_and_lose_nothing(lengths: list[int], budget: int):
    lengths = sorted(lengths, reverse=True)
    start = 0
    while start < len(lengths):
        end = next_batch(lengths, start, Budget(budget, budget, 0.9))
        assert end > start
        assert end - start == 1 or (end - start) * lengths[start] <= budget
        assert min(lengths[start:end]) >= 0.9 * lengths[start]
        start = end
    assert start == len(lengths)


def test_a_budget_finds_the_limit_of_its_device():
    budget = Budget(1000, 16_000, 0.9)
    for _ in range(9):
        budget.grow(budget.tokens)
    assert budget.tokens == 16_000
    budget.shrink(16_000)
    assert budget.tokens == 8_000
    budget.grow(8_000)
    assert budget.tokens == 8_000
    budget.grow(10)
    assert budget.tokens == 8_000
