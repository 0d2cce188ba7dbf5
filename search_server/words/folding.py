"""Folds characters so that every legal spelling of a word meets: compatibility forms, case, marks, what nobody sees.

The stored text is never changed; only the word index and the question are folded, both by this one rule. Each
character folds by itself or together with the marks behind it, so the folding of a text is the folding of its pieces.
"""

from __future__ import annotations

import re
import unicodedata

# Soft hyphen, joiners, zero-width spaces, directional marks, variation selectors, byte order mark: no one sees them.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
_DROPPED = re.compile(
    # … and the marks of Latin, Greek and Cyrillic letters. The vowel signs of other scripts are letters to their readers.
    f"[{INVISIBLE}\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\U000e0000-\U000e01ef]+"
)
_LETTERS = str.maketrans(
    {
        "ı": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h", "ŋ": "n", "ŧ": "t",
        "µ": "μ", "ς": "σ", "ϕ": "φ", "ϑ": "θ", "ϵ": "ε", "ϱ": "ρ", "ϰ": "κ",
        "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": " ", "―": " ", "−": "-", "⁃": "-", "﹣": "-", "－": "-",
        "’": "'", "‘": "'", "ʼ": "'", "＇": "'", "′": "'",
    }
)  # fmt: skip


def fold(text: str) -> str:
    """Return the text as the word index compares it. ASCII is only lower-cased. Idempotent."""
    if text.isascii():
        return text.lower()
    # Case folding can set free a mark (İ) or a letter that decomposes again, so it stands between two decompositions.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = _DROPPED.sub("", plain).translate(_LETTERS)
    return unicodedata.normalize("NFC", plain)
