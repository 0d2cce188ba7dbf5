"""Reading order of a page: columns found by the white strips between lines of prose, bands by what spans them.

Order of the file is not trusted: some writers emit rows over the gutter, some the right column first. Within each
band (between two things that span the gutter) the left column comes before the right one; for a script that is
written from right to left it is the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

from ingest.text.fragments import Fragment

_MIN_PROSE_CHARS = 18  # shorter ones are headings, cells or ends of paragraphs and say little about columns
_MIN_PROSE_WIDTH = 60.0
_MIN_SIDE_LINES = 4
_MAX_DEPTH = 4


@dataclass(slots=True)
class Column:
    """A stretch of a page that is read from top to bottom; x0 and x1 bound what stands in it."""

    x0: float
    x1: float
    fragments: list[Fragment]
    is_spanning: bool = False


def order_columns(fragments: list[Fragment], *, is_rtl: bool = False) -> list[Column]:
    """Return the columns of a page in reading order, their fragments from top to bottom."""
    found = _order(sorted(fragments, key=lambda f: (f.base, f.x0)), is_rtl=is_rtl, depth=0)
    return _merged(found)


def _order(fragments: list[Fragment], *, is_rtl: bool, depth: int) -> list[Column]:
    gutter = find_gutter(fragments) if depth < _MAX_DEPTH else None
    if gutter is None:
        return [_column(fragments)] if fragments else []
    columns: list[Column] = []
    left: list[Fragment] = []
    right: list[Fragment] = []
    spanning: list[Fragment] = []

    def close_band() -> None:
        sides = (right, left) if is_rtl else (left, right)
        for side in sides:
            columns.extend(_order(list(side), is_rtl=is_rtl, depth=depth + 1))
            side.clear()

    def close_span() -> None:
        if spanning:
            column = _column(list(spanning))
            column.is_spanning = True
            columns.append(column)
            spanning.clear()

    for row in _rows(fragments):
        if _spans(row, gutter, spanning):
            if left or right:
                close_band()
            spanning += row
            continue
        if spanning and _continues_span(row, spanning, gutter):
            spanning += row
            continue
        close_span()
        for f in row:
            (left if (f.x0 + f.x1) / 2 < gutter else right).append(f)
    close_band()
    close_span()
    return columns


def find_gutter(fragments: list[Fragment]) -> float | None:
    """Return the x of the white strip that best parts lines of prose into two sides, or None."""
    prose = [f for f in fragments if f.n_chars >= _MIN_PROSE_CHARS and f.x1 - f.x0 >= _MIN_PROSE_WIDTH]
    if len(prose) < 2 * _MIN_SIDE_LINES:
        return None
    # How many lines end left of x and how many begin right of it changes only where one ends or begins. A sign that
    # hangs out by a point still ends there.
    changes: dict[int, tuple[int, int]] = {}
    for f in prose:
        end, start = int(f.x1), int(f.x0 + 2.0)
        n_ends, n_starts = changes.get(end, (0, 0))
        changes[end] = (n_ends + 1, n_starts)
        n_ends, n_starts = changes.get(start, (0, 0))
        changes[start] = (n_ends, n_starts + 1)
    places = sorted(changes)
    n_left, n_right = 0, len(prose)
    best: tuple[float, float] | None = None
    for x, following in zip(places, [*places[1:], places[-1]], strict=True):
        n_ends, n_starts = changes[x]
        n_left += n_ends
        n_right -= n_starts
        smaller = min(n_left, n_right)
        if smaller < _MIN_SIDE_LINES:
            continue
        score = smaller - 0.25 * (len(prose) - n_left - n_right)
        if best is None or score > best[0]:
            best = (score, (x + following) / 2)
    if best is None:
        return None
    return best[1] if _is_gutter(prose, best[1]) else None


def _is_gutter(prose: list[Fragment], gutter: float) -> bool:
    """Both sides must stand beside each other over several lines, with white between; a table's cells do not."""
    left = [f for f in prose if f.x1 <= gutter + 1.5]
    right = [f for f in prose if f.x0 >= gutter - 1.5]
    n_pairs = 0
    at = 0
    right_sorted = right
    for f in left:
        while at < len(right_sorted) and right_sorted[at].y1 < f.y0:
            at += 1
        if at < len(right_sorted) and right_sorted[at].y0 < f.y1:
            n_pairs += 1
    smaller = min(len(left), len(right))
    if n_pairs < _MIN_SIDE_LINES or n_pairs < 0.25 * smaller:
        return False
    # Lines of running text stand close below each other; the rows of a table with long cells do so too, but then
    # its cells begin and end anywhere, while a column of prose has one left edge.
    return _has_edge(left) and _has_edge(right)


