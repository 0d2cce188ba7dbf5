"""Whether a file is whole, and the paper that was asked for.

Wrong papers must never pass; a right one that is refused costs one more location. So every acceptance needs the title
in lines of its own (or an own identifier) and something that a paper with the same words would not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ingest.fulltext.companions import find_companion, is_cover
from ingest.fulltext.complete import find_cut, find_fragment
from ingest.fulltext.front import Front, read_front
from ingest.fulltext.letters import content_words, n_names_in, similarity
from ingest.fulltext.shape import find_shape
from ingest.fulltext.titles import TitleMatch, find_title, is_generic, is_in_head
from ingest.fulltext.wanted import Wanted
from ingest.preprints import is_preprint_doi
from ingest.text.result import Extraction

_ABSTRACT = re.compile(
    r"(?im)^\W*(?:abstract|summary|résumé|zusammenfassung|kurzfassung|resumen|resumo|sommario|riassunto|аннотация|摘要)\s*(?:[.:—–-]|$)"
    r"|^\W*(?:(?:1|I)\.?\s*)?introduction\W*$"
)


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a file may be stored as the paper's full text; `reason` says why not, or by what it was known."""

    is_right: bool
    reason: str


def verify(path: Path, extraction: Extraction, wanted: Wanted) -> Verification:
    """Judge a downloaded file by its bytes, its extraction and its first pages."""
    if cut := find_cut(path, extraction):
        return Verification(False, f"incomplete: {cut}")
    if not extraction.is_ok:
        return Verification(False, f"{extraction.verdict}: {extraction.reason}")
    if fragment := find_fragment(extraction):
        return Verification(False, f"no full text: {fragment}")
    if shape := find_shape(path, extraction):
        return Verification(False, f"another file: {shape}")
    return verify_identity(read_front(path, extraction), wanted)


def verify_identity(front: Front, wanted: Wanted) -> Verification:
    """Judge by the first pages alone whether they are those of the paper."""
    if not (wanted.titles or wanted.arxiv or wanted.dois):
        return Verification(True, "nothing is known that it could be checked against")
    if companion := find_companion(front, wanted.titles):
        return Verification(False, f"another file: {companion}")
    if front.stamped_arxiv and wanted.arxiv and front.stamped_arxiv != wanted.arxiv:
        return Verification(False, f"wrong paper: it is stamped arXiv:{front.stamped_arxiv}")
    evidence = _Evidence.of(front, wanted)
    if evidence.title and is_cover(front, 0) and evidence.title.page == 0 and not _cover_is_kept(front, wanted):
        return Verification(False, "wrong paper: the cover names it, the pages behind do not")
    if by := evidence.accepted_by(wanted):
        return Verification(True, by)
    return Verification(False, evidence.refusal(wanted))


