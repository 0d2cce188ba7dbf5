"""Rows to groups: paragraphs, headings, captions, tables and so on, before anyone says which is which.

A group ends at a wide gap, a change of size or weight, a new caption, the indent of a new paragraph, or where rows
begin or cease to be rows of a table. Cutting too often does little harm: what was one sentence is joined again later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ingest.text.columns import Column
from ingest.text.fragments import SUP_CLOSE, SUP_OPEN
from ingest.text.headings import is_section_word
from ingest.text.rows import Row

GroupRole = Literal["body", "heading", "caption", "table", "figure", "footnote", "aside", "title", "front"]

CAPTION = re.compile(
    r"^(?P<label>(?:(?:supplement(?:ary|al)|extended data|suppl?\.|appendix|online)\s+)?"
    r"(?:fig(?:ure|\.)?s?|table|tab\.|tableau|algorithm|scheme|listing|chart|abbildung|abb\.|tabelle|figura|tabla|tabela|quadro|图|表|圖)"
    r"\s*\.?\s*(?:[A-Z]?\d{1,3}(?:\.\d{1,2})?[a-z]?|[IVX]{1,5}|[A-Z](?:\.\d{1,2})?)(?![\w’']))"
    r"\s*(?P<mark>[:.|—–-]|\s|$)(?P<rest>.*)",
    re.IGNORECASE,
)
_FINISHED = re.compile(r"[.!?:;。！？：；؟][\"'”’»)\]\ufdd1]*(?:\ufdd0[^\ufdd1]*\ufdd1)?\s*$")
KEYWORDS = re.compile(
    r"^(?:key ?words?|index terms|mots[- ]clés|schlüsselwörter|palabras clave|palavras-chave|关键词|ccs concepts)\b",
    re.IGNORECASE,
)
BULLET = re.compile(r"^(?:[•●○◦▪■□►➢✓❖·‣⁃*]|[-–—](?=\s)|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)](?=\s))\s*\S", re.IGNORECASE)


_RELATION = re.compile("[=≤≥≈≡∼∝←→↦∈⊂⊆≪≫<>∑∏∫√∂∇]")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(slots=True)
class Layout:
    """What is usual in a document: size and font of its text, and the distance of baselines for each size."""

    size: float
    font: str
    leading: dict[int, float]

    def leading_of(self, size: float) -> float:
        """Return the usual distance of baselines for rows of a size, in points."""
        return self.leading.get(round(size * 2), 1.2 * size)


@dataclass(slots=True)
class Group:
    """Rows that belong together."""

    rows: list[Row]
    role: GroupRole = "body"
    level: int = 1
    is_run_in: bool = False
    text_cache: str = field(default="", repr=False)
    size_cache: float = field(default=0.0, repr=False)

    @property
    def first(self) -> Row:
        """The top row."""
        return self.rows[0]

    @property
    def last(self) -> Row:
        """The bottom row."""
        return self.rows[-1]

    @property
    def text(self) -> str:
        """The rows' texts, joined by spaces as they are."""
        if not self.text_cache:
            self.text_cache = " ".join(row.text for row in self.rows)
        return self.text_cache

    @property
    def x0(self) -> float:
        """The left edge."""
        return min([row.x0 for row in self.rows])

    @property
    def x1(self) -> float:
        """The right edge."""
        return max([row.x1 for row in self.rows])

    @property
    def size(self) -> float:
        """The size of most of its characters; asked for when the rows are complete."""
        if self.size_cache:
            return self.size_cache
        first = self.rows[0].size
        if all([row.size == first for row in self.rows]):  # noqa: C419  a list is twice as fast here
            self.size_cache = first
        else:
            sizes: dict[float, int] = {}
            for row in self.rows:
                sizes[row.size] = sizes.get(row.size, 0) + len(row.text)
            self.size_cache = max(sizes, key=sizes.__getitem__)
        return self.size_cache


def find_layout(columns: Iterable[Sequence[Row]]) -> Layout:
    """Return what is usual over all columns of a document."""
    fonts: dict[tuple[int, str], int] = {}
    gaps: dict[int, Counter[int]] = {}
    for rows in columns:
        before: Row | None = None
        step_before = -1
        for row in rows:
            step = round(row.size * 2)
            n = len(row.text)
            key = (step, row.font)
            fonts[key] = fonts.get(key, 0) + n
            if before is not None and step_before == step and n > 18:
                gap = row.base - before.base
                if 0.8 * row.size < gap < 3.2 * row.size:
                    gaps.setdefault(step, Counter())[round(gap * 4)] += 1
            before, step_before = row, step
    sizes: Counter[int] = Counter()
    for (step, _), n in fonts.items():
        sizes[step] += n
    if not sizes:
        return Layout(10.0, "", {})
    step = max(sizes, key=lambda key: sizes[key])
    font = max((key for key in fonts if key[0] == step), key=fonts.__getitem__)[1]
    leading = {key: _usual_gap(counts) for key, counts in gaps.items() if sum(counts.values()) >= 3}
    return Layout(step / 2, font, leading)