def _has_edge(side: list[Fragment]) -> bool:
    """Whether many lines begin at one x: prose is flush left (or flush right in scripts that run leftwards)."""
    if len(side) < _MIN_SIDE_LINES:
        return False
    wanted = max(_MIN_SIDE_LINES - 1, 0.3 * len(side))
    for edges in ([f.x0 for f in side], [f.x1 for f in side]):
        edges.sort()
        start = 0
        for end, edge in enumerate(edges):
            while edge - edges[start] > 3.0:
                start += 1
            if end - start + 1 >= wanted:
                return True
    return False


def _rows(fragments: list[Fragment]) -> list[list[Fragment]]:
    """Fragments on one baseline, over all columns; `fragments` are sorted by baseline."""
    rows: list[list[Fragment]] = []
    base = -1e9
    for f in fragments:
        if rows and f.base - base < 0.35 * f.size:
            rows[-1].append(f)
        else:
            rows.append([f])
            base = f.base
    return rows


def _spans(row: list[Fragment], gutter: float, spanning: list[Fragment]) -> bool:
    crossing = [f for f in row if f.x0 < gutter - 4 and f.x1 > gutter + 4]
    if crossing:
        # A label inside a drawing may lie over the gutter and parts nothing; a line below spanning lines goes with them.
        if any(f.n_chars >= _MIN_PROSE_CHARS and f.x1 - f.x0 >= _MIN_PROSE_WIDTH for f in crossing):
            return True
        return bool(spanning) and row[0].base - spanning[-1].base < 2.0 * row[0].size
    # Justified lines come in pieces: a gap over the gutter that is no wider than others in the row is none.
    left = [f for f in row if f.x1 <= gutter + 4]
    right = [f for f in row if f.x0 >= gutter - 4]
    if not left or not right:
        return False
    nearest = max(left, key=lambda f: f.x1)
    following = min(right, key=lambda f: f.x0)
    return following.x0 - nearest.x1 < 0.6 * nearest.size and abs(following.base - nearest.base) < 0.5


def _continues_span(row: list[Fragment], spanning: list[Fragment], gutter: float) -> bool:
    """The last, short line of a paragraph that spans: right below it, same size and edge, nothing beside it."""
    last = spanning[-1]
    first = row[0]
    if any(f.x0 > gutter for f in row) or abs(first.size - last.size) > 0.3:
        return False
    edge = min(f.x0 for f in spanning if abs(f.base - last.base) < 2.0)
    return first.base - last.base < 1.5 * first.size and abs(first.x0 - edge) < 2.0


def _column(fragments: list[Fragment]) -> Column:
    return Column(min(f.x0 for f in fragments), max(f.x1 for f in fragments), fragments)


def _merged(columns: list[Column]) -> list[Column]:
    """Spanning stretches that follow each other are one."""
    merged: list[Column] = []
    for column in columns:
        if merged and merged[-1].is_spanning and column.is_spanning:
            above = merged[-1]
            above.fragments += column.fragments
            above.x0, above.x1 = min(above.x0, column.x0), max(above.x1, column.x1)
        else:
            merged.append(column)
    return merged
