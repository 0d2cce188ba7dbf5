"""The fields of the word index, and what it remembers of the database that it follows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Self

import tantivy

from search_server.words import analysis

FORMAT = 2
"""Raise it with every change to the fields below."""

STATE = "follower"


FIELDS = (
    "words",
    "small",
    "n_words",
    "n_small",
    "title",
    "kind",
    "passage",
    "paper",
    "topic",
    "year",
    "state",
    "memory",
)


@lru_cache(maxsize=1)
def schema() -> tantivy.Schema:
    """Return the index's fields: words of title and text, small words, keys, filters, and one state document."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("words", tokenizer_name="stemmed", index_option="freq")
    builder.add_text_field("small", tokenizer_name="plain", index_option="freq")
    builder.add_unsigned_field("n_words", fast=True)
    builder.add_unsigned_field("n_small", fast=True)
    builder.add_text_field("title", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("kind", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("passage", indexed=True, fast=True)
    builder.add_unsigned_field("paper", indexed=True, fast=True)
    builder.add_unsigned_field("topic", indexed=True)
    builder.add_integer_field("year", indexed=True, fast=True)
    builder.add_text_field("state", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("memory", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def open_index(path: str, *, create: bool) -> tantivy.Index:
    """Open the index in a folder (or begin one) with our tokenizers."""
    index = tantivy.Index(schema(), path=path, reuse=True) if create else tantivy.Index.open(path)
    index.register_tokenizer("stemmed", analysis.stemmer())
    index.register_tokenizer("plain", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index


@dataclass(frozen=True, slots=True)
class Memory:
    """What an index knows of the database at its last commit; kept inside that commit."""

    instance: str
    system: str
    database_oid: int
    schema: str
    snapshot: str
    change_id: int | None
    token: int | None
    format: int = FORMAT
    analysis: int = analysis.VERSION

    def to_json(self) -> str:
        """As the state document holds it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`. Raises ValueError, TypeError or KeyError for another format."""
        values = json.loads(text)
        return cls(**{f.name: values[f.name] for f in fields(cls)})

    def is_of(self, other: Memory) -> bool:
        """Whether both are of one database, one schema and one analysis."""
        names = ("instance", "system", "database_oid", "schema", "format", "analysis")
        return all(getattr(self, n) == getattr(other, n) for n in names)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One passage as the database gives it to the index."""

    passage_id: int
    paper_pk: int
    part: str
    char_start: int
    text: str
    title: str | None
    kind: str
    year: int | None
    topics: Sequence[int] | None


def to_document(row: IndexRow) -> tantivy.Document:
    """Return the index document of a passage: the words of its paper's title and of its text, once each.

    The text of the part "abstract" begins with the title already.
    """
    holds_title = row.part == "abstract" and row.char_start == 0
    text = row.text if holds_title or not row.title else f"{row.title}\n\n{row.text}"
    words, small = analysis.split_small(analysis.surface_words(text))
    document = tantivy.Document()
    document.add_text("words", " ".join(words))
    document.add_text("small", " ".join(small))
    document.add_unsigned("n_words", len(words))
    document.add_unsigned("n_small", len(small))
    if key := title_term(row.title or ""):
        document.add_text("title", key)
    document.add_text("kind", row.kind)
    document.add_unsigned("passage", row.passage_id)
    document.add_unsigned("paper", row.paper_pk)
    for topic in row.topics or ():
        document.add_unsigned("topic", topic)
    if row.year is not None:
        document.add_integer("year", row.year)
    return document


def state_document(memory: Memory) -> tantivy.Document:
    """Return the one document that holds the index's memory."""
    document = tantivy.Document()
    document.add_text("state", STATE)
    document.add_text("memory", memory.to_json())
    return document


def title_term(title: str) -> str:
    """Return the term under which an exact title is found; empty where a title has no word."""
    key = analysis.title_key(title)
    return hashlib.blake2b(key.encode(), digest_size=12).hexdigest() if key else ""
