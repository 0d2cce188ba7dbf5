"""Cuts a text into passages: the unit that is retrieved and quoted.

A passage is at most 1,800 characters and exactly the slice that its offsets name. Its end moves back at most 200
characters to the last sentence end, else to the last white space, else stays; the next one starts 200 characters
before that end, moved forward to a word start. No passage crosses a section's end, none comes from a reference list
or a note in the margin, none is empty or only white space.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Self

from corpus.sentences import find_last_sentence_end

PASSAGE_CHARS = 1800
OVERLAP_CHARS = 200
WITHOUT_PASSAGES = frozenset({"references", "aside"})
"""Kinds of sections that stay in the text and make no passages: reference lists, notes in the margin."""

_WORD_START = re.compile(r"(?<=\s)\S")
_VISIBLE = re.compile(r"\S")
_LAST_SPACE = re.compile(r"\s(?=\S*\Z)")


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a text under one heading; offsets count code points, the end is exclusive."""

    kind: str
    title: str
    char_start: int
    char_end: int

    def to_json(self) -> dict[str, Any]:
        """Return the section as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the section that `to_json` wrote."""
        return cls(
            kind=str(value["kind"]),
            title=str(value["title"]),
            char_start=int(value["char_start"]),
            char_end=int(value["char_end"]),
        )


@dataclass(frozen=True, slots=True)
class PassageSlice:
    """One passage: text[char_start:char_end], the title of its section, and its first and last page (from 1)."""

    char_start: int
    char_end: int
    section: str | None
    page_from: int | None
    page_to: int | None


def cut_passages(text: str, sections: Sequence[Section] = (), page_starts: Sequence[int] = ()) -> list[PassageSlice]:
    """Return the passages of a text, in order.

    `sections` may leave gaps (cut as text without a section) and may be nested (the one that starts last wins).
    `page_starts` are rising offsets, one a page; without them pages are None. Any text is allowed.
    """
    passages: list[PassageSlice] = []
    for start, end, section in _regions(len(text), sections):
        if section is not None and section.kind in WITHOUT_PASSAGES:
            continue
        title = None if section is None else section.title or section.kind
        passages += [
            PassageSlice(a, b, title, page_of(a, page_starts), page_of(b - 1, page_starts))
            for a, b in _cut_region(text, start, end)
        ]
    return passages


def page_of(offset: int, page_starts: Sequence[int]) -> int | None:
    """Return the page (from 1) that the character at `offset` stands on, or None where there are no pages."""
    return max(bisect_right(page_starts, offset), 1) if page_starts else None


def _regions(n_chars: int, sections: Sequence[Section]) -> Iterator[tuple[int, int, Section | None]]:
    """Yield stretches of [0, n_chars) that do not overlap, each with its innermost section."""
    inside = [
        (max(s.char_start, 0), min(s.char_end, n_chars), s)
        for s in sections
        if max(s.char_start, 0) < min(s.char_end, n_chars)
    ]
    inside.sort(key=lambda item: item[0])
    bounds = sorted({0, n_chars, *(a for a, _, _ in inside), *(b for _, b, _ in inside)})
    open_sections: list[tuple[int, Section]] = []
    following = 0
    for start, end in pairwise(bounds):
        while following < len(inside) and inside[following][0] <= start:
            open_sections.append((inside[following][1], inside[following][2]))
            following += 1
        open_sections = [item for item in open_sections if item[0] > start]
        yield start, end, open_sections[-1][1] if open_sections else None


def _cut_region(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the slices of one region; each covers text that the one before did not."""
    stop = start + len(text[start:end].rstrip())
    at = _next_visible(text, start, stop)
    while at is not None:
        cut = _passage_end(text, at, stop)
        yield at, cut
        if cut >= stop:
            return
        at = _next_start(text, at, cut, stop)


def _passage_end(text: str, start: int, stop: int) -> int:
    limit = start + PASSAGE_CHARS
    if limit >= stop:
        return stop
    earliest = limit - OVERLAP_CHARS
    found = find_last_sentence_end(text, earliest - 1, limit)
    if found is None and not text[limit].isspace():
        space = _LAST_SPACE.search(text[earliest:limit])
        found = earliest + space.start() if space else None
    cut = limit if found is None else found
    return start + len(text[start:cut].rstrip())


def _next_start(text: str, start: int, cut: int, stop: int) -> int | None:
    at = max(cut - OVERLAP_CHARS, start + 1)
    if not text[at - 1].isspace() or text[at].isspace():
        word = _WORD_START.search(text, at, cut)
        at = word.start() if word else at
    # White space longer than a passage: an overlap would give the same slice again, so go on behind it.
    visible = _next_visible(text, cut, stop)
    if visible is not None and visible >= at + PASSAGE_CHARS - OVERLAP_CHARS:
        return visible
    return at


def _next_visible(text: str, start: int, stop: int) -> int | None:
    match = _VISIBLE.search(text, start, stop)
    return match.start() if match else None
