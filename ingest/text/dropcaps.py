"""Large initials: one letter over several lines at the start of a section, put back before the word it begins."""

from __future__ import annotations

from ingest.text.fragments import Fragment
from ingest.text.lexicon import is_word

_TIMES_LARGER = 1.8


def join_drop_caps(fragments: list[Fragment]) -> None:
    """Put each large initial before the line that it belongs to and take it out, in place."""
    initials = [
        f for f in fragments if f.n_chars <= 2 and f.size > 16 and f.text[:1].isalpha() and f.text[:1].isupper()
    ]
    for initial in initials:
        beside = [
            f
            for f in fragments
            if f is not initial
            and f.size * _TIMES_LARGER < initial.size
            and f.n_chars > 8
            and -2 <= f.x0 - initial.x1 < initial.size
            and initial.y0 - 0.3 * initial.size <= f.base <= initial.y1 + 2
        ]
        if len(beside) < 2:
            continue  # beside a real initial stand two lines or more
        line = min(beside, key=lambda f: f.base)
        first = line.text.split(" ", 1)[0].strip(",.;:")
        is_own_word = initial.text in {"A", "I"} and not is_word(initial.text + first) and is_word(first)
        line.text = initial.text + (" " if is_own_word else "") + line.text
        line.n_chars = len(line.text)
        line.x0 = min(line.x0, initial.x0)
        fragments.remove(initial)