def _usual_gap(counts: Counter[int]) -> float:
    best = max(counts, key=lambda gap: counts[gap - 1] + 2 * counts[gap] + counts[gap + 1])
    return best / 4


def is_formula(text: str) -> bool:
    """Whether a text is mathematics with hardly a word in it."""
    return len(text) < 400 and bool(_RELATION.search(text)) and len(_LONG_WORD.findall(text)) <= 2 + len(text) // 80


def is_finished(text: str) -> bool:
    """Whether a text ends where a sentence may end."""
    return bool(_FINISHED.search(text[-40:]))


def make_groups(rows: Sequence[Row], column: Column, layout: Layout) -> list[Group]:
    """Return the groups of one column, from top to bottom."""
    if not rows:
        return []
    left, right = _edges(rows, column)
    tabular = _tabular(rows, right - left, layout)
    groups = [Group([rows[0]])]
    for index in range(1, len(rows)):
        group, row = groups[-1], rows[index]
        if tabular[index] != tabular[index - 1] or _begins(group, row, layout, left, right, is_table=tabular[index]):
            groups.append(Group([row]))
        else:
            group.rows.append(row)
    at = 0
    for group in groups:
        if tabular[at]:
            group.role = "table"
        at += len(group.rows)
    return groups


def _edges(rows: Sequence[Row], column: Column) -> tuple[float, float]:
    """The left and right edge of the prose in a column; of everything where there is none."""
    prose = [row for row in rows if len(row.text) > 18 and row.n_cells == 1]
    if len(prose) < 3:
        return column.x0, column.x1
    starts = Counter(round(row.x0) for row in prose)
    left = max(starts, key=lambda x: (starts[x - 1] + starts[x] + starts[x + 1], -x))
    ends = sorted(row.x1 for row in prose)
    return float(left), ends[int(len(ends) * 0.85)]


def _tabular(rows: Sequence[Row], width: float, layout: Layout) -> list[bool]:
    """Which rows are rows of a table: several cells, and not the only such row here."""
    n_cells = [row.n_cells for row in rows]
    marks = [False] * len(rows)
    for i, row in enumerate(rows):
        if n_cells[i] < 2 or row.size > layout.size + 1.0 or is_formula(row.text):
            continue
        near = any(
            0 <= j < len(rows) and n_cells[j] >= 2 and abs(rows[j].base - row.base) < 3.5 * row.size
            for j in (i - 1, i + 1, i - 2, i + 2)
        )
        is_heading = n_cells[i] == 2 and bool(re.match(r"^[\dIVXA-Z]{1,4}(?:\.\d+)*\.?\t\D", row.text)) and not near
        if is_heading or (BULLET.match(row.text) and n_cells[i] == 2):
            continue
        if n_cells[i] >= 3 or near or row.x1 - row.x0 < 0.8 * width:
            marks[i] = near or n_cells[i] >= 3
    return marks


def _begins(group: Group, row: Row, layout: Layout, left: float, right: float, *, is_table: bool) -> bool:
    """Whether a row begins a new group below `group`."""
    before = group.rows[-1]
    gap = row.base - before.base
    leading = max(layout.leading_of(row.size), 1.05 * row.size)
    if gap < -1 or (
        abs(row.size - before.size) > 0.07 * row.size + 0.15 and len(row.text) > 2 and len(before.text) > 2
    ):
        return True
    if is_table:
        return gap > 2.2 * leading
    finished = is_finished(before.text) or before.x1 < right - 0.12 * (right - left)
    if gap > (1.28 if finished else 1.5) * leading + 0.5:
        return True
    goes_on = not finished and row.text[:1].islower()
    if not goes_on and row.is_bold != before.is_bold and min(len(row.text), len(before.text)) > 2:
        return True
    if not finished:
        return False
    if row.text.startswith(SUP_OPEN) and row.size < layout.size - 0.4:
        return True  # the next footnote
    if (
        len(group.rows) == 1
        and (before.is_bold or before.size > layout.size + 0.6)
        and is_section_word(before.text.replace("\t", " "))
    ):
        return True
    if CAPTION.match(row.text) and (gap > 1.1 * leading or row.is_bold):
        return True
    if BULLET.match(row.text) or KEYWORDS.match(row.text):
        return True
    indent = 0.7 * row.size
    if row.x0 > left + indent and before.x0 < left + indent and row.x0 < left + 0.4 * (right - left):
        return is_finished(before.text) or before.x1 < right - 0.3 * (right - left)
    return len(group.rows) > 1 and before.x0 > row.x0 + indent and is_hanging(group)


def is_hanging(group: Group) -> bool:
    """Whether a group looks like an entry of a list of references: first row out, the others in."""
    first, others = group.rows[0], group.rows[1:]
    return bool(others) and all(row.x0 > first.x0 + 0.5 * first.size for row in others)


def strip_marks(text: str) -> str:
    """Return a text without the marks around superscripts."""
    return text.replace(SUP_OPEN, "").replace(SUP_CLOSE, "")
