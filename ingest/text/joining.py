"""Whether a sentence goes on: from one group to the next, over columns and pages, and past what interrupts it."""

# ruff: noqa: SIM905  lists of words read best as words

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.text.fragments import SUP_OPEN
from ingest.text.groups import BULLET, Group, is_finished, is_formula
from ingest.text.hyphens import Hyphenation
from ingest.text.rows import Row

_HYPHENS = "-‐‑\u00ad"
_STARTS_ON = re.compile(rf"^[\w(\[“\"'‘∗+\-−±≤≥<>=∑∫√{SUP_OPEN}]")
_LOWER_WORD = re.compile(r"^(?:[a-zß-ÿа-яα-ω]{2,}|a\b|à\b|y\b|e\b|o\b)")
_NO_ENDS = frozenset(
    "of the a an in to and with for by from at on as or that which is are was were than le la les de des du et un une der die das und von mit el los y".split()
)
_MAX_INTERRUPTION = 400
_MIN_OPEN_CHARS = 40


def continues(rows: Sequence[Row], group: Group) -> bool:
    """Whether a group goes on with the sentence that the rows leave unfinished."""
    return continues_surely(rows, group) or _may_continue(rows, group)


def continues_surely(rows: Sequence[Row], group: Group) -> bool:
    """Whether a group must go on: half a word is missing, or it begins with a small letter."""
    before, row = rows[-1], group.first
    if is_finished(before.text) or not _is_same_size(before, row):
        return False
    first = row.text[:1]
    if before.text[-1:] in _HYPHENS and first.isalpha():
        return True
    return first.islower() and _n_words(rows) >= 2


def interrupts(rows: Sequence[Row], group: Group, following: Sequence[Group]) -> bool:
    """Whether a group is a short thing of another kind inside a sentence that goes on behind it: a badge, a label, a head."""
    last = rows[-1]
    if (
        is_finished(last.text)
        or len(group.text) > _MAX_INTERRUPTION
        or sum(len(row.text) for row in rows) < _MIN_OPEN_CHARS
    ):
        return False
    if continues_surely(rows, group) or is_formula(group.text):
        return False
    is_other = (
        abs(group.size - last.size) > 0.3
        or group.first.font != last.font
        or group.x1 < last.x0
        or group.x0 > last.x1
        or max(row.text.count(" ") for row in group.rows) < 4
        or (group.first.column is not last.column and len(group.rows) <= 2)
    )
    if not is_other:
        return False
    for other in following:
        if other.role in {"heading", "title"}:
            return False
        if other.role != "body":
            continue
        is_like = other.first.font == last.font and abs(other.first.size - last.size) < 0.25
        if is_like and _LOWER_WORD.match(other.first.text) and continues_surely(rows, other):
            return True
        if is_like and _stands_right_below(last, other):
            return True
        if is_like and len(other.text) > _MAX_INTERRUPTION:
            return False
    return False


def is_display(rows: Sequence[Row], group: Group) -> bool:
    """Whether a group is a formula that stands displayed inside the sentence that the rows leave unfinished."""
    last = rows[-1]
    if is_finished(last.text) or group.first.column is not last.column or not is_formula(group.text):
        return False
    return 0 < group.first.base - last.base < 4.5 * last.size and len(group.text) < 300


def _may_continue(rows: Sequence[Row], group: Group) -> bool:
    """A capital or a sign may go on with a sentence where the last row is full and the next begins like running text."""
    before, row = rows[-1], group.first
    if is_finished(before.text) or not _is_same_size(before, row) or BULLET.match(row.text):
        return False
    n_words = _n_words(rows)
    if n_words >= 4 and (before.text[-1:] in ",(" or before.text.rpartition(" ")[2].lower() in _NO_ENDS):
        return True
    if len(group.text) < 25 and row.column is not before.column:
        return False
    is_full = before.x1 > before.column.x1 - 0.08 * (before.column.x1 - before.column.x0)
    return is_full and n_words >= 8 and bool(_STARTS_ON.match(row.text)) and row.is_bold == before.is_bold


def join_rows(rows: Sequence[Row], hyphenation: Hyphenation) -> tuple[str, list[tuple[int, int]]]:
    """Return rows as running text, and where later pages begin in it: (offset, page)."""
    text = rows[0].text.replace("\t", " ")
    marks: list[tuple[int, int]] = []
    page = rows[0].page
    parts: list[str] = []
    n_done = 0
    for row in rows[1:]:
        following = row.text.replace("\t", " ").strip()
        if not following:
            continue
        # Only the last line can change by what follows, so that long paragraphs stay linear.
        joined = hyphenation.join(text, following)
        kept = len(joined) - len(following)
        if row.page != page:
            page = row.page
            marks.append((n_done + kept, page))
        parts.append(joined[:kept])
        n_done += kept
        text = following
    parts.append(text)
    return "".join(parts), marks


def _stands_right_below(last: Row, group: Group) -> bool:
    """Whether a group's first row is the next line of the paragraph, as its place and edge tell."""
    row = group.first
    return (
        row.page == last.page
        and 0 < row.base - last.base < 1.7 * last.size
        and abs(row.x0 - last.x0) < 2.0
        and last.x1 - last.x0 > 0.75 * (group.x1 - group.x0)
    )


def _is_same_size(before: Row, row: Row) -> bool:
    return abs(before.size - row.size) <= 0.12 * before.size + 0.3


def _n_words(rows: Sequence[Row]) -> int:
    return sum(row.text.count(" ") + 1 for row in rows[-3:])
