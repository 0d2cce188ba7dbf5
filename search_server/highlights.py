"""Where the words of a question stand in a text: offsets in code points, found by the word index's own analysis."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from search_server.words import analysis
from search_server.words.folding import INVISIBLE

MAX_HIGHLIGHTS = 200


@lru_cache(maxsize=1)
def _runs() -> re.Pattern[str]:
    """Runs of word characters as they stand in a text, before folding: marks and what nobody sees inside them."""
    inside = rf"[^\W_]|[{analysis.mark_class()}{INVISIBLE}]"
    return re.compile(rf"(?:{inside})+")


def highlights(text: str, stems: Iterable[str]) -> list[list[int]]:
    """Return [start, end) of each word of `text` that the question holds, in order; overlapping ones as one."""
    wanted = set(stems)
    if not wanted:
        return []
    found: list[list[int]] = []
    runs = [(m.start(), m.end()) for m in _runs().finditer(text)]
    for place, (start, end) in enumerate(runs):
        if _holds(text[start:end], wanted):
            spans = _paired_spans(text, start, end, wanted) or [[start, end]]
        elif (
            place + 1 < len(runs)
            and runs[place + 1][0] == end + 1
            and _is_joined(text, start, runs[place + 1][1], wanted)
        ):
            spans = [[start, runs[place + 1][1]]]
        else:
            continue
        for span in spans:
            if found and span[0] <= found[-1][1]:
                found[-1][1] = max(found[-1][1], span[1])
            else:
                found.append(span)
        if len(found) >= MAX_HIGHLIGHTS:
            break
    return found


def _holds(run: str, wanted: set[str]) -> bool:
    return any(analysis.stem(word) in wanted or word in wanted for word in analysis.surface_words(run))


def _is_joined(text: str, start: int, end: int, wanted: set[str]) -> bool:
    """Whether two runs with a joint between them are one word of the question (`COVID-19` for `covid19`)."""
    words = analysis.surface_words(text[start:end])
    return len(words) >= 3 and analysis.stem(words[-1]) in wanted


def _paired_spans(text: str, start: int, end: int, wanted: set[str]) -> list[list[int]]:
    """In scripts without blanks: the pairs of characters that the question holds, not the whole run."""
    run = text[start:end]
    if run.isascii() or len(analysis.surface_words(run)) < 2:
        return []
    spans: list[list[int]] = []
    for at in range(start, end - 1):
        words = analysis.surface_words(text[at : at + 2])
        if len(words) == 1 and words[0] in wanted:
            if spans and at <= spans[-1][1]:
                spans[-1][1] = at + 2
            else:
                spans.append([at, at + 2])
    return spans
