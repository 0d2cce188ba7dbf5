"""One paper from many works: united by identifiers, then carefully by title, year and first author.

Pure, and independent of the order of arrival: links between works are found from the whole set, sorted, and taken one
after the other; a link that would break a rule is left out.

What unites: an identifier that two works share (DataCite's arXiv DOIs are arXiv ids), a stated link between a preprint
and its article or between versions, or the same title, if it is long enough to be somebody's own, by the same first
author within two years, while no identifier speaks against it. What stays apart: errata, comments and replies from the
paper that they are about, parts of a series, editorials of one title, and whatever a person has taken apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Final

from corpus.errors import InputError
from corpus.ids import KINDS, implied_identifiers, paper_key, parse_identifier
from ingest.best import BestFields, best_fields, trust_key
from ingest.fulltext.letters import fold, surname
from ingest.preprints import is_preprint_doi
from ingest.work import Work

Node = str
"""An identifier as `kind:value`."""

_UNITING: Final = {"is-preprint-of", "has-preprint", "is-version-of", "has-version", "is-identical-to"}
_COMPANION = re.compile(
    r"^(?:author |publisher )?(erratum|errata|corrigend|correction|addendum|retraction note|retraction notice|expression of concern|"
    r"comments? on|reply|response to|rebuttal|discussion of|book review|review of)"
)
_RETRACTED = re.compile(r"^(?:retracted(?: article| paper)?|withdrawn) (?=\S)")
_GENERIC = re.compile(
    r"(?:editorial|introduction|preface|foreword|guest|correspondence|letters? to|in memoriam|obituary|news|table of contents|"
    r"front matter|back matter|index|acknowledg|announcement|call for|message from|welcome|keynote|abstracts? |proceedings|"
    r"book review|in this issue|from the editor|annual report|panel|poster session|tutorial)\b"
)
_LEAST_LETTERS, _LEAST_WORDS, _MOST_YEARS = 20, 4, 2
_MOST_PAIRED = 16
# Of these a paper has one each, so two values under one title are two papers.
_EXCLUSIVE: Final = ("arxiv", "pmid", "pmcid", "acl")


@dataclass(frozen=True, slots=True)
class MergedPaper:
    """A paper and the works that it was made from.

    `key` is None where no work has an identifier that can be a key. `identifiers` hold one value a kind, those of the
    published article first; `aliases` every `kind:value` by which it is known. `joins` say what united its works.
    """

    key: str | None
    identifiers: dict[str, str]
    aliases: tuple[str, ...]
    works: tuple[Work, ...]
    best: BestFields
    joins: tuple[str, ...] = ()

    @property
    def is_retracted(self) -> bool:
        """Whether any source says that it was retracted."""
        return bool(self.best.is_retracted)


@dataclass(frozen=True, slots=True, order=True)
class _Link:
    """Two works and why they would be one; sorts by strength, then by name, never by arrival."""

    strength: int
    why: str
    one: int
    other: int


@dataclass(slots=True)
class _Group:
    members: set[int] = field(default_factory=set)
    nodes: set[Node] = field(default_factory=set)
    joins: set[str] = field(default_factory=set)


def merge(works: Iterable[Work], *, apart: Collection[frozenset[str]] = ()) -> list[MergedPaper]:
    """Unite works into papers, sorted by key.

    `apart` holds sets of `kind:value` that must not come together: merges that a person has undone.
    """
    ordered = sorted({repr(work): work for work in works}.values(), key=trust_key)
    own = [identifiers_of(work) for work in ordered]
    groups = {n: _Group({n}, set(own[n])) for n in range(len(ordered))}
    root = list(range(len(ordered)))
    for link in sorted(_links(ordered, own)):
        one, other = _find(root, link.one), _find(root, link.other)
        if one == other:
            groups[one].joins.add(link.why)
            continue
        if not _may_unite(link, groups[one], groups[other], ordered, apart):
            continue
        keep, gone = min(one, other), max(one, other)
        root[gone] = keep
        merged = groups.pop(gone)
        groups[keep].members |= merged.members
        groups[keep].nodes |= merged.nodes
        groups[keep].joins |= merged.joins | {link.why}
    papers = [_paper([ordered[n] for n in sorted(g.members)], g, apart) for g in groups.values()]
    return sorted(papers, key=lambda paper: (paper.key is None, paper.key or "", repr(paper.works)))


def identifiers_of(work: Work) -> set[Node]:
    """Give the identifiers of a work as `kind:value`, those that follow from others included."""
    known = implied_identifiers(work.identifiers)
    return {f"{kind}:{value}" for kind, value in known.items() if kind in KINDS}


def linked_identifiers(work: Work) -> set[Node]:
    """Give the identifiers that a work says it is another version of."""
    found = (parse_identifier(link.identifier) for link in work.related if link.relation in _UNITING)
    return {identifier.key for identifier in found if identifier}


def _links(works: Sequence[Work], own: Sequence[set[Node]]) -> list[_Link]:
    links: list[_Link] = []
    holders: dict[Node, list[int]] = defaultdict(list)
    records: dict[tuple[str, str], list[int]] = defaultdict(list)
    titles: dict[str, list[int]] = defaultdict(list)
    for n, work in enumerate(works):
        for node in own[n]:
            holders[node].append(n)
        if work.source_id:
            records[work.source, work.source_id].append(n)
        if key := title_key(work):
            titles[key].append(n)
    for (source, source_id), found in records.items():
        links += _pairs(0, f"record {source}:{source_id}", found)
    for node, found in holders.items():
        links += _pairs(1 + KINDS.index(_kind(node)), f"identifier {node}", found)
    related: dict[Node, list[int]] = defaultdict(list)
    for n, work in enumerate(works):
        for node in linked_identifiers(work):
            related[node].append(n)
    for node, found in related.items():
        links += _pairs(20, f"link to {node}", sorted({*found, *holders.get(node, ())}))
    for key, found in titles.items():
        why = f"title, year and first author: {key}"
        links += _pairs(30, why, found)
    return links


def _pairs(strength: int, why: str, found: Sequence[int]) -> list[_Link]:
    """Link every two, so that one refused link does not part others; long rows are linked to their neighbours."""
    pairs = combinations(found, 2) if len(found) <= _MOST_PAIRED else pairwise(found)
    return [_Link(strength, why, one, other) for one, other in pairs]


def _find(root: list[int], n: int) -> int:
    while root[n] != n:
        root[n] = root[root[n]]
        n = root[n]
    return n


def _kind(node: Node) -> str:
    return node.partition(":")[0]


def title_key(work: Work) -> str | None:
    """Give title and first author, where the title is long enough to be one paper's own; else None."""
    if not work.title or not work.authors:
        return None
    title = _RETRACTED.sub("", fold(work.title))
    if len(title.replace(" ", "")) < _LEAST_LETTERS or len(title.split()) < _LEAST_WORDS or _GENERIC.match(title):
        return None
    family = surname(work.authors[0])
    return f"{title.replace(' ', '')} / {family}" if family else None


