"""The text inside a paragraph of HTML or XML: marks dropped, references apart from words, formulas as they can be read."""

# ruff: noqa: SIM905  lists of words read best as words

from __future__ import annotations

import re
from typing import Any

_CITATION = re.compile(r"^\s*[\[(]?[\d,;–\-\s]+[\])]?\s*$")
_LETTERS = re.compile(r"[^\W\d_]{3,}[)\]’'”\"]?$")
_MARK = re.compile(r"^[*∗†‡§¶\s,]+$")
_SKIPPED = frozenset(
    "script style noscript template svg object-id permissions annotation annotation-xml fn label-alt".split()
)

_MAX_DEPTH = 200
"""Below that the text is taken as it stands."""


def local_name(node: Any) -> str:
    """Return an element's name without its namespace; empty for comments and instructions."""
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def inline_text(node: Any, before: str, skip: frozenset[str] = frozenset()) -> str:
    """Return the text of an element and all below it; `before` is what stands right in front of it.

    `skip` names elements that are left out (floats, which the caller reads apart). White space stays as it is.
    """
    pieces: list[str] = []
    _collect(node, pieces, before, skip, depth=0)
    return "".join(pieces)


def _collect(node: Any, pieces: list[str], before: str, skip: frozenset[str], *, depth: int) -> None:
    name = local_name(node)
    if not name or name in _SKIPPED:
        return
    if depth > _MAX_DEPTH:
        pieces.append("".join(node.itertext()))
        return
    if name == "math":
        pieces.append(_formula(node))
        return
    if name in {"br", "break"}:
        pieces.append(" ")
        return
    if name == "img":
        return
    if name == "tex-math":
        pieces.append(_tex("".join(node.itertext())))
        return
    if name == "alternatives":
        children = [child for child in node if local_name(child) in {"math", "tex-math"}]
        for child in children[:1]:
            _collect(child, pieces, before, skip, depth=depth + 1)
        return
    if name == "sup":
        _superscript(node, pieces, before, skip)
        return
    if node.text:
        pieces.append(node.text)
    for child in node:
        if local_name(child) not in skip:
            _collect(child, pieces, before if not pieces else pieces[-1], skip, depth=depth + 1)
        if child.tail:
            pieces.append(child.tail)


def _superscript(node: Any, pieces: list[str], before: str, skip: frozenset[str]) -> None:
    inside: list[str] = [node.text or ""]
    for child in node:
        if local_name(child) not in skip:
            _collect(child, inside, "", skip, depth=1)
        inside.append(child.tail or "")
    text = "".join(inside)
    if _MARK.match(text):
        return
    last = pieces[-1] if pieces else before
    if _CITATION.match(text) and _LETTERS.search(last):
        pieces.append(" ")
    pieces.append(text.strip())


def _formula(node: Any) -> str:
    """MathML as a reader would type it; what stands beside it as TeX or alternative text wins."""
    alt = node.get("alttext")
    if alt:
        return _tex(alt)
    return "".join(text for text in _math_pieces(node)) or ""


def _math_pieces(node: Any) -> list[str]:
    name = local_name(node)
    if name in {"annotation", "annotation-xml"}:
        return []
    pieces = [" ".join((node.text or "").split())] if name in {"mi", "mn", "mo", "mtext", "ms"} else []
    for child in node:
        pieces += _math_pieces(child)
    if name == "mo" and pieces and pieces[0] in {"=", "+", "−", "-", "<", ">", "≤", "≥", "×", "∈", "≈", "→"}:
        return [f" {pieces[0]} "]
    return pieces


def _tex(source: str) -> str:
    """Return TeX without its frame: the body of a whole document, no dollar signs."""
    match = re.search(r"\\begin\{document\}(.*?)\\end\{document\}", source, re.DOTALL)
    text = match[1] if match else source
    return " ".join(text.strip().strip("$").split())
