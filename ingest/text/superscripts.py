"""Raised signs: marks of footnotes go, numbers of references get a space before them, exponents stay where they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ingest.text.fragments import SUP_CLOSE, SUP_OPEN
from ingest.text.groups import Group

_SUPERSCRIPT = re.compile(f"{SUP_OPEN}([^{SUP_CLOSE}]*){SUP_CLOSE}")
_CITATION = re.compile(r"^[\d,;–\-\s]+$")
_NOTE = re.compile(rf"^(?:{SUP_OPEN}([\d*∗†‡§¶a-z]{{1,2}}){SUP_CLOSE}|([\d*∗†‡§¶]{{1,2}})(?=[^\d.,)]|$))")
_LETTER_BEFORE = re.compile(r"[^\W\d_]{3,}[)\]’'”\"]?$")
_SIGNS = frozenset("*∗†‡§¶‖#♣♠♦♥⋆★☆✉, ")


def resolve_superscripts(columns: Iterable[Sequence[Group]]) -> None:
    """Put the superscripts of one page into the rows' texts, in place.

    A number counts as a mark where a footnote of the page begins with it: the mark is no part of the sentence. A number
    right behind a word is a reference; glued to the word it would make a word that nobody looks for.
    """
    groups = [group for column in columns for group in column]
    rows = [row for group in groups for row in group.rows if SUP_OPEN in row.text]
    if not rows:
        return
    marks: set[str] = set()
    for group in groups:
        if group.role == "footnote":
            for row in group.rows:
                if match := _NOTE.match(row.text):
                    marks.add(match[1] or match[2])
                if row.text.startswith(SUP_OPEN):
                    row.text = _SUPERSCRIPT.sub(lambda m: m[1] + " ", row.text, count=1).replace("  ", " ")
    for row in rows:
        row.text = _SUPERSCRIPT.sub(lambda match: _resolved(match, marks), row.text)
    for group in groups:
        group.text_cache = ""


def _resolved(match: re.Match[str], marks: set[str]) -> str:
    content = match[1]
    if content in marks or all(c in _SIGNS for c in content):
        return ""
    before = match.string[: match.start()]
    if _CITATION.match(content) and _LETTER_BEFORE.search(before):
        return " " + content
    return content
