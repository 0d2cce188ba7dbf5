"""Whether a title stands on first pages as a title: in lines of its own, not in a sentence about another paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from ingest.fulltext.companions import find_label, is_cover
from ingest.fulltext.front import Front
from ingest.fulltext.letters import fold, letters, numbers, similarity
from ingest.fulltext.wording import is_same_wording, is_sequel

Match = Literal["exact", "close", "subtitle", "none"]
_MOST_LINES = 8
_THIN = 700
# What may stand in the line before a title without meaning another paper: its label, and names of journals and houses.
_OWN_LABEL = re.compile(
    r"\b(?:title|copy of|version(?: of)?|papers?|articles?|cite(?: this.*)?|citation|reference|publication|manuscript|report|preprint|published in|"
    r"doi|thesis|review|research|letter|communication|note|survey|tutorial|focus|track|section|category|issue|session|series|topic|subject|"
    r"area|keywords?|original)$|\b(?:journal|proceedings|transactions|annals|conference|symposium|workshop|university|institute|department|"
    r"faculty|school|press|center|centre|society|academy)\b"
)
_UNFINISHED = frozenset((
    "of", "on", "to", "for", "from", "about", "re", "behind", "beyond", "against", "in", "with", "and", "the", "a", "an", "towards", "vs", "versus",
))  # fmt: skip
_CONTINUES = re.compile(
    r"(?i)(?!on behalf|for the\b.*\b(?:group|collaboration|team|investigators|consortium)|in (?:memor|press|collaboration|honou?r)|with (?:an? )?(?:appendix|"
    r"contribution|discussion))(?:and|or|with|without|for|in|of|on|using|via|under|to|through|during|as|versus|vs\.?|by means)\s+\S"
)
_BODY = re.compile(
    r"(?i)^\W*(?:(?:abstract|summary|keywords?)\b\s*(?:[.:\u2014\u2013-]|$)|(?:(?:1|i)\.?\s+)?introduction\W*$)"
)
_CONTENTS = re.compile(r"(?i)^\W*(?:table of )?contents\W*$|(?:\.\s?){4,}\s*\d{1,4}$")
_SUBTITLE = re.compile(r"\s*(?::|\s[–—-]\s|\?|\.\s)\s*")


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """How well and on which page (from 0) a title was found, and whether other pages bear it too, as a running head.

    `following` is the line below one that was found without its subtitle.
    """

    match: Match = "none"
    page: int = 0
    is_running_head: bool = False
    following: str = ""

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
        if number and not _may_stand_before(front, number - 1):
            break
        if sum(bool(_CONTENTS.search(line)) for line in page) >= 3 or find_label(front, number, [wanted]):
            continue
        lines = [letters(line) for line in page]
        # What stands below an abstract is its text, or another one in a book of them.
        n_head = next((n for n, line in enumerate(page) if _BODY.match(line)), len(lines))
        for start in range(n_head):
            found = _match_run(lines, page, start, wanted, title)
            if found == "exact":
                is_head = wanted in lines[start] and _n_pages_with_line(front, wanted) > 1
                return TitleMatch("exact", number, is_head)
            if found == "close" and close is None:
                close = TitleMatch("close", number)
            if main and short is None and (below := _below_main(lines, page, start, main)) is not None:
                short = TitleMatch("subtitle", number, following=below)
    return close or _by_read_title(front, title, wanted) or short or TitleMatch()


def _n_pages_with_line(front: Front, wanted: str) -> int:
    return sum(any(wanted in letters(line) for line in page) for page in front.pages)


def _match_run(lines: Sequence[str], page: Sequence[str], start: int, wanted: str, title: str) -> Match:
    """Compare the wanted letters to one up to eight lines from `start` on."""
    lead = next((len(word) for word in ("the", "an", "a") if fold(page[start]).startswith(f"{word} ")), 0)
    if not lines[start] or (not lead and lines[start][0] != wanted[0] and lines[start][:3] not in wanted[:12]):
        return "none"
    run = ""
    for end in range(start, min(start + _MOST_LINES, len(lines))):
        run += lines[end]
        if len(run) < 0.9 * len(wanted):
            if not wanted.startswith((run[:4], run[lead : lead + 4])):
                return "none"
            continue
        if len(run) > 1.1 * len(wanted) + 2:
            return "none"
        following = page[end + 1] if end + 1 < len(page) else ""
        if run == wanted or (run[:-1] == wanted and run[-1].isdigit() and not wanted[-1].isdigit()):
            return "none" if _goes_on(following) or _leads_elsewhere(page, start) else "exact"
        if len(wanted) >= 20 and _ratio(run, wanted) >= 0.92:
            read = " ".join(page[start : end + 1])
            if (last := fold(read).split()[-1]) in _UNFINISHED and last != fold(title).split()[-1]:
                continue  # a line further the title reads otherwise
            is_same = numbers(read) == numbers(title) and is_same_wording(_rejoined(page[start : end + 1]), title)
            return "close" if is_same and not _goes_on(following) and not _leads_elsewhere(page, start) else "none"
    return "none"


def _below_main(lines: Sequence[str], page: Sequence[str], start: int, main: str) -> str | None:
    """The line below a title that stands here without any subtitle, or None; one that ends in a colon has another one."""
    wanted = letters(main)
    if _match_run(lines, page, start, wanted, main) != "exact":
        return None
    end, run = start, lines[start]
    while len(run) < len(wanted) and end + 1 < len(lines):
        end += 1
        run += lines[end]
    if page[end].rstrip().endswith((":", "\u2013", "\u2014", "-")):
        return None
    return page[end + 1] if end + 1 < len(page) else ""


def _rejoined(lines: Sequence[str]) -> str:
    return re.sub(r"[-\u00ad\u2010]\n", "", "\n".join(lines))


def _goes_on(following: str) -> bool:
    """Whether the line below belongs to the title: it is that of another paper then."""
    return is_sequel(following) or bool(_CONTINUES.match(following.strip()))


def _leads_elsewhere(page: Sequence[str], start: int) -> bool:
    """Whether the line before a title says that what stands here is about it: `Commentary on`, `Article reviewed:`."""
    before = page[start - 1].strip() if start else ""
    words = fold(before).split()
    if not words or _OWN_LABEL.search(fold(before)):
        return False
    return before.endswith(":") or words[-1] in _UNFINISHED


def _may_stand_before(front: Front, number: int) -> bool:
    """Whether a page can stand before the first page of a paper: a cover, or a sheet with little on it."""
    return is_cover(front, number) or len(letters("\n".join(front.pages[number]))) < _THIN


def _by_read_title(front: Front, title: str, wanted: str) -> TitleMatch | None:
    """Compare with the title that extraction and the file's properties give."""
    for read in front.titles:
        if letters(read) == wanted:
            return TitleMatch("exact", 0)
        if len(wanted) >= 20 and similarity(read, title) >= 0.75 and is_same_wording(read, title):
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
