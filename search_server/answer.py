"""From fused rows to the hits of an answer: one read for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from search_server.fusion import LISTS, Fused
from sql.files import queries

PASSAGE_FIELDS = (
    "passage_id", "part", "text", "section", "page_from", "page_to", "char_start", "char_end", "text_sha256",
)  # fmt: skip


async def hit_rows(pool: AsyncConnectionPool, fused: Sequence[Fused]) -> dict[int, dict[str, Any]]:
    """Read what is shown of each paper; papers that are gone by now are missing."""
    values = {"papers": [row.paper_pk for row in fused], "passages": [row.passage_id for row in fused]}
    async with pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("search")["hit_rows"], values)
        return {row["paper_pk"]: row for row in await cursor.fetchall()}


async def more_passages(pool: AsyncConnectionPool, passage_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Read passages by id, in the form in which hits show them."""
    async with pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(queries("search")["passages_by_id"], {"passages": list(passage_ids)})
        return {row["passage_id"]: row for row in await cursor.fetchall()}


def to_hit(fused: Fused, row: Mapping[str, Any]) -> dict[str, Any]:
    """One hit in the form of the contract; its rank is set by the caller."""
    places = {
        name: {"rank": fused.places[name].rank, "score": round(fused.places[name].score, 6)}
        if name in fused.places
        else None
        for name in LISTS
    }
    return {
        "rank": 0, "score": round(fused.score, 8), "paper_id": row["paper_id"], "kind": row["kind"],
        "title": row["title"] or row["file_name"], "authors": row["authors"], "year": row["year"],
        "url": row["url"] or url_of(row["paper_id"]), "topics": row["topics"] or [], "n_citations": row["n_citations"] or 0,
        "passage": {name: row[name] for name in PASSAGE_FIELDS} if row["passage_id"] is not None else None,
        "lists": places, "boosts": {name: round(factor, 6) for name, factor in fused.boosts.items()},
    }  # fmt: skip


def url_of(paper_id: str) -> str | None:
    """Where a paper can be looked at, from its key."""
    kind, _, value = paper_id.partition(":")
    bases = {
        "arxiv": "https://arxiv.org/abs/", "doi": "https://doi.org/", "acl": "https://aclanthology.org/",
        "pmid": "https://pubmed.ncbi.nlm.nih.gov/", "pmcid": "https://pmc.ncbi.nlm.nih.gov/articles/",
        "openreview": "https://openreview.net/forum?id=", "openalex": "https://openalex.org/",
        "s2": "https://www.semanticscholar.org/paper/",
    }  # fmt: skip
    return bases[kind] + value if kind in bases and value else None
