"""Whether a readable PDF has the shape of a paper at all: not slides, a poster, or a volume of many papers."""

from __future__ import annotations

import re
from pathlib import Path

from ingest.fulltext.complete import n_reference_lists
from ingest.text.result import Extraction

_N_PAGES = 40
_SLIDE_LETTERS = 1200
_POSTER_POINTS = 1400  # an A3 sheet has 1,191 points along its longer side
_ABSTRACT = re.compile(r"(?im)^\W*abstract\b")
_SEVERAL = 3


def find_shape(path: Path, extraction: Extraction) -> str | None:
    """Say which other thing than one paper a file is, or None."""
    if min(n_reference_lists(extraction), len(_ABSTRACT.findall(extraction.text))) >= _SEVERAL:
        return "several papers in one file"
    if extraction.kind != "pdf" or extraction.n_pages < 1:
        return None
    sizes = _sizes(path)
    if not sizes:
        return None
    n_wide = sum(width > 1.15 * height for width, height in sizes)
    if len(sizes) >= 4 and n_wide >= 0.8 * len(sizes) and len(extraction.text) / extraction.n_pages < _SLIDE_LETTERS:
        return "slides"
    if len(sizes) <= 2 and max(sizes[0]) > _POSTER_POINTS:
        return "a poster"
    return None


def _sizes(path: Path) -> list[tuple[float, float]]:
    import pymupdf

    try:
        with pymupdf.open(path, filetype="pdf") as document:
            pages = (document[n].rect for n in range(min(_N_PAGES, document.page_count)))
            return [(rect.width, rect.height) for rect in pages]
    except Exception:
        return []
