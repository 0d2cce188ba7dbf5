"""Running text out of markup, entities and inverted indexes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.words import abstract_of, from_inverted_index, plain, tidy, title_of


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("H<sub>2</sub>O and CO<jats:sub>2</jats:sub>", "H2O and CO2"),
        ("<jats:p>One.</jats:p><jats:p>Two.</jats:p>", "One. Two."),
        ("&lt;jats:p&gt;Doubly escaped&lt;/jats:p&gt;", "Doubly escaped"),
        ("Salt &amp;amp; pepper &amp;lt; 3", "Salt & pepper < 3"),
        ("p < 0.05 and n > 30", "p < 0.05 and n > 30"),
        ("p<0.05, a<b and c>d", "p<0.05, a<b and c>d"),
        ("we show that x<y>z", "we show that x<y>z"),
        ("Don&apos;t, R&D, AT&T", "Don't, R&D, AT&T"),
        ("line\n  broken\ttext ", "line broken text"),
        ("a <mml:math><mml:mi>x</mml:mi><mml:mo>=</mml:mo><mml:mn>3</mml:mn></mml:math> b", "a x=3 b"),
        ('<a href="https://example.org/?a=1&b=2">link</a>ed', "linked"),
        ("<!-- hidden -->shown<script>no()</script>", "shown"),
        ("café \u2028 über", "café über"),
        (None, ""),
        (["x"], ""),
    ],
)
def test_plain(raw: object, expected: str):
    assert plain(raw) == expected


def test_a_formula_that_stands_there_twice_is_read_once():
    raw = (
        "<jats:alternatives><jats:tex-math>$$E=mc^2$$</jats:tex-math>"
        "<mml:math><mml:mi>E</mml:mi></mml:math></jats:alternatives>"
    )
    assert plain(raw) == "E"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("<h4>Background</h4>Cells divide.<h4>Methods</h4>We looked.", "Background: Cells divide. Methods: We looked."),
        ("<jats:title>ABSTRACT</jats:title><jats:p>Words.</jats:p>", "Words."),
        (
            "<jats:title>Abstract</jats:title><jats:sec><jats:title>Aim:</jats:title><jats:p>X.</jats:p></jats:sec>",
            "Aim: X.",
        ),
        ("<jats:p>Abstract</jats:p>", None),
        ("Abstract interpretation is a theory.", "Abstract interpretation is a theory."),
        ("No abstract available.", None),
        ("  ", None),
        (7, None),
    ],
)
def test_abstract_of(raw: object, expected: str | None):
    assert abstract_of(raw) == expected


def test_titles_lose_markup():
    assert title_of("On <i>E. coli</i> &amp; <scp>dna</scp>") == "On E. coli & dna"
    assert title_of("") is None


def test_surrogates_and_nul():
    assert tidy("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert tidy("\ud83d\ude00") == "😀"
    assert tidy("\ud83d") == "\N{REPLACEMENT CHARACTER}"


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6), min_size=1))
def test_an_inverted_index_is_put_back(words: list[str]):
    index: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        index.setdefault(word, []).append(place)
    assert from_inverted_index(index) == " ".join(words)


@pytest.mark.parametrize("value", [None, {}, [], "text", {"a": None}, {"a": ["x"]}, 3])
def test_what_is_no_inverted_index_gives_no_abstract(value: object):
    assert from_inverted_index(value) is None


@given(st.text())
def test_plain_is_stable_and_storable(raw: str):
    once = plain(raw)
    once.encode()
    assert "\x00" not in once
    assert once == " ".join(once.split())
