"""Licences under one short name each: `cc-by-4.0`, `cc-by`, `cc0-1.0`; other licences stay as they are written."""

from __future__ import annotations

import re

from ingest.sources.fields import text

_CC_ADDRESS = re.compile(
    r"creativecommons\.org/(?:licen[cs]es/(?P<terms>[a-z-]+)|publicdomain/(?P<domain>zero|mark))(?:/(?P<version>\d\.\d))?",
    re.IGNORECASE,
)
_CC_WORDS = re.compile(
    r"(?:creative commons )?(?:cc|attribution)?[ _-]*(?P<terms>(?:by|nc|nd|sa|zero|0)(?:[ _-]*(?:by|nc|nd|sa))*)"
    r"(?:[ _-]*v?(?P<version>\d\.\d))?(?: international| unported| licen[cs]e)*",
    re.IGNORECASE,
)


def licence_word(value: object) -> str | None:
    """Give the short name of a licence from a word or an address, or None where none is named."""
    said = text(value)
    if not said:
        return None
    if found := _CC_ADDRESS.search(said):
        terms = {"zero": "cc0", "mark": "pdm"}.get((found["domain"] or "").lower()) or f"cc-{found['terms'].lower()}"
        return "-".join(part for part in (terms, found["version"]) if part)
    found = _CC_WORDS.fullmatch(said)
    if found and re.match(r"(?i)cc|creative", said):
        terms = "-".join(re.findall(r"by|nc|nd|sa|zero|0", found["terms"].lower()))
        terms = "cc0" if terms in {"0", "zero"} else f"cc-{terms}"
        return "-".join(part for part in (terms, found["version"]) if part)
    return None if said.lower() in {"na", "none", "cc_no", "null", "unspecified"} else said


def is_free(licence: str | None) -> bool:
    """Tell whether a licence lets everybody read and copy: Creative Commons, public domain."""
    return bool(licence and re.match(r"(?i)cc-|cc0|pdm|public[ -]domain", licence))
