"""Ligatures that came out wrong, mended where a word list leaves no doubt.

Fonts map fi, ff and their kin to NUL or to nothing ("e\ufffdcient", "nancial"), or the ligature is split off by spaces
("di ff erent"). A repair is made only when it turns no word into a word, and only one ligature does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from ingest.text.glyphs import REPLACEMENT
from ingest.text.lexicon import is_word

_LIGATURES = ("fi", "ff", "fl", "ffi", "ffl")
_BROKEN = re.compile(f"[A-Za-z]*{REPLACEMENT}[A-Za-z]+|[A-Za-z]+{REPLACEMENT}[A-Za-z]*")
_SPLIT = re.compile(
    r"\b([A-Za-z]+) ?(?<= )(ffi|ffl|ff|fi|fl) ([a-z]+)\b|\b(ffi|ffl|ff|fi|fl|Ffi|Ff|Fi|Fl) ([a-z]{2,})\b"
)
_ANY = re.compile("f[fil]", re.IGNORECASE)
_LOWER_WORD = re.compile(r"(?<![\w-])[A-Za-z]{4,}(?![\w-])")
_ODD_WORD = re.compile(
    r"(?<![^\W_])[A-Za-z]*(?P<sign>[^\x00-\x7f\s\ufffd“”‘’–—‐‑…°×·•≤≥≈∼−±→←∈\ufdd0\ufdd1])[a-z]+(?![^\W_])"
)
_MIN_LETTERS = 4000
_MIN_REPAIRS = 5


def mend_ligatures(text: str, knows: Callable[[str], bool] = is_word) -> str:
    """Return the text with broken and split ligatures mended where that is sure."""
    if REPLACEMENT in text:
        text = _BROKEN.sub(lambda match: _mend_broken(match[0], knows), text)
    if " f" in text or text[:1] in "fF":
        text = _SPLIT.sub(lambda match: _mend_split(match, knows), text)
    return text


def find_dropped(lines: Sequence[str]) -> dict[str, str]:
    """Return the words that lost a ligature without a trace, with what they were; empty unless a whole text lost them.

    No English text of this length is without a single "fi", "ff" or "fl".
    """
    if sum(map(len, lines)) < _MIN_LETTERS or any(_ANY.search(line) for line in lines):
        return {}
    words = {word for line in lines for word in _LOWER_WORD.findall(line)}
    repairs = {word: found for word in words if not is_word(word) and (found := _insert(word)) is not None}
    return repairs if len(repairs) >= _MIN_REPAIRS else {}


def restore_dropped(text: str, repairs: dict[str, str]) -> str:
    """Return the text with the words that `find_dropped` named restored."""
    return _LOWER_WORD.sub(lambda match: repairs.get(match[0], match[0]), text) if repairs else text


def _insert(word: str) -> str | None:
    candidates = {
        word[:at] + ligature + word[at:]
        for at in range(len(word))
        for ligature in _LIGATURES
        if is_word(word[:at] + ligature + word[at:])
    }
    return next(iter(candidates)) if len(candidates) == 1 else None


def _mend_broken(word: str, knows: Callable[[str], bool]) -> str:
    if word.count(REPLACEMENT) > 1 or len(word) < 4:
        return word
    found = [fixed for ligature in _LIGATURES if knows(fixed := word.replace(REPLACEMENT, ligature))]
    return found[0] if len(found) == 1 else word


def _mend_split(match: re.Match[str], knows: Callable[[str], bool]) -> str:
    before, ligature, after = (match[1] or "", match[2], match[3]) if match[2] else ("", match[4], match[5])
    if before:
        for other in _LIGATURES:
            if other == ligature and knows(before + other + after):
                return before + other + after
        found = [fixed for other in _LIGATURES if other.startswith(ligature) and knows(fixed := before + other + after)]
        if len(found) == 1:
            return found[0]
    if knows(ligature + after) and not is_word(after):
        return f"{before} {ligature}{after}".lstrip()
    return match[0]


def find_mistaken(lines: Sequence[str], knows: Callable[[str], bool] = is_word) -> dict[str, str]:
    """Return the words in which another character stands for a ligature ("e\u00d8cient"), with what they are.

    A capital or a sign inside a word of small letters is sure by itself; a small letter that languages use must do so
    in most of the words that hold it, or make a word where there is none with or without its accent.
    """
    by_sign: dict[str, set[str]] = {}
    for line in lines:
        if not line.isascii():
            for match in _ODD_WORD.finditer(line):
                by_sign.setdefault(match["sign"], set()).add(match[0])
    repairs: dict[str, str] = {}
    for sign, words in by_sign.items():
        if len(words) > 400:
            continue
        fixed = {
            word: found[0]
            for word in words
            if (len(word) > 4 or word[0] != sign)
            and not is_word(word)
            and len(found := [w for lig in _LIGATURES if knows(w := word.replace(sign, lig))]) == 1
        }
        if sign.islower() and not (len(fixed) >= 3 and len(fixed) > 0.7 * len(words)):
            # "café" without its accent is a word, so the accent is meant; "eécient" is none either way.
            fixed = {word: whole for word, whole in fixed.items() if len(whole) > 6 and not is_word(_bare(word))}
        repairs |= fixed
    return repairs


def _bare(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def restore_mistaken(text: str, repairs: dict[str, str]) -> str:
    """Return the text with the words that `find_mistaken` named restored."""
    return _ODD_WORD.sub(lambda match: repairs.get(match[0], match[0]), text)
