"""Sentence ends, as a reader sees them."""

import pytest

from corpus.sentences import find_last_sentence_end, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two ends.", ["One ends.", "Two ends."]),
        ("As Lee et al. (2018) introduced it. Then more.", ["As Lee et al. (2018) introduced it.", "Then more."]),
        ("We see it (Fig. 2c). Next one.", ["We see it (Fig. 2c).", "Next one."]),
        ("Tasks, e.g. memory networks, i.e. nets.", ["Tasks, e.g. memory networks, i.e. nets."]),
        ("By J. Smith and A. B. Jones. They won.", ["By J. Smith and A. B. Jones.", "They won."]),
        ("It is 3.5 mm. So what? Yes! Good.", ["It is 3.5 mm.", "So what?", "Yes!", "Good."]),
        ("He said “stop.” She left.", ["He said “stop.”", "She left."]),
        ("Known in archaea.12,13 The next one.", ["Known in archaea.12,13", "The next one."]),
        ("Shown before [3]. Later.[4] More.", ["Shown before [3].", "Later.[4]", "More."]),
        ("这是一句。这是二句！三", ["这是一句。", "这是二句！", "三"]),
        ("A heading\n\nText follows. End.", ["A heading", "Text follows.", "End."]),
        ("See Eq. (3) and Sec. 4 vs. others. Done.", ["See Eq. (3) and Sec. 4 vs. others.", "Done."]),
        ("", []),
    ],
)
def test_sentences(text, sentences):
    assert split_sentences(text) == sentences


def test_a_stop_just_before_the_end_of_the_window_looks_beyond_it():
    text = "Shown by Lee et al. (2018) and others."
    assert find_last_sentence_end(text, 0, text.index("al.") + 3) is None
    text = "It ends. Next"
    assert find_last_sentence_end(text, 0, 8) == 8
    assert find_last_sentence_end("value 3.14 is", 0, 8) is None
