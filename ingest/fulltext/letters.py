"""Titles and names reduced to what survives typesetting: letters and digits, folded."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_TEX = re.compile(r"\\[a-zA-Z]+\*?|[${}\\^_~]")
# Greek letters are written as signs, as TeX commands and by their names: all become the names.
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa",
    "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "ο": "omicron", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "υ": "upsilon",
    "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
_TEX_GREEK = re.compile(rf"\\(?:var)?({'|'.join(_GREEK.values())})(?![a-zA-Z])", re.IGNORECASE)
_LIGATURE = _GREEK | {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ß": "ss"}
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "by",
        "for",
        "from",
        "in",
        "into",
        "is",
        "its",
        "of",
        "on",
        "or",
        "the",
        "to",
        "toward",
        "towards",
        "using",
        "via",
        "with",
        "without",
        "der",
        "die",
        "das",
        "und",
        "le",
        "la",
        "les",
        "de",
        "des",
        "du",
        "et",
        "en",
        "un",
        "une",
        "el",
        "los",
        "las",
        "y",
    ]
)
_SUFFIX = frozenset(("jr", "sr", "ii", "iii", "iv", "phd", "md"))
_ROMAN = re.compile(r"(?:i{2,3}|iv|vi{0,3}|ix|x{1,2})")


@lru_cache(maxsize=8192)
def fold(text: str) -> str:
    """Fold case, compatibility forms, accents and markup; punctuation becomes spaces."""
    plain = _TEX.sub(" ", _TEX_GREEK.sub(r" \1 ", _TAG.sub("", html.unescape(text))))
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", plain)).casefold()
    plain = "".join(_LIGATURE.get(c, c) for c in plain if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def letters(text: str) -> str:
    """Give letters and digits alone: spaces, hyphens at line ends and marks of footnotes make no difference."""
    return fold(text).replace(" ", "")


def content_words(text: str) -> frozenset[str]:
    """Give the words that carry a title."""
    return frozenset(word for word in fold(text).split() if len(word) > 1 and word not in _STOP)


def numbers(text: str) -> list[str]:
    """Give the numbers and roman numerals of a title, by which parts of a series differ, sorted."""
    words = fold(text).split()
    found = [n for word in words for n in re.findall(r"\d+", word)]
    return sorted(found + [word for word in words if _ROMAN.fullmatch(word)])


def similarity(one: str, other: str) -> float:
    """Give the share of content words that two titles have in common, of the longer one; 0 where numbers differ."""
    a, b = content_words(one), content_words(other)
    if not a or not b or numbers(one) != numbers(other):
        return 0.0
    return len(a & b) / max(len(a), len(b))


def surname(name: str) -> str:
    """Give the folded surname of `Family, Given` or `Given Family`; a name without spaces is taken whole."""
    if "," in name:
        return fold(name.partition(",")[0])
    words = fold(name).split()
    while len(words) > 1 and words[-1] in _SUFFIX:
        words.pop()
    return words[-1] if words else ""


def n_names_in(text: str, names: Iterable[str]) -> int:
    """Count the people whose surname stands in a text; short surnames must be words of their own."""
    folded = re.sub(r"\d+", " ", fold(text))  # marks of affiliations stand right behind names
    words, joined = frozenset(folded.split()), folded.replace(" ", "")
    n = 0
    for name in names:
        family = surname(name)
        tight = family.replace(" ", "")
        if tight and (
            tight in words or (len(tight) >= 5 and tight in joined) or (not tight.isascii() and tight in joined)
        ):
            n += 1
    return n
