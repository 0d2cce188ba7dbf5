"""Whether a title stands on first pages as a title: in lines of its own, not in a sentence about another paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from ingest.fulltext.front import Front
from ingest.fulltext.letters import fold, letters, numbers, similarity

Match = Literal["exact", "close", "subtitle", "none"]
_MOST_LINES = 8
_NEXT_PART = re.compile(r"^(?:part|partie|teil|parte|volume|supplement)\s*(?:\d|[ivx]+\b|one|two|three)")
_CONTENTS = re.compile(r"(?i)^\W*(?:table of )?contents\W*$|(?:\.\s?){4,}\s*\d{1,4}$")
_SUBTITLE = re.compile(r"\s*(?::|\s[–—-]\s|\?|\.\s)\s*")


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """How well and on which page (from 0) a title was found, and whether other pages bear it too, as a running head."""

    match: Match = "none"
    page: int = 0
    is_running_head: bool = False

    def __bool__(self) -> bool:
        return self.match != "none"


def find_title(front: Front, titles: Sequence[str]) -> TitleMatch:
    """Find the best match of any of the titles: exact, then close, then without its subtitle."""
    best = TitleMatch()
    order: dict[Match, int] = {"exact": 0, "close": 1, "subtitle": 2, "none": 3}
    for title in titles:
        found = _find_one(front, title)
        if order[found.match] < order[best.match]:
            best = found
    return best


def _find_one(front: Front, title: str) -> TitleMatch:
    wanted = letters(title)
    if len(wanted) < 4:
        return TitleMatch()
    main = _main_title(title)
    close: TitleMatch | None = None
    short: TitleMatch | None = None
    for number, page in enumerate(front.pages):
        if sum(bool(_CONTENTS.search(line)) for line in page) >= 3:
            continue
        lines = [letters(line) for line in page]
        for start in range(len(lines)):
            found = _match_run(lines, page, start, wanted, title)
            if found == "exact":
                is_head = wanted in lines[start] and _n_pages_with_line(front, wanted) > 1
                return TitleMatch("exact", number, is_head)
            if found == "close" and close is None:
                close = TitleMatch("close", number)
            if main and short is None and _match_run(lines, page, start, letters(main), main) == "exact":
                short = TitleMatch("subtitle", number)
    return close or _by_read_title(front, title, wanted) or short or TitleMatch()


def _n_pages_with_line(front: Front, wanted: str) -> int:
    return sum(any(wanted in letters(line) for line in page) for page in front.pages)


def _match_run(lines: Sequence[str], page: Sequence[str], start: int, wanted: str, title: str) -> Match:
    """Compare the wanted letters to one up to eight lines from `start` on."""
    if not lines[start] or (lines[start][0] != wanted[0] and lines[start][:3] not in wanted[:12]):
        return "none"
    run = ""
    for end in range(start, min(start + _MOST_LINES, len(lines))):
        run += lines[end]
        if len(run) < 0.9 * len(wanted):
            if not wanted.startswith(run[:4]):
                return "none"
            continue
        if len(run) > 1.1 * len(wanted) + 2:
            return "none"
        if run == wanted or (run[:-1] == wanted and run[-1].isdigit() and not wanted[-1].isdigit()):
            following = fold(page[end + 1]) if end + 1 < len(page) else ""
            return "none" if _NEXT_PART.match(following) and not _NEXT_PART.search(fold(title)) else "exact"
        if (
            len(wanted) >= 20
            and _ratio(run, wanted) >= 0.92
            and numbers(" ".join(page[start : end + 1])) == numbers(title)
        ):
            return "close"
    return "none"


def _by_read_title(front: Front, title: str, wanted: str) -> TitleMatch | None:
    """Compare with the title that extraction and the file's properties give."""
    for read in front.titles:
        if letters(read) == wanted:
            return TitleMatch("exact", 0)
        if len(wanted) >= 20 and similarity(read, title) >= 0.75:
            return TitleMatch("close", 0)
    return None


def _main_title(title: str) -> str | None:
    main = _SUBTITLE.split(title, maxsplit=1)[0]
    return main if main != title and len(letters(main)) >= 15 and len(main.split()) >= 3 else None


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return 0.0 if matcher.real_quick_ratio() < 0.92 or matcher.quick_ratio() < 0.92 else matcher.ratio()


def is_in_head(front: Front, title: str, page: int, n_letters: int = 1500) -> bool:
    """Whether the whole title stands anywhere in the first letters of a page."""
    return page < len(front.pages) and letters(title) in letters("\n".join(front.pages[page]))[:n_letters]


def is_generic(title: str) -> bool:
    """Whether many papers bear such a title (Editorial, Introduction, Reply)."""
    return len(fold(title).split()) <= 2 or len(letters(title)) < 14
