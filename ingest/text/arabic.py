"""Lam-alef pairs that a file stores in swapped order, as far as the word itself shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ingest.text.fragments import Fragment

# No Arabic word holds alef followed by alef with hamza or madda: the article's lam must have stood between them.
_SWAPPED = re.compile("ا([إأآ])ل")


def mend_lam_alef(fragments: Iterable[Fragment]) -> int:
    """Put the letters right where that is sure, in place; returns how many pairs were swapped.

    A plain alef and lam in the wrong order cannot be told from the article, so more words may be wrong than are mended.
    """
    n_mended = 0
    for f in fragments:
        if f.is_rtl:
            f.text, n = _SWAPPED.subn(r"ال\1", f.text)
            n_mended += n
    return n_mended
