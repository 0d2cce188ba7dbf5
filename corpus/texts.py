"""Texts as the database can hold them, and their hashes."""

from __future__ import annotations

import hashlib
import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def storable(text: str) -> tuple[str, int]:
    """The text with NUL and lone surrogates replaced by U+FFFD, which PostgreSQL cannot hold, and their number."""
    return _UNSTORABLE.subn(REPLACEMENT, text)


def text_sha256(text: str) -> bytes:
    """sha256 of the UTF-8 text: the name under which its embedding is known. 32 bytes."""
    return hashlib.sha256(text.encode()).digest()


def paper_text(title: str | None, abstract: str | None) -> str | None:
    """The text of a paper: the non-empty ones of title and abstract, stripped, joined by a blank line; None for neither."""
    parts = [part for part in ((title or "").strip(), (abstract or "").strip()) if part]
    return "\n\n".join(parts) or None
