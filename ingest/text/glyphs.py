"""Glyphs without a Unicode value whose font tells what they are: the mathematical fonts of TeX and Adobe Symbol.

Sources: the encodings of cmsy10, cmmi10 and cmex10 (The TeXbook, appendix F) and of Symbol (PDF reference, D.6).
"""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"

_CMSY = dict(
    enumerate(
        "−·×∗÷⋄±∓⊕⊖⊗⊘⊙○∘•≍≡⊆⊇≤≥⪯⪰∼≈⊂⊃≪≫≺≻←→↑↓↔↗↘≃⇐⇒⇑⇓⇔↖↙∝′∞∈∋△▽\u0338|∀∃¬∅ℜℑ⊤⊥ℵ"
    )
)  # fmt: skip
_CMSY |= {0x5B: "∪", 0x5C: "∩", 0x5D: "⊎", 0x5E: "∧", 0x5F: "∨", 0x60: "⊢", 0x61: "⊣", 0x62: "⌊", 0x63: "⌋"}
_CMSY |= {0x64: "⌈", 0x65: "⌉", 0x66: "{", 0x67: "}", 0x68: "⟨", 0x69: "⟩", 0x6A: "|", 0x6B: "∥", 0x6C: "↕", 0x6E: "\\"}
_CMSY |= {0x70: "√", 0x71: "∐", 0x72: "∇", 0x73: "∫", 0x74: "⊔", 0x75: "⊓", 0x78: "§", 0x79: "†", 0x7A: "‡", 0x7B: "¶"}
_CMEX = {0x50: "∑", 0x51: "∏", 0x52: "∫", 0x58: "∑", 0x59: "∏", 0x5A: "∫", 0x53: "∪", 0x54: "∩", 0x5B: "∪", 0x5C: "∩"}
_CMEX |= dict.fromkeys([0x00, 0x10, 0x12, 0x20], "(") | dict.fromkeys([0x01, 0x11, 0x13, 0x21], ")")
_CMEX |= dict.fromkeys([0x02, 0x14, 0x22, 0x68], "[") | dict.fromkeys([0x03, 0x15, 0x23, 0x69], "]")
_CMEX |= dict.fromkeys([0x08, 0x1A, 0x28, 0x6E], "{") | dict.fromkeys([0x09, 0x1B, 0x29, 0x6F], "}")
# Wide accents stand before their letter; control characters mark them until they are put behind it.
_CMEX |= dict.fromkeys([0x62, 0x63, 0x64], "\x03") | dict.fromkeys([0x65, 0x66, 0x67], "\x04")
_CMEX |= dict.fromkeys([0x0C], "|") | dict.fromkeys([0x70, 0x71, 0x72, 0x73], "√")
_SYMBOL_UPPER = dict(zip(range(0xA1, 0xFF), "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑", strict=False))  # fmt: skip
# Where Wingdings and Symbol disagree, bullets and check marks are by far the more frequent.
_WINGDINGS = {
    0xA7: "▪",
    0xA8: "◻",
    0x6C: "●",
    0x6E: "■",
    0x71: "❑",
    0x76: "❖",
    0xD8: "➢",
    0xE0: "→",
    0xFC: "✓",
    0xFB: "✗",
}
_SYMBOL_GREEK = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ"
)

_COMBINING = dict(
    zip(
        "´ˆ˜¨ˇ˘˙¯˚¸˛˝\x03\x04",
        "\u0301\u0302\u0303\u0308\u030c\u0306\u0307\u0304\u030a\u0327\u0328\u030b\u0302\u0303",
        strict=True,
    )
)
_ACCENT = re.compile("([´ˆ˜¨ˇ˘˙¯˚¸˛˝\x03\x04])([^\\W\\d_])")
_GRAVE = re.compile("(?<=[^\\W\\d_])`([aeiouyAEIOUY])(?=[^\\W\\d_]|\\b)")
_DOTLESS = {"ı": "i", "ȷ": "j"}

_FAMILIES: tuple[tuple[re.Pattern[str], dict[int, str]], ...] = (
    (re.compile(r"cmsy|cmbsy|mt2sy|cm_maths_symbols|txsy|pxsy", re.IGNORECASE), _CMSY),
    (re.compile(r"cmex|txex|pxex|mt2ex|xccmex", re.IGNORECASE), _CMEX),
)
_tables: dict[str, dict[int, str] | None] = {}
_PRIVATE_SYMBOL = re.compile("[\uf020-\uf0ff]")


def decode_codes(codes: str, font: str) -> str:
    """Return a font's own codes as the signs they show, U+FFFD where nothing tells."""
    table = _table(font) or {}
    return "".join(c if c == " " else table.get(ord(c), REPLACEMENT) for c in codes)


def place_accents(text: str) -> str:
    """Return the text with accents that stand before their letter (as old fonts of TeX have them) put on it."""
    if "`" in text:
        text = _GRAVE.sub(lambda match: unicodedata.normalize("NFC", match[1] + "\u0300"), text)
    if text.isascii() and "\x03" not in text and "\x04" not in text:
        return text
    return _ACCENT.sub(
        lambda match: unicodedata.normalize("NFC", _DOTLESS.get(match[2], match[2]) + _COMBINING[match[1]]), text
    )


def repair_private(text: str) -> str:
    """Return the text with the private characters of Adobe Symbol as what they show (bullets, Greek, signs)."""
    return _PRIVATE_SYMBOL.sub(_symbol, text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0]) - 0xF000
    return _WINGDINGS.get(code) or _SYMBOL_UPPER.get(code) or chr(code).translate(_SYMBOL_GREEK)


def _table(font: str) -> dict[int, str] | None:
    if font not in _tables:
        _tables[font] = next((table for pattern, table in _FAMILIES if pattern.search(font)), None)
    return _tables[font]
