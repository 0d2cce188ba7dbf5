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


@given(st.lists(st.integers(1, 512), min_size=1, max_size=100), st.integers(1, 4096), st.booleans())
def test_batches_keep_the_budget_and_lose_nothing(lengths: list[int], budget: int, few_shapes: bool):
    lengths = sorted(lengths, reverse=True)
    start = 0
    while start < len(lengths):
        end, padded = next_batch(lengths, start, Budget(budget, budget, 0.9, few_shapes=few_shapes), 512)
        assert end > start
        assert lengths[start] <= padded <= 512
        assert few_shapes or padded == lengths[start]
        assert end - start == 1 or (end - start) * padded <= budget
        assert min(lengths[start:end]) >= 0.9 * lengths[start]
        start = end
    assert start == len(lengths)


def test_a_runtime_that_keeps_every_shape_sees_few():
    budget, shapes = Budget(1024, 1024, 0.95, few_shapes=True), set()
    for longest in range(1, 511):
        for n_rows in range(1, 1025):
            end, padded = next_batch([longest] * n_rows, 0, budget, 510)
            assert longest <= padded <= 510
            shapes.add((end, padded))
            if n_rows > end:
                break
    assert len(shapes) < 150


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
