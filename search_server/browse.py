"""Looking around: papers and their states, topics, texts. `BrowseService` is what HTTP and the command line ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from search_server.answer import url_of
from search_server.errors import BadParameter, UnknownPaper
from search_server.params import clean_text, gather, integer_of
from search_server.resolve import find_papers
from search_server.state import ServerState
from sql.files import queries

STATES = ("waiting", "refused", "duplicate", "cutting", "embedding", "ready", "empty")
PARTS = ("abstract", "document")
MAX_LIMIT = 1000

PAPERS_PARAMETERS: dict[str, dict[str, Any]] = {
    "topic": {"schema": {"type": "string"}, "description": "Only papers of this topic."},
    "state": {"schema": {"type": "string", "enum": list(STATES)}, "description": "Only papers in this state."},
    "q": {"schema": {"type": "string", "maxLength": 1000}, "description": "Words that the title holds."},
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 100}, "description": "Rows of a page."},
    "after": {"schema": {"type": "string", "pattern": "^[0-9]{1,18}$"}, "description": "`next` of the page before."},
}  # fmt: skip
TEXT_PARAMETERS: dict[str, dict[str, Any]] = {
    "part": {"schema": {"type": "string", "enum": list(PARTS)}, "description": "Which text: the document if there is one, else the abstract."},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PapersParams:
    """What of the papers is listed."""

    topic: str | None = None
    state: str | None = None
    q: str | None = None
    limit: int = 100
    after: int = 0


def parse_papers(items: Iterable[tuple[str, str]]) -> PapersParams:
    """Read the parameters of `GET /papers`. Raises BadParameter."""
    found = gather(items, PAPERS_PARAMETERS)
    state = found.get("state", [None])[0]
    if state is not None and state not in STATES:
        raise BadParameter(
            f"There is no state {clean_text(state)[:60]!r}.", mend=f"There are: {', '.join(STATES)}.", parameter="state"
        )
    after = found.get("after", ["0"])[0] or "0"
    if not after.isascii() or not after.isdigit() or len(after) > 18:
        raise BadParameter(
            f"after={clean_text(after)[:40]!r} is no page.", mend="Give `next` of the page before.", parameter="after"
        )
    q = clean_text(found["q"][0]) if "q" in found else None
    if q is not None and len(q) > 1000:
        raise BadParameter("q is longer than 1,000 characters.", mend="Give a few words of the title.", parameter="q")
    return PapersParams(
        topic=found.get("topic", [None])[0], state=state, q=q,
        limit=integer_of(found, "limit", PAPERS_PARAMETERS) or 100, after=int(after),
    )  # fmt: skip


class BrowseService:
    """Reads papers, topics and texts. Errors of the database pass through."""

    def __init__(self, pool: AsyncConnectionPool, state: ServerState) -> None:
        self._pool = pool
        self._state = state

    async def list_papers(self, params: PapersParams) -> dict[str, Any]:
        """One page: `{n, papers, next}`; `n` counts all that match. Raises UnknownTopic."""
        named = queries("browse")
        matches: list[sql.Composable] = [sql.SQL("true")]
        encoder = self._state.encoder_row
        values: dict[str, Any] = {
            "after": params.after, "limit": params.limit, "state": params.state,
            "encoder": encoder.encoder_id if encoder else 0,
        }  # fmt: skip
        if params.topic is not None:
            values["topic"] = (await self._state.topic_ids((params.topic,)))[0]
            matches.append(sql.SQL(named["match_topic"]))
        if words := (params.q or "").casefold().split():
            values["words"] = words
            matches.append(sql.SQL(named["match_words"]))
        parts = {"matches": sql.SQL(" AND ").join(matches), "state": sql.SQL(named["paper_state"])}
        page = sql.SQL(named["papers_in_state" if params.state else "papers_page"]).format(**parts)
        count = sql.SQL(named["papers_count_in_state" if params.state else "papers_count"])
        count = count.format(**parts) if params.state else count.format(matches=parts["matches"])
        async with self._pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(page, values)
            rows = await cursor.fetchall()
            await cursor.execute(count, values)
            counted = await cursor.fetchone()
        n = counted["count"] if counted else 0
        following = str(rows[-1]["paper_pk"]) if len(rows) == params.limit else None
        for row in rows:
            del row["paper_pk"]
        return {"n": n, "papers": rows, "next": following}

    async def list_topics(self) -> dict[str, Any]:
        """All topics with their numbers of papers."""
        async with self._pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(queries("browse")["topics_all"])
            rows = await cursor.fetchall()
        return {"n": len(rows), "topics": [{**row, "fetched_at": _instant(row["fetched_at"])} for row in rows]}

    async def get_paper(self, text: str) -> dict[str, Any]:
        """All that is known of the paper that a key or any known identifier names. Raises UnknownPaper."""
        paper_pk = await self._get_pk(text)
        encoder = self._state.encoder_row
        named = queries("browse")
        state_of = sql.SQL("SELECT s.* FROM paper p CROSS JOIN LATERAL ({}) s WHERE p.paper_pk = %(paper)s").format(
            sql.SQL(named["paper_state"])
        )
        values = {"paper": paper_pk, "encoder": encoder.encoder_id if encoder else 0}
        async with self._pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(named["paper_one"], values)
            paper = await cursor.fetchone()
            await cursor.execute(state_of, values)
            state = await cursor.fetchone()
        if paper is None or state is None:
            raise _unknown(text)
        del paper["paper_pk"], state["paper_pk"]
        for name in ("created_at", "updated_at"):
            paper[name] = _instant(paper[name])
        return {**paper, **state, "url": paper["url"] or url_of(paper["paper_id"])}

    async def get_text(self, text: str, part: str | None = None) -> dict[str, Any]:
        """The whole text of a part: the document's if there is one, else the abstract's. Raises UnknownPaper."""
        paper_pk = await self._get_pk(text)
        named = queries("browse")
        async with self._pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute("SELECT paper_id FROM paper WHERE paper_pk = %s", [paper_pk])
            paper = await cursor.fetchone()
            for wanted in [part] if part else ["document", "abstract"]:
                await cursor.execute(named[f"paper_text_{wanted}"], {"paper": paper_pk})
                row = await cursor.fetchone()
                if row is not None and paper is not None:
                    return {
                        "paper_id": paper["paper_id"], "part": wanted, "text": row["text"],
                        "text_sha256": row["text_sha256"], "n_chars": len(row["text"]), "page_starts": row["page_starts"],
                    }  # fmt: skip
        what = f"part {part!r}" if part else "text"
        name = paper["paper_id"] if paper else text
        raise UnknownPaper(f"The paper {name!r} has no {what}.", mend="Its state in /papers says why.")

    async def is_known(self, text: str) -> bool:
        """Whether any paper is named so."""
        return bool(await find_papers(self._pool, text))

    async def _get_pk(self, text: str) -> int:
        found = await find_papers(self._pool, text)
        if not found:
            raise _unknown(text)
        return found[0][0]


def parse_part(items: Iterable[tuple[str, str]]) -> str | None:
    """Read the parameter of a paper's text. Raises BadParameter."""
    found = gather(items, TEXT_PARAMETERS)
    part = found.get("part", [None])[0]
    if part is not None and part not in PARTS:
        raise BadParameter(
            f"There is no part {clean_text(part)[:60]!r}.", mend="There are: abstract, document.", parameter="part"
        )
    return part


def _unknown(text: str) -> UnknownPaper:
    return UnknownPaper(
        f"There is no paper {clean_text(text)[:200]!r}.",
        mend="Keys look like arxiv:2005.11401; GET /papers lists them.",
    )


def _instant(value: Any) -> str | None:
    return value.isoformat() if value is not None else None
