"""The encoder rows of the database: which encoders there are, which one serves, what a worker loads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol

from psycopg import Connection
from psycopg.rows import class_row

from corpus.errors import EncoderRefused
from sql import files


class SpecLike(Protocol):
    """What of an encoder's specification the database keeps (`encoders.base.EncoderSpec` is one)."""

    @property
    def name(self) -> str:
        """Its name, such as all-mpnet-base-v2."""
        ...

    @property
    def revision(self) -> str:
        """Its revision; empty where the weights' digest says it all."""
        ...

    @property
    def weights_sha256(self) -> str:
        """Digest of the weights."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens that one window holds."""
        ...

    @property
    def prompts(self) -> Mapping[str, str]:
        """What is put in front of documents and queries."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Everything that is needed to load it again."""
        ...


@dataclass(frozen=True)
class EncoderRow:
    """One row of `encoder`. `spec` is what `encoders.base.EncoderSpec.from_dict` reads."""

    encoder_id: int
    name: str
    revision: str
    weights_sha256: str
    max_tokens: int
    prompts: dict[str, str]
    spec: dict[str, Any]
    canary: dict[str, Any] | None
    state: str


SQL = files.queries("encoders")


def register_encoder(
    connection: Connection[Any], spec: SpecLike, *, activate: bool, canary: dict[str, Any] | None = None
) -> EncoderRow:
    """Make the encoder's row and its partitions; with `activate` and no active encoder yet, let it serve.

    Idempotent. Raises EncoderRefused when another encoder serves already: changing it is `brain encoder activate`.
    """
    connection.execute("LOCK TABLE encoder IN SHARE ROW EXCLUSIVE MODE")
    active = find_active(connection)
    values = (spec.name, spec.revision, spec.weights_sha256, spec.max_tokens, json.dumps(dict(spec.prompts)))
    row = _one(connection, SQL["find_same"], values)
    if row is None and active is not None and activate:
        raise EncoderRefused(
            f"The database serves the encoder {active.name!r} already; it was not changed to {spec.name!r}.",
            mend=f"Add it with `brain encoder add {spec.name}`, then fill and activate it.",
        )
    if row is None:
        row = _one(
            connection,
            SQL["insert"],
            (*values, json.dumps(spec.to_dict()), json.dumps(canary) if canary else None),
        )
        assert row is not None
    connection.execute("SELECT encoder_partitions(%s)", [row.encoder_id])
    if activate and active is None:
        connection.execute("SELECT encoder_indexes(%s)", [row.encoder_id])
        connection.execute(
            "UPDATE encoder SET state = 'active', activated_at = now() WHERE encoder_id = %s", [row.encoder_id]
        )
        row = get_active(connection)
    return row


def find_active(connection: Connection[Any]) -> EncoderRow | None:
    """The encoder that serves."""
    return _one(connection, SQL["find_active"], ())


def get_active(connection: Connection[Any]) -> EncoderRow:
    """The encoder that serves; raises EncoderRefused when there is none."""
    row = find_active(connection)
    if row is None:
        raise EncoderRefused("The database has no active encoder.", mend="Run `brain init`.")
    return row


def _one(connection: Connection[Any], query: LiteralString, values: tuple[object, ...]) -> EncoderRow | None:
    with connection.cursor(row_factory=class_row(EncoderRow)) as cursor:
        return cursor.execute(query, values).fetchone()
