"""Which words are words: small lists of the most frequent ones, loaded when first asked for."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "de", "es", "fr", "it", "pt")


@cache
def words_of(language: str) -> frozenset[str]:
    """Return the frequent words of a language, in lower case."""
    return frozenset(_lines(language))


@cache
def frequent_words(language: str, n: int = 200) -> frozenset[str]:
    """Return the n most frequent words of a language: nearly all are function words."""
    return frozenset(_lines(language)[:n])


def is_word(word: str, language: str = "en") -> bool:
    """Whether a word, or what is left without a usual English ending, is a known word."""
    known = words_of(language)
    low = word.lower()
    if low in known:
        return True
    if language != "en":
        return False
    return any(
        low.endswith(end) and low[: -len(end)] + add in known for end, add in _ENDINGS if len(low) > len(end) + 3
    )


_ENDINGS = (
    ("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"), ("ly", ""), ("er", ""), ("ers", ""),
    ("ization", "ize"), ("isation", "ize"), ("ise", "ize"), ("ised", "ize"), ("ising", "ize"), ("ability", "able"), ("ness", ""),
    ("ability", "e"), ("ally", "al"), ("ally", "ic"), ("our", "or"), ("oured", "ored"), ("able", ""), ("able", "e"), ("al", ""),
)  # fmt: skip


def _lines(language: str) -> list[str]:
    return files("ingest.text").joinpath("words", f"{language}.txt").read_text(encoding="utf-8").split()
