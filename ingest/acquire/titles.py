"""A paper of which only the title is known: asked for at the sources that search titles, taken only when it is the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.errors import SourceError
from ingest.acquire.desk import Desk
from ingest.best import trust_key
from ingest.fulltext.letters import letters
from ingest.merge import merge
from ingest.work import Work

_ASKED = ("semantic-scholar", "openalex", "crossref", "arxiv", "europe-pmc", "dblp")
_ENOUGH = 2
_MOST = 20


class TitleWaits(Exception):
    """No source knew the title, and at least one could not be asked now."""


async def find_title(desk: Desk, title: str) -> tuple[str, list[Work]] | None:
    """Give the key and the works of the paper with exactly this title (signs and case aside), or None.

    Two papers of one title are none: a guess would put a wrong one into the topic. Raises TitleWaits.
    """
    wanted = letters(title)
    found: list[Work] = []
    n_said = n_waiting = 0
    for name in _ASKED:
        source = desk.sources.get(name)
        request = source.search(_query(name, title), limit=_MOST) if source is not None else None
        if source is None or request is None:
            continue
        try:
            parsed, _ = await desk.ask(source, request)
        except SourceError as error:
            n_waiting += error.transient
            continue
        same = [work for work in parsed.works if work.title and letters(work.title) == wanted]
        found += same
        n_said += bool(same)
        if n_said >= _ENOUGH:
            break
    papers = [paper for paper in merge(found) if paper.key is not None]
    if len(papers) == 1 and papers[0].key is not None:
        return papers[0].key, sorted(papers[0].works, key=trust_key)
    if not papers and n_waiting:
        raise TitleWaits
    return None


def _query(name: str, title: str) -> str:
    words: Sequence[str] = re.findall(r"\w[\w'-]*", title)
    return f'ti:"{" ".join(words)}"' if name == "arxiv" else " ".join(words)
