"""Passages: exact slices that cover their section, whatever the text."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.passages import OVERLAP_CHARS, PASSAGE_CHARS, PassageSlice, Section, cut_passages, page_of

pieces = st.sampled_from(
    [
        "a",
        "word ",
        "Ends here. ",
        "\n\n",
        " ",
        "。",
        "文字",
        "x" * 700,
        " " * 900,
        "et al. (2018) ",
        "\u00a0",
        "e\u0301",
    ]
)
texts = st.one_of(st.text(max_size=300), st.lists(pieces, max_size=400).map("".join))


def visible(text, start, end):
    return text[start:end].strip()


@settings(max_examples=150, deadline=None)
@given(texts)
@example("x" * 10_000)
@example(" " * 10_000)
@example("a" + " " * 5_000 + "b")
@example("word " * 4_000)
def test_any_text_is_covered_by_slices_that_overlap_as_asked(text):
    passages = cut_passages(text)
    assert bool(passages) == bool(text.strip())
    for p in passages:
        assert 0 < p.char_end - p.char_start <= PASSAGE_CHARS
        piece = text[p.char_start : p.char_end]
        assert piece == piece.strip()
        assert piece
    if passages:
        assert not visible(text, 0, passages[0].char_start)
        assert not visible(text, passages[-1].char_end, len(text))
    for one, two in pairwise(passages):
        assert one.char_start < two.char_start
        assert one.char_end < two.char_end
        assert one.char_end - two.char_start <= OVERLAP_CHARS
        assert not visible(text, one.char_end, max(one.char_end, two.char_start))
        if one.char_end <= two.char_start:  # only over white space as long as a passage
            assert two.char_start - one.char_end > 1000


@settings(max_examples=100, deadline=None)
@given(texts, st.lists(st.tuples(st.integers(-5, 9_000), st.integers(-5, 9_000), st.booleans()), max_size=6))
def test_no_passage_crosses_a_section_or_comes_from_references(text, cuts):
    sections = [Section("references" if refs else "other", f"S{i}", a, b) for i, (a, b, refs) in enumerate(cuts)]
    passages = cut_passages(text, sections)
    for p in passages:
        for s in sections:
            crosses = s.char_start < s.char_end and (
                p.char_start < s.char_start < p.char_end or p.char_start < s.char_end < p.char_end
            )
            assert not crosses
    titles = {s.title: s for s in sections}
    for p in passages:
        if p.section is not None:
            s = titles[p.section]
            assert s.kind != "references"
            assert s.char_start <= p.char_start
            assert p.char_end <= s.char_end


def test_passage_ends_at_the_last_sentence_end_near_the_limit():
    text = "Words and more words are here. " * 100
    first = cut_passages(text)[0]
    assert text[first.char_end - 1] == "."
    assert first.char_end > PASSAGE_CHARS - OVERLAP_CHARS


@pytest.mark.parametrize("tail", ["et al. (2018) introduced", "(Fig. 2c) shows", "e.g. memory", "of 3.5 mm"])
def test_an_abbreviation_ends_no_passage(tail):
    text = "w" * 1500 + ". " + "x" * 200 + " " + tail + " " + "y" * 400
    first = cut_passages(text)[0]
    assert not text[: first.char_end].endswith(("al.", "Fig.", "e.g.", "3."))


def test_next_passage_starts_at_a_word_200_characters_before_the_end():
    text = "abcdefg " * 600
    one, two = cut_passages(text)[:2]
    assert text[two.char_start - 1].isspace()
    assert OVERLAP_CHARS - 8 <= one.char_end - two.char_start <= OVERLAP_CHARS


def test_text_without_spaces_is_cut_hard():
    spans = [(p.char_start, p.char_end) for p in cut_passages("x" * 4_000)]
    assert spans == [(0, 1800), (1600, 3400), (3200, 4000)]


def test_first_and_last_page_are_named():
    text = "word " * 700
    passages = cut_passages(text, [Section("abstract", "abstract", 0, len(text))], [0, 1000, 1700, 3490])
    assert passages[0] == PassageSlice(0, 1799, "abstract", 1, 3)
    assert passages[-1].page_to == 4
    assert cut_passages(text)[0].page_from is None
    assert page_of(1000, [0, 1000]) == 2


def test_section_goes_through_json():
    section = Section("method", "2 Method", 3, 9)
    assert Section.from_json(section.to_json()) == section
