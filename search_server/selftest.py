"""The self-test's parts of search: three lists and their fusion, and whether this machine's word indexes are in step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.selftest import PartFailed
from search_server.fusion import LISTS
from search_server.params import parse_search
from search_server.service import SearchService
from search_server.words.folder import WordFolder
from search_server.words.index import Generation, IndexDamaged
from search_server.words.lock import FolderLock
from sql.files import queries

QUESTION = "Why do snails carry their houses?"
STALE_S = 900.0
"""An index whose owner lives follows within seconds; a quarter of an hour behind, nobody follows it."""


async def check_lists(service: SearchService) -> None:
    """Each list finds the scratch corpus' paper, and the fused score is the sum that the rule gives."""
    answer = await service.search(parse_search([("q", QUESTION), ("k", "5"), ("fusion", "rrf")]))
    if answer["degraded"]:
        said = "; ".join(f"{each['list']}: {each['reason']} {each['detail']}" for each in answer["degraded"])
        raise PartFailed(f"A list of the search did not answer: {said}.")
    empty = [name for name in LISTS if not any(hit["lists"][name] for hit in answer["hits"])]
    if empty:
        raise PartFailed(f"The list {', '.join(empty)} found nothing for a question about a paper that is there.")
    if answer["fusion"] == "rrf" if "fusion" in answer else True:
        for hit in answer["hits"]:
            total = sum(1 / 3 / (60 + entry["rank"]) for entry in hit["lists"].values() if entry)
            # What a list adds is shown for the passage that carried the paper; never more than the sum of its places.
            if hit["score"] > total + 1e-3 or not math.isfinite(hit["score"]) or hit["score"] <= 0:
                raise PartFailed(f"The fused score {hit['score']} of {hit['paper_id']} is not the sum of its places.")
    first = answer["hits"][0]
    if "snail" not in ((first["title"] or "") + ((first["passage"] or {}).get("text") or "")).lower():
        raise PartFailed(f"The first hit is {first['paper_id']}, which is not about the question.")


def check_word_index(connection: Connection[Any], root: Path, *, stale_s: float = STALE_S) -> None:
    """Every word index of this database on this machine that somebody keeps is whole and in step."""
    row = connection.execute(queries("search")["index_database"]).fetchone()
    if row is None or row[0] is None or not root.is_dir():
        return
    for path in sorted(root.glob(f"{str(row[0])[:8]}-*")):
        _check_folder(connection, path, stale_s)


def _check_folder(connection: Connection[Any], path: Path, stale_s: float) -> None:
    current = WordFolder(path, None).current()
    if current is None:
        return
    try:
        memory = Generation.open(current, may_write=False).memory
    except IndexDamaged as error:
        raise PartFailed(
            f"The word index {path} is damaged: {error}.", mend="Restart the search server: it is built anew."
        ) from error
    assert memory is not None
    values = {"last": memory.snapshot, "change_id": memory.change_id, "token": memory.token}
    known = connection.execute(queries("search")["index_remembered"], values).fetchone()
    if memory.change_id is not None and not (known and all(known)):
        raise PartFailed(
            f"The word index {path} is stale: it knows a later state of the database than there is.",
            mend="Start the search server: it sees that the database went back and builds the index anew.",
        )
    behind = connection.execute(queries("selftest")["stale"], {"last": memory.snapshot, "older_s": stale_s}).fetchone()
    if behind is not None and behind[0] and not _is_idle(path):
        raise PartFailed(
            f"The word index {path} is stale: {behind[0]} changes older than {stale_s:.0f} s are not in it.",
            mend="Look at the search server's log and restart it.",
        )


def _is_idle(path: Path) -> bool:
    """Whether no process keeps this index: then nobody searches it, and the next one that does catches up first."""
    lock = FolderLock(path / "lock")
    if lock.acquire():
        lock.release()
        return True
    return False