def _may_unite(
    link: _Link, one: _Group, other: _Group, works: Sequence[Work], apart: Collection[frozenset[str]]
) -> bool:
    nodes = one.nodes | other.nodes
    if any(len(kept & nodes) > 1 for kept in apart):
        return False
    if link.strength < 20 and not link.why.startswith(("identifier s2:", "identifier openalex:")):
        return True
    a, b = works[link.one], works[link.other]
    if _companion(a) != _companion(b):
        return False
    if link.strength < 30:
        return True
    if a.year is not None and b.year is not None and abs(a.year - b.year) > _MOST_YEARS:
        return False
    if a.year is None and b.year is None and one.nodes and other.nodes:
        return False
    return not _speak_against(one.nodes, other.nodes)


def _companion(work: Work) -> str:
    found = _COMPANION.match(fold(work.title or ""))
    return found[1] if found else ""


def _speak_against(one: set[Node], other: set[Node]) -> bool:
    """Whether identifiers of two groups say that they are two papers; a preprint's DOI and an article's do not."""
    for kind in _EXCLUSIVE:
        a, b = ({node for node in nodes if _kind(node) == kind} for nodes in (one, other))
        if a and b and not a & b:
            return True
    a, b = (_article_dois(nodes) for nodes in (one, other))
    return bool(a and b and not a & b)


def _article_dois(nodes: set[Node]) -> set[str]:
    dois = {node.partition(":")[2] for node in nodes if _kind(node) == "doi"}
    return {doi for doi in dois if not is_preprint_doi(doi)}


def _paper(works: Sequence[Work], group: _Group, apart: Collection[frozenset[str]]) -> MergedPaper:
    identifiers: dict[str, str] = {}
    for work in sorted(works, key=trust_key):
        for kind, value in implied_identifiers(work.identifiers).items():
            identifiers.setdefault(kind, value)
    nodes = set(group.nodes)
    # The other side of a stated link is known under this paper too, though no work of it has come yet.
    for node in sorted(node for work in works for node in linked_identifiers(work)):
        if not any(node in kept and kept & nodes for kept in apart):
            nodes.add(node)
            identifiers.setdefault(*_split(node))
    if not any(not is_preprint_doi(d) for d in [identifiers.get("doi", "")]) and (
        articles := sorted(_article_dois(nodes))
    ):
        identifiers["doi"] = articles[0]
    return MergedPaper(
        key=_key(identifiers),
        identifiers=_sorted(identifiers),
        aliases=tuple(sorted(nodes, key=lambda node: (KINDS.index(_kind(node)), node))),
        works=tuple(works),
        best=best_fields(works),
        joins=tuple(sorted(group.joins)),
    )


def _split(node: Node) -> tuple[str, str]:
    kind, _, value = node.partition(":")
    return kind, value


def _key(identifiers: Mapping[str, str]) -> str | None:
    try:
        return paper_key(identifiers)
    except InputError:
        return None


def _sorted(identifiers: Mapping[str, str]) -> dict[str, str]:
    order = {kind: n for n, kind in enumerate(KINDS)}
    return dict(sorted(identifiers.items(), key=lambda item: (order.get(item[0], len(order)), item)))
