"""What stands on a page and is no part of the text: running heads and feet, page and line numbers, notices.

A line is furniture when it comes back at the same height on several pages (digits may differ), when it is a page
number at the outer edge, or when it is one of a column of rising numbers beside the text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from ingest.text.fragments import SUP_CLOSE, SUP_OPEN, Fragment, PageText

_BAND = 0.17  # of the page height, at the top and at the bottom
_EDGE = 0.10
_MIN_PAGES = 3
_MAX_NOTICES = 0.3
_SAME_SIZE = 0.7  # points
_DIGITS = re.compile(r"\d+")
_NUMBER_ALONE = re.compile(
    r"^[\W_]*(?:(?:page|seite|pagina|página|p\.)\s*)?(?:[A-Za-z]{1,2}[-–]?)?(?:\d{1,5}|[ivxlc]{1,7})"
    r"(?:\s*(?:/|of|von|de|sur|\|)\s*\d{1,5})?[\W_]*$",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"^\d{1,4}$")
_LEADING_INTEGER = re.compile(f"^{SUP_OPEN}?(\\d{{1,4}}){SUP_CLOSE}?\\s*(?=[^\\d\\s.,:;)\\]])")


def drop_furniture(pages: Sequence[PageText]) -> None:
    """Take the furniture out of every page's fragments, in place."""
    in_bands = _repeated_in_bands(pages)
    anywhere = _repeated_anywhere(pages)
    heads = _sizes_of_heads(pages, in_bands)
    for page in pages:
        _strip_leading_numbers(page.fragments)
    edges = {edge for page in pages for edge in _numbering_edges(page.fragments)}
    for page in pages:
        if not page.fragments:
            continue
        kept = page.fragments
        if in_bands or anywhere:
            kept = [
                f
                for f in kept
                if (f.text, _step(f, page)) not in anywhere
                and not (
                    _is_in_band(f, page) and (_key(f, page) in in_bands or heads.get(f.text, 0.0) + _SAME_SIZE > f.size)
                )
            ]
        kept = _without_page_numbers(kept, page)
        page.fragments = _without_line_numbers(kept, edges)


def _is_in_band(f: Fragment, page: PageText) -> bool:
    return f.base <= _BAND * page.height or f.base >= (1 - _BAND) * page.height


def _step(f: Fragment, page: PageText) -> int:
    return round(f.base / page.height * 120)


def _key(f: Fragment, page: PageText) -> tuple[str, int]:
    return _DIGITS.sub("#", f.text), _step(f, page)


def _repeated_in_bands(pages: Sequence[PageText]) -> set[tuple[str, int]]:
    """Lines of the top and bottom bands that stand at one height on three pages; digits may differ."""
    seen: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for page in pages:
        for words, at in {_key(f, page) for f in page.fragments if _is_in_band(f, page)}:
            seen[words][at] += 1
    found: set[tuple[str, int]] = set()
    for words, places in seen.items():
        if sum(places.values()) < _MIN_PAGES:
            continue
        least = _MIN_PAGES if any(c.isalpha() for c in words) else max(_MIN_PAGES, 0.4 * len(pages))
        found |= {(words, at) for at, n in _with_neighbours(places).items() if n >= least}
    return found


def _sizes_of_heads(pages: Sequence[PageText], in_bands: set[tuple[str, int]]) -> dict[str, float]:
    """The texts of heads with their size: on a first page they may stand at another height, and are none if larger."""
    sizes: dict[str, float] = {}
    for page in pages if in_bands else ():
        for f in page.fragments:
            if f.n_chars > 3 and _is_in_band(f, page) and _key(f, page) in in_bands:
                sizes[f.text] = max(sizes.get(f.text, 0.0), f.size)
    return sizes


def _repeated_anywhere(pages: Sequence[PageText]) -> set[tuple[str, int]]:
    """Notices that stand at one height on most pages, letter for letter."""
    least = max(_MIN_PAGES, 0.6 * len(pages))
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({f.text for f in page.fragments if f.n_chars > 3})
    often = {words for words, n in counts.items() if n >= least}
    n_often = sum(len(words) * counts[words] for words in often)
    if n_often > _MAX_NOTICES * sum(len(words) * n for words, n in counts.items()):
        return set()  # pages that say the same are what the document says
    if not often:
        return set()
    seen: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for page in pages:
        for words, at in {(f.text, _step(f, page)) for f in page.fragments if f.text in often}:
            seen[words][at] += 1
    return {(words, at) for words, places in seen.items() for at, n in _with_neighbours(places).items() if n >= least}