@dataclass(frozen=True, slots=True)
class _Evidence:
    title: TitleMatch
    is_title_in_head: bool
    is_stamped: bool
    has_own_doi: bool
    is_doi_named: bool
    has_foreign_doi: bool
    n_authors: int
    n_authors_at_head: int
    has_abstract: bool
    has_read_title: bool
    has_other_title: bool
    is_changed_preprint: bool
    n_shared_words: float

    @classmethod
    def of(cls, front: Front, wanted: Wanted) -> _Evidence:
        title = find_title(front, wanted.titles)
        first = 1 if is_cover(front, 0) and not title else title.page
        head = front.text(first, first + 1)
        words = content_words(head[:1200])
        shared = [len(w & words) / len(w) for title in wanted.titles if (w := content_words(title))]
        # A preprint's DOI on a file with a changed title does not speak against the article (and back).
        foreign = {d for d in front.own_dois - wanted.dois if not is_preprint_doi(d)}
        return cls(
            title=title,
            is_title_in_head=any(is_in_head(front, t, p) for t in wanted.titles for p in (0, 1) if not is_generic(t)),
            is_stamped=bool(wanted.arxiv) and front.stamped_arxiv == wanted.arxiv,
            has_own_doi=bool(front.own_dois & wanted.dois),
            is_doi_named=bool(front.named_dois & wanted.dois),
            has_foreign_doi=bool(foreign and wanted.dois and not front.own_dois & wanted.dois),
            n_authors=n_names_in(front.text(first, first + 3), wanted.authors),
            n_authors_at_head=n_names_in(head[:2500], wanted.authors),
            has_read_title=bool(front.titles),
            has_other_title=bool(front.titles and wanted.titles)
            and max(similarity(read, t) for read in front.titles for t in wanted.titles) < 0.3,
            is_changed_preprint=_is_changed_preprint(front, wanted),
            has_abstract=bool(_ABSTRACT.search(head)),
            n_shared_words=max(shared, default=0.0),
        )

    def accepted_by(self, wanted: Wanted) -> str | None:
        """Name what the paper is known by, or None."""
        n_known = len(wanted.authors)
        # Pages out of the middle bear the title and the DOI as running heads; a first page names its authors.
        is_first_page = self.n_authors_at_head > 0 if n_known else self.has_abstract
        if self.title.is_running_head and not is_first_page:
            return None
        has_id = self.is_stamped or (self.has_own_doi and (is_first_page or not self.title.is_running_head))
        authors_agree = self.n_authors >= 1 if n_known else not all(is_generic(t) for t in wanted.titles)
        many_authors = n_known > 0 and self.n_authors >= min(2, n_known)
        match self.title.match:
            case "exact" if has_id or authors_agree:
                return "its title" if not has_id else "its title and identifier"
            case "close" if has_id or (many_authors and not self.has_foreign_doi):
                return "a title that differs little, and " + ("its identifier" if has_id else "its authors")
            case "subtitle" if has_id or (
                not self.has_foreign_doi and n_names_in(self.title.following, wanted.authors)
            ):
                return "its title without the subtitle, and " + ("its identifier" if has_id else "its authors")
            case _:
                pass
        if self.has_own_doi and not wanted.titles and not n_known and self.has_read_title:
            return "its DOI"
        if self.is_stamped and (self.n_authors or not n_known or self.n_shared_words >= 0.5):
            return "arXiv's stamp"
        is_whole = (
            self.n_authors_at_head >= min(2, n_known) if n_known else self.n_shared_words >= 0.8 or not wanted.titles
        )
        if self.has_own_doi and is_first_page and is_whole and (n_known or not self.has_other_title):
            return "its DOI"
        if self.is_changed_preprint and self.n_authors_at_head >= min(2, n_known) > 0:
            return "a preprint's changed title and its authors"
        if (
            self.is_title_in_head
            and self.is_doi_named
            and not self.has_other_title
            and (self.n_authors_at_head or not n_known)
        ):
            return "its title and DOI in the head of the first page"
        return None

    def refusal(self, wanted: Wanted) -> str:
        """Say why nothing sufficed."""
        if self.title.match == "exact" and wanted.authors:
            return "wrong paper: the title is right, none of the authors is named"
        if self.title:
            return "cannot tell: the title is only like the one asked for, and nothing else confirms it"
        return "wrong paper: neither its title nor an identifier stands on its first pages"


def _is_changed_preprint(front: Front, wanted: Wanted) -> bool:
    """Whether the file is a preprint, the wanted paper an article, and their long titles nearly one."""
    if not any(is_preprint_doi(doi) for doi in front.own_dois) or all(is_preprint_doi(doi) for doi in wanted.dois):
        return False
    return any(
        len(content_words(title)) >= 12 and similarity(read, title) >= 0.75
        for read in front.titles
        for title in wanted.titles
    )


def _cover_is_kept(front: Front, wanted: Wanted) -> bool:
    """Whether the pages behind a cover are those that it announces."""
    behind = Front(front.pages[1:4], (), front.stamped_arxiv, frozenset(), frozenset())
    if not behind.pages or (wanted.arxiv and front.stamped_arxiv == wanted.arxiv):
        return bool(behind.pages)
    if find_title(behind, wanted.titles) or any(is_in_head(behind, t, p) for t in wanted.titles for p in range(3)):
        return True
    text = behind.text(0, 2)
    n_authors = n_names_in(text[:3000], wanted.authors)
    return (n_authors >= 2 or n_authors == len(wanted.authors) == 1) or any(doi in text.lower() for doi in wanted.dois)
