"""Says of each group on a page what it is: running text, heading, caption, table, figure, footnote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ingest.text.fragments import SUP_OPEN, Box, PageText
from ingest.text.groups import BULLET, CAPTION, Group, Layout, is_finished
from ingest.text.headings import section_kind

_NUMBERED = re.compile(
    r"^(?:(?i:section|chapter|appendix|kapitel|chapitre)\s+)?(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[IVX]{1,5}\.|[A-Z](?:\.\d{1,2}){0,3}\.?)[\s\t]+(?=[^\W\d_])"
)
_FOOTNOTE_MARK = re.compile(rf"^(?:{SUP_OPEN}|[*∗†‡§¶♣♠]|\d{{1,2}}(?=[A-Z“\"(h]|\s+[A-Z“\"(]|\s*https?:))")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MATH = re.compile(r"[=∑∏∫√≤≥∈±×·∂∇∞→≈∼{}|^_<>+]")
_MAX_HEADING_CHARS = 140


def assign_roles(columns: Sequence[Sequence[Group]], page: PageText, layout: Layout) -> None:
    """Set the role of every group of a page, in place; `columns` are in reading order."""
    figures = _figure_regions(page)
    for groups in columns:
        for index, group in enumerate(groups):
            above = groups[index - 1] if index else None
            group.role = _role(group, above, figures, layout)
        _find_footnotes(groups, page, layout)
        _spread_captions(groups, layout)
    _spread_floats([group for groups in columns for group in groups], layout)


def _role(group: Group, above: Group | None, figures: Sequence[Box], layout: Layout):  # noqa: ANN202
    if is_caption(group, above, layout):
        return "caption"
    if group.role == "table":
        return "table"
    is_prose = _is_prose(group, layout)
    if not is_prose and _inside(group, figures):
        return "figure"
    if not is_prose and group.size < layout.size - 0.9 and not is_heading_like(group, layout) and _is_scrap(group.text):
        return "figure"
    if is_heading_like(group, layout):
        return "heading"
    return "body"


def is_caption(group: Group, above: Group | None, layout: Layout) -> bool:
    """Whether a group is the caption of a figure or table, and no sentence that begins with "Figure 3 shows"."""
    match = CAPTION.match(group.first.text)
    if match is None:
        return False
    label_row_is_bold = group.first.is_bold
    rest = match["rest"].strip()
    if match["mark"] in {":", "|", "—", "–"}:
        return True
    if match["mark"] == "." and (not rest or not rest[0].islower()):
        return above is None or is_finished(above.text) or above.role != "body" or abs(group.size - layout.size) > 0.4
    if rest[:1].islower():
        return False
    return label_row_is_bold or group.size < layout.size - 0.4 or not rest or len(group.rows) == 1


def is_heading_like(group: Group, layout: Layout) -> bool:
    """Whether a group has the shape of a heading; the document's style decides later whether it is one."""
    if len(group.rows) > 3:
        return False
    text = group.text.replace("\t", " ").strip()
    if len(text) > _MAX_HEADING_CHARS or len(text) < 3:
        return False
    words = _WORD.findall(text)
    if not words or len(max(words, key=len)) < 3:
        return False
    if text.endswith((",", ";", "-", "–")) or (text.endswith(".") and len(words) > 3 and not text.isupper()):
        return False
    if text[0].islower() and not _NUMBERED.match(text):
        return False
    is_numbered = bool(_NUMBERED.match(text))
    is_known = section_kind(text) != "other" and len(words) <= 5
    other_font = group.first.font != layout.font
    is_larger = group.size > layout.size + (0.35 if other_font else 0.6)
    is_marked = group.first.is_bold or is_larger or _is_caps(text)
    if len(_MATH.findall(text)) > 2 or (BULLET.match(text) and not is_numbered):
        return False
    return (is_marked and (is_numbered or is_known or len(text) < 100)) or (
        (is_numbered or is_known) and (other_font or is_known) and len(words) <= 12
    )


