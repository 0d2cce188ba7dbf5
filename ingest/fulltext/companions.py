"""Files that go with a paper and bear its title without being it: supplements, corrections, comments, reviews; covers."""

from __future__ import annotations

import re

from ingest.fulltext.front import Front
from ingest.fulltext.letters import fold, letters

_N_LINES = 14
_SUPPLEMENT = "supplementary material"
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        _SUPPLEMENT,
        re.compile(
            r"^(?:(?:electronic |online |web )?(?:supplement(?:ary|al)?|supporting|additional) "
            r"(?:online )?(?:information|materials?|data|methods?|figures?|tables?|text|notes?|files?|appendix|appendices|content)"
            r"|(?:electronic |online |web )?supplements?|supplementary|si appendix|(?:online|web|technical) appendix|appendix(?= (?:to|for)\b|$))"
        ),
    ),
    (
        "a correction",
        re.compile(
            r"^(?:author |publisher |editorial )?(?:erratum|errata|corrigend(?:um|a)|corrections?|addendum|retraction(?: notice| note)?|"
            r"expression of concern)(?: to| for| in| on|$|(?= [a-z0-9]))"
        ),
    ),
    (
        "a comment on it",
        re.compile(
            r"^(?:comments?|reply|response|rebuttal|a comment|remarks?|discussion) (?:on|to|of)\b|^book review\b"
        ),
    ),
    (
        "papers of its review",
        re.compile(
            r"^(?:peer review(?:er)? (?:file|report|history)|reviewers? (?:comments|report)|decision letter|reporting summary|response to reviewers|"
            r"authors? response(?:s|$))\b"
        ),
    ),
)
# Labels in the very first lines: what stands below is about papers, or a list of them.
_LABELS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a piece about it",
        re.compile(
            r"^(?:journal club|(?:research|news) highlights?|news (?:and )?views|in brief|in this issue|this week in .{3,40}|press release|"
            r"plain language summary|lay summary|editors? (?:choice|pick)|book reviews?)$"
        ),
    ),
    (
        "a list of papers",
        re.compile(
            r"^(?:(?:.{0,40}\b)?(?:reading list|syllabus|books? of abstracts)|list of (?:publications|papers)|(?:selected )?publications|"
            r"curriculum vitae|annotated bibliography|conference programme?|(?:table of )?contents)$"
        ),
    ),
)
_N_LABEL_LINES = 3
# Lines of ordinary first pages that only name the supplement.
_SENTENCE = re.compile(
    r"\b(?:is|are|was|were|has|have|can|may|contains?|includes?|accompan\w+|available|online version|see|found|provided)\b"
)
_COVER = re.compile(
    r"see discussions stats and author profiles|this version is available|hal is a multi ?disciplinary|to cite this version|"
    r"citation for published version|link to publication|this is a repository copy|take ?down policy|general rights|stable url|"
    r"terms (?:of use|and conditions)|this is the (?:author|accepted|peer reviewed|post ?print|pre ?print)|accepted manuscript|"
    r"recommended citation|view metadata citation|provided by .{0,40}repository|your use of this pdf|"
    r"version of record|document version|please cite (?:this article|the original)|how to cite this|citation details|"
    r"self archiving|follow this and additional works"
)


def find_companion(front: Front, titles: tuple[str, ...]) -> str | None:
    """Say which companion of the paper a file announces itself as in the upper lines of its first pages, or None.

    A wanted title that itself begins so ("Erratum to …") is no reason.
    """
    wanted = [letters(title) for title in titles]
    if label := find_label(front, 0, wanted):
        return label
    for page in front.pages[:2]:
        for line in page[:_N_LINES]:
            folded = fold(line.partition(". ")[0])
            if len(folded) > 160 or _SENTENCE.search(folded):
                continue
            for kind, pattern in _KINDS:
                found = pattern.match(folded)
                if not found or any(w.startswith(letters(found[0])) for w in wanted):
                    continue
                if kind != _SUPPLEMENT or _is_heading(folded[found.end() :], wanted):
                    return kind
        if not is_cover(front, 0):
            break
    return None


def _is_heading(rest: str, wanted: list[str]) -> bool:
    """Whether nothing stands behind the words for a supplement but what it is to, its number, or the title itself."""
    if not rest.strip() or re.fullmatch(r"(?: e?si)? (?:to|for|of|accompanying|s?\d+|[a-z])(?: .*)?", rest):
        return True
    title = rest.replace(" ", "")
    return len(title) >= 10 and any(w.startswith(title) for w in wanted)


def find_label(front: Front, number: int, wanted: list[str]) -> str | None:
    """Say what a page calls itself in its first lines, where that is no paper, or None."""
    if number >= len(front.pages):
        return None
    for line in front.pages[number][:_N_LABEL_LINES]:
        folded, tight = fold(line), letters(line)
        if any(len(tight) >= min(8, len(title)) and title.startswith(tight) for title in wanted):
            return None  # the title comes first, or bears such a word itself
        for kind, pattern in _LABELS:
            if pattern.match(folded):
                return kind
    return None


def is_cover(front: Front, number: int) -> bool:
    """Whether a page is a sheet that a repository or publisher has put in front.

    Lines that other pages bear too are stamps of a download, which speak of terms and conditions as covers do.
    """
    if number >= len(front.pages):
        return False
    others = {line for n, page in enumerate(front.pages) if n != number for line in page}
    text = fold("\n".join(line for line in front.pages[number] if line not in others))
    return 0 < len(text) < 4500 and bool(_COVER.search(text))
