"""Errors as RFC 9457 problem details: `type` says which, `detail` what happened to which thing, `mend` what to do."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from search_server.errors import BadParameter, SearchProblem, UnknownTopic
from search_server.json_out import json_bytes

TYPE_BASE = "https://research-brain.invalid/problems/"
KINDS = (
    "empty-question", "bad-parameter", "unknown-topic", "unknown-paper", "unsupported-database", "database-unavailable",
    "overloaded", "time-out",
)  # fmt: skip


def problem_body(error: SearchProblem, instance: str = "") -> dict[str, Any]:
    """The members of the problem."""
    body: dict[str, Any] = {
        "type": TYPE_BASE + error.kind, "title": error.title, "status": error.status, "detail": str(error),
        "mend": error.mend, "instance": instance,
    }  # fmt: skip
    if isinstance(error, BadParameter):
        body["parameter"] = error.parameter
    if isinstance(error, UnknownTopic):
        body["topic"], body["nearest"] = error.topic, error.nearest
    return body


def problem_response(error: SearchProblem, instance: str = "") -> Response:
    """The problem as a response, with Retry-After where waiting helps."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s is not None else None
    return Response(
        json_bytes(problem_body(error, instance)), error.status, headers=headers, media_type="application/problem+json"
    )


def plain_problem(status: int, kind: str, title: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """A problem of HTTP itself: no such address, a method that is not known, no token."""
    body = {"type": TYPE_BASE + kind, "title": title, "status": status, "detail": detail}
    return Response(json_bytes(body), status, headers=headers, media_type="application/problem+json")