def heading_level(text: str) -> int:
    """Return how deep a numbered heading stands (1 without a number)."""
    match = re.match(r"^(?:\d{1,2}|[A-H])((?:\.\d{1,2}){0,3})", text)
    return 1 + match[1].count(".") if match else 1


def is_numbered(text: str) -> bool:
    """Whether a heading begins with a number of a section."""
    return bool(_NUMBERED.match(text))


def _is_caps(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return len(letters) > 3 and sum(c.isupper() for c in letters) > 0.85 * len(letters)


def _is_prose(group: Group, layout: Layout) -> bool:
    """Rows that run over the width of their column and hold words."""
    rows = group.rows
    if len(rows) == 1:
        row = rows[0]
        return row.n_cells == 1 and abs(row.size - layout.size) < 0.8 and len(_WORD.findall(row.text)) >= 6
    width = group.x1 - group.x0
    if width <= 12 * group.size:
        return False
    some = rows[:6]
    full = sum([row.x1 - row.x0 > 0.75 * width for row in some])
    if full < 0.6 * len(some) - 1:
        return False
    return sum([len(_WORD.findall(row.text)) for row in some]) >= 4 * len(some)


def _is_scrap(text: str) -> bool:
    words = _WORD.findall(text)
    return len(words) < 6 or sum(map(len, words)) < 0.5 * len(text.replace(" ", ""))


def _figure_regions(page: PageText) -> list[Box]:
    """Places where many drawn things lie close together."""
    small = [
        b
        for b in page.vectors
        if b.x1 - b.x0 < 0.9 * page.width
        and b.y1 - b.y0 < 0.7 * page.height
        and not (b.y1 - b.y0 < 2.5 and b.x1 - b.x0 > 60)
    ]
    if len(small) < 8:
        return []
    regions: list[list[float]] = []  # x0, y0, x1, y1, count
    for b in sorted(small, key=lambda box: box.y0)[:1500]:
        for region in reversed(regions[-12:]):
            if b.x0 < region[2] + 14 and b.x1 > region[0] - 14 and b.y0 < region[3] + 14 and b.y1 > region[1] - 14:
                region[0], region[1] = min(region[0], b.x0), min(region[1], b.y0)
                region[2], region[3] = max(region[2], b.x1), max(region[3], b.y1)
                region[4] += 1
                break
        else:
            regions.append([*b, 1])
    return [Box(*r[:4]) for r in regions if r[4] >= 6 and r[2] - r[0] > 40 and r[3] - r[1] > 30]


def _inside(group: Group, regions: Sequence[Box]) -> bool:
    x = (group.x0 + group.x1) / 2
    y = (group.first.base + group.last.base) / 2
    return any(r.x0 - 16 <= x <= r.x1 + 16 and r.y0 - 14 <= y <= r.y1 + 16 for r in regions)


def _find_footnotes(groups: Sequence[Group], page: PageText, layout: Layout) -> None:
    """Small text at the foot of a column, below the last row of running text or below a short rule."""
    if not groups or groups[-1].last.base < 0.55 * page.height:
        return
    start = len(groups)
    while start and _may_be_note(groups[start - 1]) and groups[start - 1].size < layout.size - 0.45:
        start -= 1
    rule = _footnote_rule(groups, page)
    if rule is not None:
        below = next((i for i, g in enumerate(groups) if g.first.y0 >= rule - 1), len(groups))
        if below < len(groups) and all(g.size < layout.size + 0.3 for g in groups[below:]):
            start = max(start, below) if start < len(groups) else below
    if start >= len(groups):
        return
    tail = groups[start:]
    is_marked = any(_FOOTNOTE_MARK.match(g.text) for g in tail)
    if rule is None:
        n_rows = sum(len(g.rows) for g in tail)
        if start == 0 and (
            tail[0].first.base < 0.6 * page.height or n_rows > 15 or not (is_marked or page.number == 0)
        ):
            return  # a whole column of small text: a list of references, an appendix
        if start and groups[start - 1].role == "heading":
            return
        if not is_marked and tail[0].first.base < 0.75 * page.height:
            return
    for g in tail:
        if _may_be_note(g):
            g.role = "footnote"


def _may_be_note(group: Group) -> bool:
    """Running text, or a scrap (an address, a word or two) that begins with the mark of a note."""
    return group.role in {"body", "footnote", "heading"} or (
        group.role == "figure" and bool(_FOOTNOTE_MARK.match(group.text))
    )


def _footnote_rule(groups: Sequence[Group], page: PageText) -> float | None:
    """The height of a short rule at the left edge of the column in the lower half, with small text below it."""
    left = min(g.x0 for g in groups)
    right = max(g.x1 for g in groups)
    found = [
        b.y0
        for b in page.vectors
        if b.y1 - b.y0 < 2
        and 25 < b.x1 - b.x0 < 0.62 * (right - left)
        and abs(b.x0 - left) < 8
        and b.y0 > 0.45 * page.height
    ]
    for y in sorted(found, reverse=True):
        below = [g for g in groups if g.first.y0 >= y - 1]
        if below and below[0].first.y0 - y < 16 and _may_be_note(below[0]):
            return y
    return None


def _spread_captions(groups: Sequence[Group], layout: Layout) -> None:
    """A caption of several paragraphs: small rows right below it go with it."""
    for before, group in pairwise(groups):
        if before.role != "caption" or group.role not in {"body", "figure"}:
            continue
        gap = group.first.base - before.last.base
        if gap > 1.6 * layout.leading_of(group.size) or group.x0 < before.x0 - 3:
            continue
        is_small = abs(group.size - before.size) < 0.3 and abs(before.size - layout.size) > 0.4
        is_next_line = (
            gap < 1.3 * layout.leading_of(group.size)
            and abs(group.x0 - before.x0) < 3
            and before.last.x1 > group.x1 - 0.1 * (group.x1 - group.x0)
        )
        goes_on = (
            not is_finished(before.text)
            and abs(group.size - before.size) < 0.6
            and (group.first.text[:1].islower() or is_next_line)
        )
        if is_small or goes_on:
            group.role = "caption"


def _spread_floats(groups: Sequence[Group], layout: Layout) -> None:
    """What stands between running text and a caption and is no running text belongs to the drawing or table."""
    for index, group in enumerate(groups):
        if group.role != "caption":
            continue
        is_table = group.text[:3].lower() in {"tab", "qua"}
        for step in (-1, 1):
            near = group
            at = index + step
            while 0 <= at < len(groups):
                other = groups[at]
                distance = near.first.base - other.last.base if step < 0 else other.first.base - near.last.base
                if not 0 < distance < 12 * layout.size or not _may_be_float(
                    other, layout, is_below=step > 0 and not is_table
                ):
                    break
                if other.role not in {"table", "figure"}:
                    other.role = "table" if is_table else "figure"
                near = other
                at += step
    for before, group, after in zip(groups, groups[1:], groups[2:], strict=False):
        if (
            group.role in {"body", "heading"}
            and not _is_prose(group, layout)
            and len(group.text) < 60
            and not is_numbered(group.text)
        ):
            if before.role == after.role and before.role in {"table", "figure"}:
                group.role = before.role
            elif (
                group.role == "heading"
                and after.role == "table"
                and after.first.base - group.last.base < 2.5 * group.size
            ):
                group.role = "table"


def _may_be_float(group: Group, layout: Layout, *, is_below: bool) -> bool:
    if group.role in {"table", "figure"}:
        return True
    if group.role not in {"body", "heading"} or _is_prose(group, layout) or is_numbered(group.text):
        return False
    if group.role == "heading" and (section_kind(group.text) != "other" and group.size > layout.size - 0.4):
        return False
    # Below a caption running text may begin with a short line; only what is set smaller is sure.
    return not is_below or group.size < layout.size - 0.4
