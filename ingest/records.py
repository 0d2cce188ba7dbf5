"""A paper as an input states it, before it meets the database: one shape for JSONL rows, seed entries and files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corpus.errors import InputError
from corpus.ids import implied_identifiers, paper_key, parse_identifier
from corpus.texts import paper_text, storable

KINDS = ("paper", "book", "news", "note", "session", "exam")
IDENTIFIER_KINDS = ("arxiv", "doi", "pmcid", "pmid", "acl", "openreview", "openalex", "s2")
_NAME_MAX_BYTES = 2000
_DEPTH_MAX = 64
_YEAR = re.compile(r"\s*(\d{4})(?:\.0+)?(?:[-/]\d{1,2}.*)?\s*")


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """What is known of one paper. `topics` None means: not stated, leave them; a list replaces them."""

    paper_id: str
    is_prefixed: bool = False
    kind: str = "paper"
    title: str | None = None
    abstract: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str | None = None
    url: str | None = None
    identifiers: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[str, ...] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    n_replaced_chars: int = 0

    @property
    def text(self) -> str | None:
        """Title and abstract as one text."""
        return paper_text(self.title, self.abstract)


def parse_year(value: object) -> int | None:
    """A year between 1000 and 2999 out of a number or text; anything else is unknown, never 0."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        number = value
    elif isinstance(value, float):
        number = int(value) if math.isfinite(value) and value == int(value) else 0
    else:
        found = _YEAR.fullmatch(str(value))
        number = int(found.group(1)) if found else 0
    return number if 1000 <= number <= 2999 else None


def record_from_row(row: object, *, prefix: str | None, topics: tuple[str, ...] = ()) -> PaperRecord:
    """Read one JSONL row: `_id`, `title`, `text`, `metadata`. Raises InputError with what is wrong with it."""
    if not isinstance(row, Mapping):
        raise InputError(f"it is {_kind_of(row)}, not an object")
    replaced = _Counter()
    raw_id = row.get("_id")
    if isinstance(raw_id, bool) or not isinstance(raw_id, str | int) or str(raw_id).strip() == "":
        raise InputError("it has no _id")
    own_id = replaced(_bounded("_id", str(raw_id)))
    metadata = row.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, Mapping):
        raise InputError(f"its metadata is {_kind_of(metadata)}, not an object")
    title, abstract = (_text(row, name, replaced) for name in ("title", "text"))
    known = {"year", "authors", "doi", "arxiv", "url", "venue", "topics", "kind"}
    identifiers = _identifiers(metadata)
    own = parse_identifier(own_id)
    if prefix is None and own is not None and not identifiers.get(own.kind):
        identifiers = {**identifiers, own.kind: own.value}
    stated = metadata.get("topics")
    record_topics = (*_strings(stated, replaced), *topics) if stated is not None or topics else None
    for name in record_topics or ():
        _bounded("topic", name)
    return PaperRecord(
        paper_id=f"{prefix}:{own_id}" if prefix is not None else _key(identifiers, own_id),
        is_prefixed=prefix is not None,
        kind=str(metadata["kind"]) if metadata.get("kind") in KINDS else "paper",
        title=title,
        abstract=abstract,
        authors=_strings(metadata.get("authors"), replaced),
        year=parse_year(metadata.get("year")),
        venue=_optional(metadata.get("venue"), replaced),
        url=_optional(metadata.get("url"), replaced),
        identifiers=identifiers,
        topics=tuple(dict.fromkeys(record_topics)) if record_topics is not None else None,
        raw=_clean({key: value for key, value in metadata.items() if key not in known}),
        n_replaced_chars=replaced.n,
    )


def _bounded(what: str, text: str) -> str:
    """A name that an index of the database can hold (2,704 bytes a row of a B-tree)."""
    if len(text.encode("utf-8", "replace")) > _NAME_MAX_BYTES:
        raise InputError(f"its {what} is longer than {_NAME_MAX_BYTES} bytes: {text[:40]!r}…")
    return text


class _Counter:
    """Makes texts storable and counts what it replaced."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, text: str) -> str:
        text, n = storable(text)
        self.n += n
        return text


def _key(identifiers: Mapping[str, str], own_id: str) -> str:
    try:
        return paper_key(identifiers)
    except InputError as error:
        raise InputError(
            f"its _id {own_id!r} is no known identifier and it states none; load it with --prefix NAME"
        ) from error


def _identifiers(metadata: Mapping[str, Any]) -> dict[str, str]:
    stated = {
        kind: _bounded(kind, str(metadata[kind]))
        for kind in IDENTIFIER_KINDS
        if isinstance(metadata.get(kind), str | int)
    }
    return implied_identifiers(stated)


def _text(row: Mapping[str, Any], name: str, replaced: _Counter) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"its {name} is {_kind_of(value)}, not text")
    return replaced(value)


def _optional(value: object, replaced: _Counter) -> str | None:
    return replaced(value) if isinstance(value, str) and value.strip() else None


def _strings(value: object, replaced: _Counter) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        return ()
    names = (item.get("name") if isinstance(item, Mapping) else item for item in value)
    return tuple(replaced(name) for name in names if isinstance(name, str) and name.strip())


def _clean(value: Any, depth: int = 0) -> Any:
    """JSON that PostgreSQL can hold: no NUL, no lone surrogate, no NaN, no nesting without end."""
    if depth > _DEPTH_MAX:
        raise InputError(f"its metadata is nested more than {_DEPTH_MAX} deep")
    if isinstance(value, str):
        return storable(value)[0]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {storable(str(k))[0]: _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value]
    return value


def _kind_of(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
