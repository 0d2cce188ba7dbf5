"""From a text to the words that are indexed and asked for: one rule for both, of our own.

Words are runs of letters, marks and digits. A compound (`IL-6`, `TNF-α`, `covid-19`) gives its parts and, joined, itself,
so that `covid19` meets `COVID-19`. Decimal numbers and arXiv ids stay whole. Greek letters that stand as signs are
spelled out (`β-catenin` meets `beta-catenin`). Scripts without spaces between words give pairs of characters. English
endings are cut by Snowball's English stemmer inside the index's tokenizer; small words are kept apart.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

import tantivy

from search_server.words.folding import fold

VERSION = 1
"""Raise it with every change to what a text's words are: an index of another version is built anew."""

MAX_WORD_CHARS = 64

# The classic list of Lucene's English analyser and SMART's pronouns and question words: words without a subject.
SMALL_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "between",
        "both",
        "but",
        "by",
        "can",
        "cannot",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "me",
        "more",
        "most",
        "my",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "ours",
        "out",
        "over",
        "own",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
    ]
)

_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρστυφχψω",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "omicron",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
        ],
        strict=True,
    )
)
# Han, kana, bopomofo, Hangul syllables, Thai, Lao, Myanmar, Khmer: words are not divided by spaces, or not enough.
_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)


@lru_cache(maxsize=1)
def mark_class() -> str:
    """Character class of the combining marks, which the class of word characters leaves out and many scripts write inside words."""
    ranges: list[list[int]] = []
    for code in range(0x300, min(sys.maxunicode, 0x1FFFF)):
        if unicodedata.category(chr(code)) in {"Mn", "Mc"}:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges)


_ASCII_WORD = re.compile(r"[a-z0-9]+(?:[-.'/+][a-z0-9]+)*")


@lru_cache(maxsize=1)
def _any_word() -> re.Pattern[str]:
    letters = rf"[\w{mark_class()}]+"  # the underscore has become a blank before
    return re.compile(rf"{letters}(?:[-.'/+]{letters})*")


@lru_cache(maxsize=1)
def _pairs() -> re.Pattern[str]:
    return re.compile(f"([{_PAIRED}]+)")


_JOINT = re.compile(r"[-.'/+]")
_NUMBER = re.compile(r"\d+(?:\.\d+)+(?:v\d+)?")
_ENDINGS = frozenset({"s", "t", "d", "ll", "re", "ve", "m"})
_GREEK_SIGN = re.compile("[α-ω]")


def surface_words(text: str) -> list[str]:
    """Return the words of a text in their order, folded but not stemmed, compounds as parts and joined."""
    folded = fold(text)
    found = (_ASCII_WORD if folded.isascii() else _any_word()).findall(folded.replace("_", " "))
    words: list[str] = []
    put, put_all = words.append, words.extend
    for word in found:
        if word.isalnum() and word.isascii() and len(word) <= MAX_WORD_CHARS:
            put(word)
        else:
            put_all(_pieces(word))
    return words


@lru_cache(maxsize=100_000)
def _pieces(word: str) -> tuple[str, ...]:
    """The words that one run with joints or with letters beyond ASCII stands for."""
    return tuple(piece[:MAX_WORD_CHARS] for piece in _whole_pieces(word) if piece)


def _whole_pieces(word: str) -> tuple[str, ...]:
    if not word.isascii():
        if _GREEK_SIGN.search(word):
            word = _spell_greek(word)
        if _pairs().search(word):
            return tuple(piece for part in _JOINT.split(word) for piece in _split_scripts(part))
    if "/" in word or "+" in word:
        return tuple(piece for side in re.split(r"[/+]", word) for piece in _pieces(side))
    if "-" in word:
        sides = word.split("-")
        pieces = [piece for side in sides for piece in _pieces(side)]
        # A chain of many parts is a phrase or a sequence, and nobody writes it as one word.
        return (*pieces, "".join(pieces)) if len(sides) <= 3 else tuple(pieces)
    if "'" in word:
        head, _, tail = word.partition("'")
        return _pieces(head) if tail in _ENDINGS and head else (*_pieces(head), *_pieces(tail))
    if "." not in word or (_NUMBER.fullmatch(word) and "v" not in word):
        return (word,)
    if _NUMBER.fullmatch(word):  # an arXiv id with its version
        return (word.partition("v")[0],)
    parts = word.split(".")
    return ("".join(parts),) if max(map(len, parts)) == 1 else tuple(parts)


def _spell_greek(word: str) -> str:
    """Greek letters as signs (alone, or beside Latin letters and digits) by their names; Greek words stay Greek."""
    out: list[str] = []
    for part in re.split(r"([-.'/+])", word):
        greek = sum("α" <= c <= "ω" for c in part)
        is_sign = greek and (len(part) == 1 or (greek < len(part) and greek <= 2))
        out.append("".join(_GREEK.get(c, c) for c in part) if is_sign else part)
    return "".join(out)


def _split_scripts(part: str) -> list[str]:
    words: list[str] = []
    for run in _pairs().split(part):
        if not run:
            continue
        if _pairs().match(run) and len(run) > 1:
            words.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            words.append(run)
    return words


@lru_cache(maxsize=1)
def stemmer() -> tantivy.TextAnalyzer:
    """Snowball's English stemmer over words divided by blanks; the index registers the same one."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.stemmer("english")).build()


def stems(words: list[str]) -> list[str]:
    """Return the words as the index holds them, one for each."""
    return stemmer().analyze(" ".join(words)) if words else []


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Return one word as the index holds it."""
    return stemmer().analyze(word)[0]


def split_small(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words that carry a subject, and the small ones."""
    return [w for w in words if w not in SMALL_WORDS], [w for w in words if w in SMALL_WORDS]


def title_key(text: str) -> str:
    """Return what two spellings of one title share; empty where there is no word."""
    return " ".join(surface_words(text))
