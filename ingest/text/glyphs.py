"""Glyphs without a Unicode value whose font tells what they are: the mathematical fonts of TeX and Adobe Symbol.

Sources: the encodings of cmsy10, cmmi10 and cmex10 (The TeXbook, appendix F) and of Symbol (PDF reference, D.6).
"""

from __future__ import annotations

import re

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

_FAMILIES: tuple[tuple[re.Pattern[str], dict[int, str]], ...] = (
    (re.compile(r"cmsy|cmbsy|mt2sy|cm_maths_symbols|txsy|pxsy", re.IGNORECASE), _CMSY),
    (re.compile(r"cmex|txex|pxex|mt2ex|xccmex", re.IGNORECASE), _CMEX),
)
_tables: dict[str, dict[int, str] | None] = {}
_PRIVATE_SYMBOL = re.compile("[\uf020-\uf0ff]")


def repair_by_font(text: str, codes: str, font: str) -> str:
    """Return the text with U+FFFD replaced where the font's code names the sign; `codes` is in step with it."""
    table = _table(font)
    if table is None or len(codes) != len(text):
        return text
    return "".join(
        table.get(ord(code), REPLACEMENT) if char == REPLACEMENT else char
        for char, code in zip(text, codes, strict=True)
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
