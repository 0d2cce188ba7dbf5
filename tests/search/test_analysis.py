import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_server.words.analysis import SMALL_WORDS, split_small, stem, stems, surface_words, title_key
from search_server.words.folding import fold


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COVID-19", "covid19"), ("TNF-α", "TNF-alpha"), ("β-catenin", "beta catenin"), ("naïve", "naive"),
        ("İzmir", "izmir"), ("Straße", "strasse"), ("ﬁbre", "fibre"), ("Søren", "soren"), ("chro\u00admatin", "chromatin"),
        ("\u212bngström", "ångström"), ("ＤＮＡ", "dna"), ("pre‑trained", "pretrained"), ("Crohn’s", "Crohn's"),
    ],
)  # fmt: skip
def test_spellings_meet(one, other):
    assert set(surface_words(one)) & set(surface_words(other))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arXiv:2310.11511v2", ["arxiv", "2310.11511"]),
        ("3.5-fold", ["3.5", "fold", "3.5fold"]),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("and/or", ["and", "or"]),
        ("U.S.A.", ["usa"]),
        ("end.Next", ["end", "next"]),
        ("snake_case", ["snake", "case"]),
        ("深層学習", ["深層", "層学", "学習"]),
        ("हिन्दी", ["हिन्दी"]),
        ("… 🙂 () ∅", []),
        ("p < 0.05", ["p", "0.05"]),
    ],
)
def test_words(text, words):
    assert surface_words(text) == words


@given(st.text())
def test_folding_is_idempotent_and_blind_to_normal_form(text):
    once = fold(text)
    assert fold(once) == once
    assert surface_words(unicodedata.normalize("NFD", text)) == surface_words(unicodedata.normalize("NFC", text))


@given(st.text())
def test_every_word_has_one_stem(text):
    words = surface_words(text)
    assert len(stems(words)) == len(words)
    assert all(word and len(word) <= 64 and not any(c.isspace() for c in word) for word in words)


@given(st.text(max_size=30), st.text(max_size=30))
def test_words_of_parts_are_words_of_the_whole(one, other):
    assert surface_words(f"{one}\n\n{other}") == surface_words(one) + surface_words(other)


def test_small_words():
    words, small = split_small(["how", "does", "the", "attention", "of", "heads", "work"])
    assert words == ["attention", "heads", "work"]
    assert set(small) <= SMALL_WORDS


def test_title_key_ignores_signs_and_case():
    assert title_key("Attention Is All You Need!") == title_key("attention is all you need")
    assert stem("networks") == stem("network")
