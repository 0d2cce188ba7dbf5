"""The title of a paper, from what stands on its first page; the file's own metadata only confirms it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ingest.text.fragments import SUP_CLOSE, SUP_OPEN
from ingest.text.groups import Group, Layout
from ingest.text.headings import is_section_word, section_kind
from ingest.text.hyphens import Hyphenation
from ingest.text.rows import Row

_BANNER = re.compile(
    r"^(?:(?:original |research |review |short |brief |regular |full |invited )*(?:article|paper|letter|report|communication|research|review)s?|"
    r"open access|open|arxiv:.*|biorxiv.*|preprint.*|published .*|doi\b.*|https?:.*|www\..*|proceedings of .*|"
    r"under review .*|accepted .*|received .*|copyright .*|©.*|vol(?:ume|\.)? .*|journal of .*|ieee .*|contents(?: lists)? .*|"
    r"supplementary (?:information|material)s?|check for updates|see discussions.*|nature\b.*|plos.*|scientific reports.*|sciencedirect|.*\bissn\b.*)$",
    re.IGNORECASE,
)
_SUPERSCRIPT = re.compile(f"{SUP_OPEN}[^{SUP_CLOSE}]*{SUP_CLOSE}")
_GENERIC = re.compile(
    r"(?i)^(?:microsoft (?:word|powerpoint)|untitled|document\d*|proceedings template|slide \d|.*\.(?:docx?|pdf|tex|dvi|indd|qxd|rtf|odt|pptx?))"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBERED = re.compile(r"^\d{1,2}(?:\.\d{1,2})*\.?[\s\t]+[^\W\d]")
_TRAILING_MARK = re.compile(r"\s*[*∗†‡§¶⋆★]+$")


def confirm_title(columns: Sequence[Sequence[Group]], metadata_title: str | None) -> list[Group]:
    """Return the groups of a page that hold just the words of the metadata's title, or none."""
    wanted = _letters(usable_metadata_title(metadata_title) or "")
    if len(wanted) < 8:
        return []
    groups = [group for column in columns for group in column if _WORD.search(group.text)]
    for start in range(len(groups)):
        found = ""
        for end in range(start, min(start + 4, len(groups))):
            found += _letters(_SUPERSCRIPT.sub("", groups[end].text))
            if found == wanted:
                return list(groups[start : end + 1])
            if not wanted.startswith(found):
                break
    return []


def find_title(columns: Sequence[Sequence[Group]], layout: Layout, height: float) -> list[Group]:
    """Return the groups of a page that are the title: the largest letters in its upper part, or none."""
    groups = [group for column in columns for group in column if _WORD.search(group.text)]
    candidates = [g for g in groups if g.role in {"body", "heading"} and _may_be_title(g, layout, height)]
    if not candidates:
        return []
    candidates.sort(key=lambda g: (-round(g.size * 2), g.first.base))
    best = candidates[0]
    if best.size < layout.size + 0.9 and not best.first.is_bold:
        return []
    least = max(0.8 * best.size, layout.size + 2.0)  # a second line is often set a little smaller
    order = [
        g for g in groups if abs(g.size - best.size) < 0.6 or g is best or (g.size >= least and g.size < best.size)
    ]
    return _run(best, order)


def title_text(groups: Sequence[Group], hyphenation: Hyphenation) -> str | None:
    """Return the title as one line, without marks of footnotes."""
    rows: list[Row] = [row for group in groups for row in group.rows]
    if not rows:
        return None
    text = ""
    for row in rows:
        words = _SUPERSCRIPT.sub("", row.text).replace("\t", " ").strip()
        text = hyphenation.join(text, words) if text else words
    text = _TRAILING_MARK.sub("", " ".join(text.split()))
    return text or None


def usable_metadata_title(title: str | None) -> str | None:
    """Return a metadata title that can be one: not "Microsoft Word - x.doc", not a file name, more than a word."""
    plain = " ".join((title or "").split())
    if len(plain) < 8 or _GENERIC.match(plain) or len(plain.split()) < 2:
        return None
    return plain


def _may_be_title(group: Group, layout: Layout, height: float) -> bool:
    text = group.text.strip()
    if group.first.base > 0.62 * height or len(text) > 320 or len(group.rows) > 6:
        return False
    if len(_WORD.findall(text)) < 1 or len(text) < 4 or _BANNER.match(text):
        return False
    if (section_kind(text) != "other" and len(text.split()) <= 3) or is_section_word(text) or _NUMBERED.match(text):
        return False
    return group.size > layout.size - 0.6


def _run(best: Group, order: Sequence[Group]) -> list[Group]:
    """The best group and those of its size right above and below it."""
    at = next(i for i, g in enumerate(order) if g is best)
    run = [best]
    for following in order[at + 1 :]:
        gap = following.first.base - run[-1].last.base
        if (
            not 0 < gap < (2.6 if abs(following.size - best.size) < 0.3 else 1.75) * best.size
            or following.first.font != best.last.font
        ):
            break
        run.append(following)
    return run


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum())
