"""From what a person writes to the paper that it names: a key, an alias, or any known identifier in any dress."""

from __future__ import annotations

from psycopg import sql
from psycopg_pool import AsyncConnectionPool

from corpus.ids import Identifier, find_identifier_in_question, parse_identifier
from search_server.lists import Lists
from search_server.params import clean_text
from search_server.vectors import filter_sql
from search_server.work import Work
from sql.files import queries


async def find_papers(pool: AsyncConnectionPool, text: str, parsed: Identifier | None = None) -> list[tuple[int, str]]:
    """Return (paper_pk, paper_id) of the papers that `text` names, the surest first.

    An exact key wins over an identifier; papers under their own key come before those loaded with a prefix, which may
    share an identifier; then the oldest.
    """
    text = clean_text(text)
    parsed = parsed or parse_identifier(text)
    ids, kinds, values = [text], ["key"], [text]
    if parsed is not None:
        ids.append(parsed.key)
        kinds += ["key", parsed.kind]
        values += [parsed.key, parsed.value]
    async with pool.connection() as connection:
        cursor = await connection.execute(
            queries("search")["papers_by_keys"], {"ids": ids, "kinds": kinds, "values": values}
        )
        rows = [(int(pk), str(paper_id)) for pk, paper_id in await cursor.fetchall()]
    return sorted(rows, key=lambda row: (row[1] != text, row[1] not in ids, row[0]))


async def find_named_papers(lists: Lists, work: Work) -> dict[int, str]:
    """Return the papers that a question names and its filters let pass, with how: by an identifier or by its title.

    A title counts where the caller leaves the order to us.
    """
    params = work.params
    named: dict[int, str] = {}
    if params.weights is None and params.fusion is None:
        named = dict.fromkeys(await lists.ask_index(work, lambda reader: reader.papers_titled(params.q)) or (), "title")
    named |= dict.fromkeys((await _asked_papers(lists.pool, params.q))[:20], "identifier")
    if not named:
        return {}
    where, values = filter_sql(work.filters)
    statement = sql.SQL(queries("search")["papers_allowed"]).format(filters=where)
    async with lists.pool.connection() as connection:
        cursor = await connection.execute(statement, {**values, "papers": list(named)})
        allowed = {int(row[0]) for row in await cursor.fetchall()}
    return {pk: how for pk, how in named.items() if pk in allowed}


async def _asked_papers(pool: AsyncConnectionPool, question: str) -> list[int]:
    """The papers of an identifier or a key in a question; none for a question in words."""
    parsed = find_identifier_in_question(question)
    looks_like_key = ":" in question and " " not in question.strip()
    if parsed is None and not looks_like_key:
        return []
    return [pk for pk, _ in await find_papers(pool, question.strip(), parsed)]
