"""One PDF page as fragments: runs of characters on one baseline, with place, size and style. Annotations stay out.

Coordinates are points from the top left of the page as it is read: a page whose text runs upwards or downwards is
turned first. Fragments in another direction than the page's own (stamps, axis labels) are counted and left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ingest.text.characters import clean_text
from ingest.text.glyphs import REPLACEMENT, decode_codes, place_accents

SUP_OPEN, SUP_CLOSE = "\ufdd0", "\ufdd1"
"""Marks around superscripts; noncharacters, so no text that was cleaned holds them."""

# While a line is put together, control characters mark superscripts and accents; those of the file itself go first.
_NO_MARKS = dict.fromkeys([1, 2, 3, 4])
_MARKS = {1: SUP_OPEN, 2: SUP_CLOSE, 3: None, 4: None}
_SPACES = re.compile(r"\s{2,}")
_IS_CODE = 128  # FZ_STEXT_UNICODE_IS_CID: no Unicode value is known, the character is the font's own code
_RTL = re.compile("[\u0590-\u08ff]")
_BOLD = 16
_ITALIC = 2
_MAX_FRAGMENTS = 30_000  # a page with more is a drawing made of letters


class Box(NamedTuple):
    """A rectangle of the page."""

    x0: float
    y0: float
    x1: float
    y1: float


class Fragment:
    """Characters that stand on one baseline without a wide gap."""

    __slots__ = (
        "base",
        "block",
        "font",
        "is_bold",
        "is_italic",
        "is_rtl",
        "n_chars",
        "size",
        "text",
        "x0",
        "x1",
        "y0",
        "y1",
    )

    def __init__(
        self,
        x0: float,
        x1: float,
        base: float,
        size: float,
        text: str,
        font: str,
        *,
        is_bold: bool,
        is_italic: bool,
        block: int,
    ) -> None:
        self.x0 = x0
        self.x1 = x1
        self.base = base
        # Boxes by font metrics differ wildly between fonts; these do not.
        self.y0 = base - 0.75 * size
        self.y1 = base + 0.25 * size
        self.size = size
        self.text = text
        self.font = font
        self.is_bold = is_bold
        self.is_italic = is_italic
        self.is_rtl = False
        self.n_chars = len(text)
        self.block = block


@dataclass(slots=True)
class PageText:
    """What one page holds."""

    number: int
    width: float
    height: float
    fragments: list[Fragment]
    vectors: list[Box] = field(default_factory=list)
    n_replaced: int = 0
    turned: list[str] = field(default_factory=list)
    """Lines in a direction that is not the page's own: stamps, labels of axes."""
    is_bad: bool = False


def read_page(library: Any, page: Any, number: int) -> PageText:
    """Return the fragments of a page in the order of the file; may raise what a damaged page makes the library raise."""
    flags = (
        library.TEXT_PRESERVE_WHITESPACE
        | library.TEXT_MEDIABOX_CLIP
        | library.TEXT_LAZY_VECTORS
        | library.TEXT_COLLECT_VECTORS
        | library.TEXT_USE_CID_FOR_UNKNOWN_UNICODE
    )
    blocks = _blocks(library, page, flags)
    lines = [(line, index) for index, b in enumerate(blocks) if b["type"] == 0 for line in b["lines"]]
    direction = _page_direction(lines)
    rect = page.cropbox if page.rotation == 0 else page.mediabox
    width, height = float(rect.width), float(rect.height)
    result = PageText(number, width, height, [])
    for line, block in lines:
        spans = line["spans"]
        if not spans:
            continue
        if _direction(line["dir"]) != direction:
            result.turned.append("".join(span["text"] for span in spans))
            continue
        if len(result.fragments) >= _MAX_FRAGMENTS:
            break
        fragment, n_replaced = _fragment(line, spans, direction, block)
        if fragment is not None:
            result.n_replaced += n_replaced
            result.fragments.append(fragment)
    result.vectors = [_turned(b["bbox"], direction) for b in blocks if b["type"] == 3][:5000]
    if direction != 0:
        _shift_to_origin(result, is_swapped=direction in {1, 3})
    return result


def _blocks(library: Any, page: Any, flags: int) -> list[dict[str, Any]]:
    """The page's own content only: what readers added (notes, highlights, stamps) is not the authors'."""
    mupdf = library.mupdf
    rotation = page.rotation
    if rotation:
        page.set_rotation(0)
    try:
        options = mupdf.FzStextOptions(flags)
        text_page = mupdf.FzStextPage(mupdf.fz_bound_page(page.this))
        device = mupdf.fz_new_stext_device(text_page, options)
        mupdf.fz_run_page_contents(page.this, device, mupdf.FzMatrix(), mupdf.FzCookie())
        mupdf.fz_close_device(device)
        found: dict[str, Any] = {}
        library.extra.JM_make_textpage_dict(text_page.m_internal, found, False)
    finally:
        if rotation:
            page.set_rotation(rotation)
    return found["blocks"]


def _page_direction(lines: Iterable[tuple[dict[str, Any], int]]) -> int:
    """Return in which quarter turn most of the text runs (0: left to right)."""
    votes: Counter[int] = Counter()
    for line, _ in lines:
        turn = _direction(line["dir"])
        if turn is not None:
            x0, y0, x1, y1 = line["bbox"]
            votes[turn] += int(max(x1 - x0, y1 - y0))
    return votes.most_common(1)[0][0] if votes else 0


