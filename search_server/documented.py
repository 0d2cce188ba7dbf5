"""What the OpenAPI page says of answers; the endpoints themselves write plain JSON."""

from __future__ import annotations

from typing import Any

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, "detail": {"type": "string"},
        "mend": {"type": "string"},
    },
}  # fmt: skip
_PLACE = {
    "type": ["object", "null"],
    "required": ["rank", "score"],
    "properties": {"rank": {"type": "integer"}, "score": {"type": "number"}},
}
_HIT: dict[str, Any] = {
    "type": "object",
    "required": ["rank", "score", "paper_id", "kind", "title", "authors", "year", "url", "topics", "n_citations", "passage",
                 "lists", "boosts"],
    "properties": {
        "rank": {"type": "integer"}, "score": {"type": "number"}, "paper_id": {"type": "string"},
        "passage": {"type": ["object", "null"]},
        "lists": {"type": "object", "properties": dict.fromkeys(("passage_vector", "passage_bm25", "paper_vector"), _PLACE)},
    },
}  # fmt: skip
_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["query", "k", "n_hits", "took_ms", "encoder", "degraded", "hits"],
    "properties": {
        "query": {"type": "string"}, "k": {"type": "integer"}, "n_hits": {"type": "integer"},
        "took_ms": {"type": "object"}, "encoder": {"type": ["string", "null"]}, "degraded": {"type": "array"},
        "hits": {"type": "array", "items": _HIT},
    },
}  # fmt: skip


def _problem(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/problem+json": {"schema": _PROBLEM}}}


PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: _problem("empty-question or bad-parameter"),
    404: _problem("unknown-topic or unknown-paper"),
    503: _problem("database-unavailable, unsupported-database or overloaded; Retry-After says when to ask again"),
    504: _problem("time-out"),
}
SEARCH_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer.", "content": {"application/json": {"schema": _ANSWER}}},
    **PROBLEM_RESPONSES,
}
PAPER_RESPONSES = PROBLEM_RESPONSES
