"""From what a person writes to the paper that it names: a key, an alias, or any known identifier in any dress."""

from __future__ import annotations

from psycopg_pool import AsyncConnectionPool

from corpus.ids import Identifier, find_identifier_in_question, parse_identifier
from search_server.params import clean_text
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


async def find_asked_papers(pool: AsyncConnectionPool, question: str) -> list[int]:
    """Return the papers that a question names by an identifier or by a key; none for a question in words."""
    parsed = find_identifier_in_question(question)
    looks_like_key = ":" in question and " " not in question.strip()
    if parsed is None and not looks_like_key:
        return []
    return [pk for pk, _ in await find_papers(pool, question.strip(), parsed)]