def _with_neighbours(places: Counter[int]) -> dict[int, int]:
    """Counts with those one step (under a hundredth of the height) away, since heads wander a little."""
    get = places.get
    return {at: get(at - 1, 0) + n + get(at + 1, 0) for at, n in places.items()}


def _without_page_numbers(fragments: list[Fragment], page: PageText) -> list[Fragment]:
    top, bottom = page.height * _EDGE, page.height * (1 - _EDGE)
    edge = [f for f in fragments if f.base < top or f.base > bottom]
    if not edge:
        return fragments
    first = min(fragments, key=lambda f: f.base).base
    last = max(fragments, key=lambda f: f.base).base
    numbers = {
        id(f)
        for f in edge
        if _NUMBER_ALONE.match(f.text) and (f.base < first + 3 or f.base > last - 3) and _stands_alone(f, fragments)
    }
    return [f for f in fragments if id(f) not in numbers] if numbers else fragments


def _stands_alone(number: Fragment, fragments: Iterable[Fragment]) -> bool:
    """Nothing else on its line but other ends of a head, and no text right above or below it."""
    for f in fragments:
        if f is number:
            continue
        if abs(f.base - number.base) < 2.0 and (f.x0 - number.x1 < 12 and number.x0 - f.x1 < 12):
            return False
        if 2.0 <= abs(f.base - number.base) < 1.35 * number.size and f.x0 < number.x1 and f.x1 > number.x0:
            return False
    return True


def _numbering_edges(fragments: Sequence[Fragment]) -> set[tuple[str, int]]:
    """The edges at which a column of rising numbers stands beside the text (manuscripts for review)."""
    integers = [f for f in fragments if _INTEGER.match(f.text)]
    if len(integers) < 5:
        return set()
    by_edge: defaultdict[tuple[str, int], list[Fragment]] = defaultdict(list)
    for f in integers:
        by_edge["x1", round(f.x1 / 4)].append(f)
        by_edge["x0", round(f.x0 / 4)].append(f)
    found: set[tuple[str, int]] = set()
    for side, edge in list(by_edge):
        column = by_edge[side, edge] + by_edge.get((side, edge + 1), [])
        if _is_line_numbering(column, fragments):
            found |= {(side, edge), (side, edge + 1)}
    return found


def _is_line_numbering(column: list[Fragment], fragments: Sequence[Fragment]) -> bool:
    """Whether integers rise by one step and stand beside all text."""
    if len(column) < 5:
        return False
    column = sorted(column, key=lambda f: f.base)
    values = [int(f.text) for f in column]
    steps = [b - a for a, b in pairwise(values)]
    common, n = Counter(steps).most_common(1)[0]
    if common not in {1, 2, 5, 10} or n < 0.8 * len(steps):
        return False
    text = [f for f in fragments if f.n_chars > 18]
    if not text:
        return False
    left = min(f.x0 for f in text)
    right = max(f.x1 for f in text)
    return all(f.x1 <= left + 1 for f in column) or all(f.x0 >= right - 1 for f in column)


def _without_line_numbers(fragments: list[Fragment], edges: set[tuple[str, int]]) -> list[Fragment]:
    """Drop the numbers at the edges that the document's line numbers have, also on a page with few lines."""
    if edges:
        left = min((f.x0 for f in fragments if f.n_chars > 18), default=0.0)
        right = max((f.x1 for f in fragments if f.n_chars > 18), default=0.0)
        fragments = [
            f
            for f in fragments
            if not (
                _INTEGER.match(f.text)
                and (f.x1 <= left + 1 or f.x0 >= right - 1)
                and (("x1", round(f.x1 / 4)) in edges or ("x0", round(f.x0 / 4)) in edges)
            )
        ]
    return fragments


def _strip_leading_numbers(fragments: Sequence[Fragment]) -> None:
    """Take off line numbers that came out as the first word of their line, in place."""
    found = [(f, match) for f in fragments if (match := _LEADING_INTEGER.match(f.text))]
    if len(found) < 8 or len(found) < 0.4 * len(fragments):
        return
    found.sort(key=lambda item: item[0].base)
    steps = [int(b[1][1]) - int(a[1][1]) for a, b in pairwise(found)]
    if steps.count(1) < 0.85 * len(steps):
        return
    for f, match in found:
        f.x0 += (f.x1 - f.x0) * len(match[0]) / len(f.text)
        f.text = f.text[match.end() :]
        f.n_chars = len(f.text)
