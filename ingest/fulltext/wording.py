"""Whether two titles are one title spelled twice, or two titles of one series: the words decide, not the letters."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from ingest.fulltext.letters import fold

# Words that one service writes and another leaves out.
_LIGHT: Final = frozenset(("a", "an", "the", "of", "in", "on", "for", "and", "to", "with", "by", "at", "from"))
# Spelled alike and meaning the opposite.
_OPPOSITES: Final = (("hypo", "hyper"), ("inter", "intra"))
_SEQUEL: Final = re.compile(
    r"^(?:(?:part|partie|teil|parte)\s*(?:\d|[ivx]+\b|one|two|three)|[ivx]{2,4}$|(?:reply|response|comment)$|"
    r"(?:re\s?visited|re\s?considered|re\s?examined|re\s?loaded|continued|follow\s?up|an? (?:follow\s?up|update|reply|addendum|response|comment)|"
    r"(?:the )?(?:next )?\w+ years (?:later|on|after)|(?:technical |online |web )?(?:appendix|supplement(?:ary)?(?: (?:material|information|data)s?)?$)|"
    r"supporting information|erratum|corrigendum|corrections?|addendum)\b)"
)


def is_sequel(following: str) -> bool:
    """Whether what follows a title makes it the title of another paper (Part II, Revisited, Ten Years Later)."""
    return bool(_SEQUEL.match(fold(following)))


def is_same_wording(one: str, other: str) -> bool:
    """Whether two titles differ by misprints, spelling and small words alone."""
    a, b = fold(one).split(), fold(other).split()
    for what, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        left, right = a[i:j], b[k:m]
        if what == "replace":
            left, right = [w for w in left if w not in right], [w for w in right if w not in left]
            if _is_misspelling("".join(left), "".join(right)):
                continue
        if not all(word in _LIGHT for word in (*left, *right)):
            return False
    return True


def _is_misspelling(one: str, other: str) -> bool:
    if one == other:
        return True
    if min(len(one), len(other)) < 4 or one[:2] != other[:2] or any(c.isdigit() for c in one + other):
        return False
    for pair in _OPPOSITES:
        if {word for word in pair if one.startswith(word)} != {word for word in pair if other.startswith(word)}:
            return False
    return _distance(one, other) <= (2 if max(len(one), len(other)) >= 8 else 1)


def _distance(one: str, other: str) -> int:
    """Insertions, deletions and replacements that turn one word into the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
