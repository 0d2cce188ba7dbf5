"""What a server knows of its database between questions: topics, the active encoder, stored settings, counts.

Read again every few seconds, so that no question waits for it; a topic that is not known yet is looked up at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import time
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from corpus.database import Database, is_connection_loss, translated
from corpus.encoders import EncoderRow
from corpus.errors import BrainError, DatabaseUnavailable
from search_server.encoding import QueryEncoder
from search_server.errors import UnknownTopic
from search_server.vectors import ScanSettings
from sql.files import queries

log = structlog.get_logger()
REFRESH_S = 2.0
_LOOK_S = 5.0
"""Wait for one look: a host that says nothing any more must not hold it for ever."""
DEFAULT_FUSION = "blend"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The stored settings of answering."""

    per_list: int = 20
    fusion: str = DEFAULT_FUSION
    weights: dict[str, float] | None = None
    scan: ScanSettings = field(default_factory=ScanSettings)
    is_stored: bool = False

    @classmethod
    def of(cls, value: dict[str, Any] | None) -> Tuned:
        """Read the setting `search`; what it does not name keeps its default."""
        given = value or {}
        base = ScanSettings()
        return cls(
            per_list=int(given.get("per_list", 20)),
            fusion=str(given.get("fusion", DEFAULT_FUSION)),
            weights=given.get("weights"),
            scan=ScanSettings(
                ef_search=int(given.get("ef_search", base.ef_search)),
                exact_below=int(given.get("exact_below", base.exact_below)),
                max_scan_tuples=int(given.get("max_scan_tuples", base.max_scan_tuples)),
                index=str(given.get("vector_index", base.index)),
                candidates=int(given.get("candidates", base.candidates)),
            ),
            is_stored=bool(given),
        )


class ServerState:
    """Topics, encoder, settings: as the database had them at the last look."""

    def __init__(self, database: Database, pool: AsyncConnectionPool, encoder: QueryEncoder) -> None:
        self._database = database
        self._pool = pool
        self._encoder = encoder
        self.topics: dict[str, int] = {}
        self.tuned = Tuned.of(None)
        self.has_passages = False
        self.has_papers = False
        self.encoder_row: EncoderRow | None = None
        self.raised_ef: int | None = None
        self.is_known = False
        self.failed_at: float | None = None
        self.failure: BrainError | None = None

    @property
    def scan(self) -> ScanSettings:
        """How the vector lists are scanned now: as stored, with an ef_search that the audit raised in this process."""
        stored = self.tuned.scan
        return replace(stored, ef_search=max(stored.ef_search, self.raised_ef)) if self.raised_ef else stored

    async def refresh(self) -> None:
        """Look once. Raises the database's errors, translated."""
        named = queries("search")
        with translated(self._database):
            async with self._pool.connection(timeout=1.5) as connection:
                async with connection.cursor(row_factory=dict_row) as cursor:
                    await cursor.execute(named["active_encoder"])
                    row = await cursor.fetchone()
                    await cursor.execute(named["next_encoder"])
                    coming = await cursor.fetchone()
                cursor = await connection.execute(named["topics"])
                self.topics = {name: topic_id for topic_id, name in await cursor.fetchall()}
                cursor = await connection.execute(named["search_setting"])
                setting = await cursor.fetchone()
        tuned = Tuned.of(setting[0] if setting else None)
        if tuned.scan != self.tuned.scan:
            self.raised_ef = None  # somebody tuned: the stored setting counts again
        self.tuned = tuned
        if row is not None:
            self.has_passages, self.has_papers = row.pop("has_passages"), row.pop("has_papers")
            self.encoder_row = EncoderRow(**row)
        else:
            self.encoder_row, self.has_passages, self.has_papers = None, False, False
        self._encoder.want(self.encoder_row)
        self._encoder.prepare(EncoderRow(**coming) if coming else None)
        self.is_known = True
        self.failed_at, self.failure = None, None

    async def keep(self) -> None:
        """Look again and again until cancelled; failures are remembered and tried again."""
        while True:
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self.refresh()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if _lost_connection(error):
                    await self._pool.drain()  # a restarted or silent host leaves every connection broken
                if self.failed_at is None:
                    log.warning("database_lost", why=str(error).splitlines()[0] if str(error) else "no answer in time")
                self.failed_at = time.monotonic()
                self.failure = error if isinstance(error, BrainError) else None
            await asyncio.sleep(REFRESH_S if self.failed_at is None else REFRESH_S / 4)

    async def topic_ids(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return the topics' ids. Raises UnknownTopic, which names the nearest."""
        if not names:
            return ()
        if any(name not in self.topics for name in names):
            with contextlib.suppress(BrainError):
                await self.refresh()
        for name in names:
            if name not in self.topics:
                folded = {known.casefold(): known for known in self.topics}
                near = difflib.get_close_matches(name.casefold(), folded, 3, 0.4)
                raise UnknownTopic(name[:200], [folded[n] for n in near] or sorted(self.topics)[:5])
        return tuple(self.topics[name] for name in names)


def _lost_connection(error: Exception) -> bool:
    """Whether a connection broke or says nothing; a pool that is only busy keeps the ones that it has."""
    if isinstance(error, TimeoutError):
        return True
    lost = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
    return lost is not None and not isinstance(lost, PoolTimeout) and is_connection_loss(lost)
