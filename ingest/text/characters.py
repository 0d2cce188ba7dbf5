"""Characters that no reader sees or no database holds: repaired where sure, else replaced and counted."""

from __future__ import annotations

import re
import unicodedata
from unicodedata import is_normalized

from ingest.text.glyphs import REPLACEMENT, repair_private

_LIGATURES = {
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st",
    "\ufb13": "մն", "\ufb14": "մե", "\ufb15": "մի", "\ufb16": "վն", "\ufb17": "մխ",
}  # fmt: skip
_INVISIBLE = dict.fromkeys([0x200B, 0x2060, 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB])
_CONTROLS = {c: None for c in [*range(1, 9), 11, *range(14, 32), *range(0x7F, 0xA0)] if c != 0x85} | {0x85: "\n"}
_TABLE = str.maketrans(_LIGATURES) | _INVISIBLE | _CONTROLS
_SUSPECT = re.compile("[\x00\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PRESENTATION = re.compile("[\ufb1d-\ufdff\ufe70-\ufefc]")
_FOLDED = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]")


def clean_text(text: str, keep: str = "") -> tuple[str, int]:
    """Return the text as NFC without control characters, and how many characters had to be replaced.

    `keep` names control characters that stay. Surrogate pairs that were split become their character; a NUL, a lone surrogate or a noncharacter becomes U+FFFD.
    """
    if text.isprintable():
        # No control, surrogate, private or unassigned character: the usual line of a paper.
        if text.isascii():
            return text, 0
        if _FOLDED.search(text) is None:
            return (text if is_normalized("NFC", text) else unicodedata.normalize("NFC", text)), 0
    text = _PAIR.sub(_joined_pair, text)
    text, n_replaced = _SUSPECT.subn(REPLACEMENT, text)
    text = text.translate(_TABLE | {ord(c): c for c in keep} if keep else _TABLE)
    text = repair_private(text)
    if _PRESENTATION.search(text):
        text = _PRESENTATION.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return unicodedata.normalize("NFC", text), n_replaced


def _joined_pair(match: re.Match[str]) -> str:
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16")
