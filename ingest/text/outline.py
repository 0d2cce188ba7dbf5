"""Which of the lines that look like headings are headings of the document.

Numbers that follow each other and the usual words ("Abstract", "Materials and methods") are certain; others count
when they share the style of those, or when a style of its own comes back. Names of authors, heads of tables, steps of
algorithms and entries of reference lists look like headings too, and are told by where they stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ingest.text.groups import CAPTION, Group, Layout
from ingest.text.headings import is_section_word, section_kind

_Style = tuple[str, int, bool]
_Path = tuple[int, ...]

_NUMBER = re.compile(
    r"^(?:(?:[Ss]ection|[Cc]hapter|SECTION|CHAPTER|Kapitel|Chapitre)\s+)?(\d{1,2}(?:\.\d{1,2}){0,3})\.?\)?[\s\t]+(?=[^\W\d_])"
)
_LETTER = re.compile(r"^(?:(?:Appendix|APPENDIX|Annexe?|Anhang)\s+)?([A-Z](?:\.\d{1,2}){0,3})[.:]?[\s\t]+(?=[^\W\d_])")
_ROMAN = re.compile(r"^([IVX]{1,5})\.[\s\t]+(?=[^\W\d_])")
_NO_HEADING = re.compile(
    r"@|\bet al\.?$|^\d+\s*:|https?:|^[\W\d]+$|[.…]{4,}|\s\d{1,3}$(?<=\.\s\d)|^(?:input|output|require|ensure|return|end|for|while|if)\b",
    re.IGNORECASE,
)

_TWO_SENTENCES = re.compile(r"[a-z)]{2}[.:] [A-Z][a-z]* [a-z]")


def settle_headings(groups: Sequence[Group], layout: Layout) -> None:
    """Give each candidate its level, or make it running text again, in place; `groups` are in reading order."""
    candidates = [group for group in groups if group.role == "heading"]
    possible = [group for group in candidates if _is_possible(group, layout)]
    for group in candidates:
        group.role = "body"
    numbered = _numbered_runs(possible)
    certain = Counter(_style(g) for g in possible if id(g) in numbered or is_section_word(_text(g)))
    usual = Counter(_style(g) for g in possible)
    is_numbered_paper = len(numbered) >= 3
    top_styles = {_style(g) for g in possible if len(numbered.get(id(g), (0, 0))) == 1}
    has_begun = False
    in_references = False
    first_page = min((g.first.page for g in groups), default=0)
    has_words = any(id(g) in numbered or is_section_word(_text(g)) for g in possible if g.first.page <= first_page + 1)
    for group in possible:
        text, style = _text(group), _style(group)
        is_word = is_section_word(text)
        path = numbered.get(id(group))
        if path is not None:
            accepted = not in_references or certain[style] >= 2
            level = len(path)
        elif is_word:
            accepted = (
                group.first.is_bold
                or group.size > layout.size + 0.3
                or certain[style] >= 2
                or text.isupper()
                or style[0] != layout.font
            )
            level = 1
        else:
            is_set_apart = style[0] != layout.font or group.size > layout.size + 0.6
            alike = (
                certain[style] >= 1 and (usual[style] >= 3 or group.size > layout.size + 0.6) and not text.endswith(".")
            )
            if is_numbered_paper and style not in top_styles and group.size < layout.size + 0.6:
                alike = False
            own_style = usual[style] >= 3 and not is_numbered_paper and not in_references and is_set_apart
            accepted = (alike and is_set_apart) or own_style
            if in_references and not (certain[style] >= 2 or section_kind(text) == "appendix"):
                accepted = False
            if not has_begun and has_words and group.first.page <= first_page + 1:
                accepted = False  # names and places above the abstract
            level = 1 if alike or not certain else 2
        if not accepted:
            continue
        group.role = "heading"
        group.level = level
        has_begun = True
        kind = section_kind(text)
        in_references = kind == "references" or (in_references and path is None and not is_word and kind != "appendix")


def _is_possible(group: Group, layout: Layout) -> bool:
    text = _text(group)
    has_number = bool(_NUMBER.match(text) or _LETTER.match(text) or _ROMAN.match(text))
    cells = group.text.split("\t")[1:]
    if cells and not (
        has_number
        and (
            len(cells) == 1
            or (group.size > layout.size + 1 and all(c.replace(" ", "").replace("-", "").isalpha() for c in cells))
        )
    ):
        return False
    n_words = len(text.split())
    if _NO_HEADING.search(text) or CAPTION.match(text) or n_words > 18:
        return False
    if n_words > 12 and _LETTER.match(text) and not text.startswith(("Appendix", "APPENDIX")):
        return False
    return not (text.endswith(".") and n_words > 8) and not (n_words > 6 and _TWO_SENTENCES.search(text))


def _numbered_runs(groups: Sequence[Group]) -> dict[int, _Path]:
    """The number of each heading whose number follows from one before; a lone number is none."""
    by_kind: dict[str, list[tuple[Group, _Path]]] = {"digit": [], "letter": [], "roman": []}
    for group in groups:
        text = _text(group)
        if match := _NUMBER.match(text):
            by_kind["digit"].append((group, tuple(int(part) for part in match[1].split("."))))
        elif match := _ROMAN.match(text):
            by_kind["roman"].append((group, (_roman(match[1]),)))
        elif match := _LETTER.match(text):
            head, *rest = match[1].split(".")
            by_kind["letter"].append((group, (ord(head) - 64, *map(int, rest))))
    found: dict[int, _Path] = {}
    for kind, items in by_kind.items():
        run = _longest_run(items)
        if len(run) >= 2 or (
            kind == "letter" and run and section_kind(_text(run[0][0])) == "appendix" and run[0][0].first.is_bold
        ):
            found |= {id(group): path for group, path in run}
    return found


def _longest_run(items: Sequence[tuple[Group, _Path]]) -> list[tuple[Group, _Path]]:
    """The longest chain in which every number follows from the one before it (quadratic in the candidates, at most 400)."""
    items = items[:400]
    best: list[tuple[float, int]] = []  # weight of the chain that ends here, and its link before
    for i, (group, path) in enumerate(items):
        weight, link = (1.0 if path[0] <= 1 else 0.2), -1
        for j in range(i):
            if _follows(items[j][1], path):
                bonus = 1.0 + (0.5 if _style(items[j][0]) == _style(group) or len(items[j][1]) != len(path) else 0.0)
                if best[j][0] + bonus > weight:
                    weight, link = best[j][0] + bonus, j
        best.append((weight, link))
    if not best:
        return []
    at = max(range(len(best)), key=lambda i: best[i][0])
    chain: list[tuple[Group, _Path]] = []
    while at >= 0:
        chain.append(items[at])
        at = best[at][1]
    return chain[::-1]


def _follows(before: _Path, path: _Path) -> bool:
    """Whether a number may come right after another: 2 → 2.1, 2.1 → 2.2, 2.3.1 → 2.4 or 3; one may have been missed."""
    if len(path) > len(before):
        return path[: len(before)] == before and all(part == 1 for part in path[len(before) :])
    shared = len(path) - 1
    return path[:shared] == before[:shared] and 1 <= path[shared] - before[shared] <= 2


def _roman(word: str) -> int:
    values = {"I": 1, "V": 5, "X": 10}
    total = 0
    for char, following in zip(word, word[1:] + " ", strict=False):
        value = values[char]
        total += -value if values.get(following, 0) > value else value
    return total


def _text(group: Group) -> str:
    return group.text.replace("\t", " ").strip()


def _style(group: Group) -> _Style:
    return group.first.font, round(group.first.size * 2), group.first.is_bold
