"""Solr's XML form turned into what its JSON form holds; some servers answer so where `wt` was left out."""

from __future__ import annotations

from typing import Any

from ingest.sources.fields import number
from ingest.sources.markup import Element, attribute, child, children, inner, local


def is_solr(root: Element) -> bool:
    """Tell whether a document is a Solr answer."""
    return local(root) == "response" and any(True for _ in children(root, "result", "lst"))


def of_solr(root: Element) -> dict[str, Any]:
    """Give `{"response": {"numFound", "start", "docs"}}`, or `{"error": …}`."""
    value: dict[str, Any] = {}
    for item in children(root, "lst"):
        if attribute(item, "name") == "error":
            value["error"] = {attribute(part, "name") or "": _plain(part) for part in item if local(part)}
    result = child(root, "result")
    if result is not None:
        docs = [
            {name: _plain(field) for field in doc if (name := attribute(field, "name"))}
            for doc in children(result, "doc")
        ]
        start, total = (number(attribute(result, name)) for name in ("start", "numFound"))
        value["response"] = {"numFound": total, "start": start, "docs": docs}
    return value


def _plain(field: Element) -> Any:
    return [inner(item) for item in field if local(item)] if local(field) == "arr" else inner(field)
