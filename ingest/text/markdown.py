"""Placeholder reader of markdown files."""

from __future__ import annotations

from ingest.text.limits import Limits
from ingest.text.plain import extract_plain
from ingest.text.result import Extraction


def extract_markdown(content: bytes, limits: Limits) -> Extraction:
    """Return the text of a file of this kind."""
    return extract_plain(content, limits)
