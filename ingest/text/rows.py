"""Fragments to rows: what a reader sees as one line of a column, its pieces joined with the spaces they had."""

from __future__ import annotations

from itertools import pairwise

from ingest.text.columns import Column
from ingest.text.fragments import SUP_CLOSE, SUP_OPEN, Fragment

_CELL_GAP = 1.4  # times the size: wider than the space of any justified line


class Row:
    """One line of one column. `n_cells` counts the parts between gaps that no justified line has."""

    __slots__ = (
        "base", "column", "font", "is_bold", "is_italic", "n_cells", "page", "size", "text", "x0", "x1", "y0", "y1",
    )  # fmt: skip

    def __init__(self, fragments: list[Fragment], column: Column, page: int) -> None:
        main = fragments[0] if len(fragments) == 1 else max(fragments, key=lambda f: f.n_chars)
        self.base = main.base
        self.size = main.size
        self.font = main.font
        self.is_italic = main.is_italic
        self.page = page
        self.column = column
        self.n_cells = 1
        if len(fragments) == 1:
            self.is_bold = main.is_bold
            self.x0, self.x1, self.y0, self.y1 = main.x0, main.x1, main.y0, main.y1
            self.text = main.text
        else:
            self.is_bold = all(f.is_bold for f in fragments if f.n_chars > 1)
            self.x0 = min([f.x0 for f in fragments])
            self.x1 = max([f.x1 for f in fragments])
            self.y0 = min([f.y0 for f in fragments])
            self.y1 = max([f.y1 for f in fragments])
            self.text = self._joined(fragments)

    def _joined(self, fragments: list[Fragment]) -> str:
        is_rtl = sum(f.n_chars for f in fragments if f.is_rtl) * 2 > sum(f.n_chars for f in fragments)
        fragments.sort(key=(lambda f: -f.x1) if is_rtl else (lambda f: f.x0))
        main = max(fragments, key=lambda f: f.n_chars)
        pieces = [_raised(fragments[0], main)]
        for before, after in pairwise(fragments):
            gap = before.x0 - after.x1 if is_rtl else after.x0 - before.x1
            if gap > _CELL_GAP * self.size:
                self.n_cells += 1
                pieces.append("\t")
            elif gap > 0.12 * self.size or is_rtl:
                pieces.append(" ")
            pieces.append(_raised(after, main))
        return "".join(pieces)


def _raised(f: Fragment, main: Fragment) -> str:
    """A small raised piece is marked as a superscript, as inside a fragment."""
    is_raised = f.n_chars <= 8 and f.size < 0.92 * main.size and f.base < main.base - 0.15 * main.size
    return f"{SUP_OPEN}{f.text}{SUP_CLOSE}" if is_raised and SUP_OPEN not in f.text else f.text


def make_rows(column: Column, page: int) -> list[Row]:
    """Return the rows of a column from top to bottom."""
    rows: list[list[Fragment]] = []
    for f in column.fragments:  # sorted by baseline
        if rows and _is_same_row(rows[-1], f):
            rows[-1].append(f)
        else:
            rows.append([f])
    made = [Row(fragments, column, page) for fragments in rows]
    return sorted(made, key=lambda row: row.base) if any(len(fragments) > 1 for fragments in rows) else made


def _is_same_row(row: list[Fragment], f: Fragment) -> bool:
    """Same baseline, or a small raised or lowered piece that does not lie over the row's own pieces."""
    main = max(row, key=lambda g: g.n_chars) if len(row) > 1 else row[0]
    larger = max(main.size, f.size)
    distance = abs(f.base - main.base)
    if distance < 0.22 * larger:
        return True
    if distance > 0.55 * larger or (
        f.size > 0.85 * main.size and main.size > 0.85 * f.size and distance > 0.4 * larger
    ):
        return False
    return all(f.x0 >= g.x1 - 1.0 or f.x1 <= g.x0 + 1.0 for g in row)
