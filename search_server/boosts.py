"""Optional factors on a paper's score: off unless asked for, bounded, shown.

Each turns a fact of the paper into a strength from 0 to 1 and multiplies by 1 + (factor − 1) × strength, so that a paper
without the fact keeps its score and no paper gains or loses more than the factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from psycopg_pool import AsyncConnectionPool

from sql.files import queries

_HALF_VELOCITY = 10.0  # citations a year at which half of the factor is reached
_HALF_CITATIONS = 50.0
_HALF_AGE_YEARS = 5.0


def strength(name: str, n_citations: int | None, velocity: float | None, year: int | None) -> float:
    """How much of a boost a paper earns, from 0 to 1; unknown facts earn nothing."""
    if name == "velocity":
        value = max(0.0, velocity or 0.0)
        return value / (value + _HALF_VELOCITY)
    if name == "citations":
        value = max(0, n_citations or 0)
        return value / (value + _HALF_CITATIONS)
    if year is None:
        return 0.0
    age = max(0, datetime.now(UTC).year - year)
    return _HALF_AGE_YEARS / (_HALF_AGE_YEARS + age)


async def factors(
    pool: AsyncConnectionPool, papers: Sequence[int], wanted: Mapping[str, float]
) -> dict[int, dict[str, float]]:
    """Return each paper's factors by boost."""
    async with pool.connection() as connection:
        cursor = await connection.execute(queries("search")["boost_values"], {"papers": list(papers)})
        rows = await cursor.fetchall()
    return {
        int(pk): {name: 1 + (factor - 1) * strength(name, n, velocity, year) for name, factor in wanted.items()}
        for pk, n, velocity, year in rows
    }
