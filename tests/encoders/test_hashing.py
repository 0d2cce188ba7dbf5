"""The hashing encoder: bit for bit the same everywhere, any text, near where texts are near, and fast."""

import hashlib
import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from encoders.base import Encoder, check_embeddings
from encoders.hashing import HashingEncoder
from encoders.load import load_encoder

HARD = [
    "",
    " ",
    "?",
    "。。。",
    "😀",
    "\x00",
    "\ud800",
    "a",
    "Å",
    "\u2028",
    "x" * 5000,
    "日本語の文章です",
    "a😀b",
    "x y",
    "X Y",
]
ANY_TEXT = st.text(st.characters(codec=None), max_size=60)


def test_it_is_an_encoder():
    encoder = load_encoder("hashing")
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder, HashingEncoder)


def test_the_numbers_never_change():
    """A change here needs a new name of the rule, or old and new embeddings would meet in one list."""
    found = HashingEncoder().encode([*HARD, "The quick brown fox jumps over the lazy dog. " * 40])
    digest = hashlib.sha256(found.astype("<f4").tobytes()).hexdigest()
    assert digest == "90c3bfa89fe86be97e6d4012342cb57a9fd36b04ca4041c820c2f177a3632dbf"


@settings(max_examples=80)
@given(st.lists(st.one_of(ANY_TEXT, st.sampled_from(HARD)), max_size=12))
def test_any_text_has_a_unit_vector_that_its_company_does_not_change(texts: list[str]):
    encoder = HashingEncoder()
    together = encoder.encode(texts)
    check_embeddings(together, len(texts))
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(encoder.encode([text], kind="query")[0], vector)


def test_blocks_of_texts_join_in_order():
    texts = [f"passage number {number}" for number in range(600)]
    encoder = HashingEncoder()
    assert np.array_equal(
        encoder.encode(texts)[[0, 255, 256, 599]], encoder.encode([texts[i] for i in (0, 255, 256, 599)])
    )


def test_similar_texts_are_near_and_others_are_not():
    encoder = HashingEncoder()
    ask, near, form, far, word, glued = encoder.encode(
        [
            "multi-head attention in transformers",
            "Attention in a transformer has many heads: multi-head attention.",
            "transformer networks",
            "the price of copper in Chile",
            "deep network",
            "“deep” network",
        ]
    )
    assert ask @ near > 0.4 > 0.1 > ask @ far
    assert ask @ form > ask @ far
    assert word @ glued > 0.5


def test_every_byte_of_a_long_word_counts():
    one, two, three = HashingEncoder().encode(["x" * 3000 + "a", "x" * 3000 + "b", "x" * 3000 + "a"])
    assert not np.array_equal(one, two)
    assert np.array_equal(one, three)


def test_it_is_fast_enough_for_the_farm():
    """Two thousand passages of 1,800 characters a second and core leave most of a core to the rest of the path."""
    words = [f"word{number * number % 9973}" for number in range(250)]
    texts = [" ".join(words[i % 50 :] + words[: i % 50])[:1800] for i in range(512)]
    encoder = HashingEncoder()
    encoder.encode(texts[:64])
    started = time.process_time()
    encoder.encode(texts)
    assert len(texts) / (time.process_time() - started) > 2_000