def _direction(vector: tuple[float, float]) -> int | None:
    x, y = vector
    if x > 0.996:
        return 0
    if x < -0.996:
        return 2
    if y < -0.996:
        return 1  # runs upwards
    if y > 0.996:
        return 3  # runs downwards
    return None


def _turned(box: tuple[float, float, float, float], direction: int) -> Box:
    x0, y0, x1, y1 = box
    if direction == 0:
        return Box(x0, y0, x1, y1)
    if direction == 1:
        return Box(-y1, x0, -y0, x1)
    if direction == 3:
        return Box(y0, -x1, y1, -x0)
    return Box(-x1, -y1, -x0, -y0)


def _shift_to_origin(page: PageText, *, is_swapped: bool) -> None:
    """After a turn coordinates are negative; put the page's corner back to zero."""
    if is_swapped:
        page.width, page.height = page.height, page.width
    if not page.fragments:
        return
    left = min(f.x0 for f in page.fragments)
    top = min(f.y0 for f in page.fragments)
    dx = page.width if left < 0 else 0.0
    dy = page.height if top < 0 else 0.0
    for f in page.fragments:
        f.x0 += dx
        f.x1 += dx
        f.base += dy
        f.y0 += dy
        f.y1 += dy
    page.vectors = [Box(b.x0 + dx, b.y0 + dy, b.x1 + dx, b.y1 + dy) for b in page.vectors]


def _fragment(
    line: dict[str, Any], spans: list[dict[str, Any]], direction: int, block: int
) -> tuple[Fragment | None, int]:
    main = spans[0]
    size = main["size"]
    is_one_size = True
    if len(spans) > 1:
        font = main["font"]
        is_one_size = all([span["size"] == size for span in spans])  # noqa: C419  a list is twice as fast here
        if not is_one_size or any([span["font"] != font for span in spans]):  # noqa: C419
            main = _main_span(spans)
            size = main["size"]
    texts = [
        decode_codes(span["text"], span["font"])
        if span["char_flags"] & _IS_CODE
        else span["text"]
        if span["text"].isprintable()
        else span["text"].translate(_NO_MARKS)
        for span in spans
    ]
    has_superscript = False
    if not is_one_size and direction == 0:
        base_y = main["origin"][1]
        for index, span in enumerate(spans):
            if span["size"] < 0.92 * size and span["origin"][1] < base_y - 0.18 * size and texts[index].strip():
                texts[index] = _superscript(texts[index])
                has_superscript = True
    text = "".join(texts)
    if "Dingbats" in main["font"]:
        text = _dingbats(text)
    if has_superscript or "\x03" in text or "\x04" in text:
        text, n_replaced = clean_text(text.replace("\x02\x01", ""), keep="\x01\x02\x03\x04")
        text = place_accents(text).translate(_MARKS)
    else:
        text, n_replaced = clean_text(text)
        if "`" in text or not text.isascii():
            text = place_accents(text)
    text = text.strip()
    if not text:
        return None, 0
    if "  " in text or not text.isascii():
        text = _SPACES.sub(" ", text)
    if not text.isascii():
        n_replaced += text.count(REPLACEMENT)
    ox, oy = main["origin"]
    if direction == 0:
        x0, _, x1, _ = line["bbox"]
        base = oy
    else:
        x0, _, x1, _ = _turned(line["bbox"], direction)
        base = (oy, ox, -oy, -ox)[direction]
    style = main["flags"]
    fragment = Fragment(
        x0, x1, base, size, text, main["font"],
        is_bold=bool(style & _BOLD) or _is_bold_name(main["font"]), is_italic=bool(style & _ITALIC), block=block,
    )  # fmt: skip
    if not text.isascii() and _RTL.search(text):
        fragment.is_rtl = len(_RTL.findall(text)) * 2 > len(text) - text.count(" ")
    return fragment, n_replaced


def _main_span(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """The first span in the size and font that most of the line's characters have."""
    weights: dict[tuple[float, str], int] = {}
    for span in spans:
        key = (span["size"], span["font"])
        weights[key] = weights.get(key, 0) + len(span["text"])
    size, font = max(weights, key=weights.__getitem__)
    return next(span for span in spans if span["size"] == size and span["font"] == font)


def _superscript(text: str) -> str:
    stripped = text.strip()
    lead = text[: len(text) - len(text.lstrip())]
    tail = text[len(text.rstrip()) :]
    return f"{lead}\x01{stripped}\x02{tail}"


_bold_names: dict[str, bool] = {}


def _is_bold_name(font: str) -> bool:
    known = _bold_names.get(font)
    if known is None:
        name = font.lower()
        known = any(
            word in name for word in ("bold", "-bd", "black", "heavy", "semib", "medi", "cmbx")
        ) or name.endswith((".b", "-b"))
        _bold_names[font] = known
    return known


def _dingbats(text: str) -> str:
    """Zapf Dingbats whose codes came out without their high part: 0x13 is U+2713, the check mark."""
    return "".join(chr(0x2700 + ord(c)) if ord(c) < 0x20 else c for c in text)
