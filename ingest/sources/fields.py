"""Forgiving access to JSON: a field may be missing, null, a scalar for a list, a string for a number, or of a wrong type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from corpus.ids import arxiv_version, implied_identifiers, normalize, parse_identifier
from ingest.sources.words import tidy

Json = Mapping[str, Any]


def mapping(value: object) -> Json:
    """Give the value if it is an object, else an empty one (a list of one object counts as the object)."""
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, Mapping) else {}


def get(value: object, *path: str) -> Any:
    """Follow a path of keys; None as soon as something is missing or no object."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def listed(value: object) -> list[Any]:
    """Give a list: none for null, the value itself for a list, a list of one for anything else."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def objects(value: object) -> list[Json]:
    """Give the objects of a list that may be a single object, or null."""
    return [item for item in listed(value) if isinstance(item, Mapping)]


def text(value: object) -> str | None:
    """Give a string's or number's text on one line, or None; of a list, the first that has any."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return next((found for item in value if (found := text(item))), None)
    return tidy(value) or None


def texts(value: object) -> list[str]:
    """Give all texts of a list or scalar, in order, each once."""
    return once(found for item in listed(value) if (found := text(item)))


def once(values: Iterable[str]) -> list[str]:
    """Keep the first of equal values."""
    return list(dict.fromkeys(values))


def number(value: object) -> int | None:
    """Give a whole number ≥ 0 from a number or its text, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d{1,15})(?:\.0+)?\s*", value, re.ASCII)
        return int(found[1]) if found else None
    if isinstance(value, int) and value >= 0:
        return value
    return int(value) if isinstance(value, float) and value >= 0 and value.is_integer() else None


def flag(value: object) -> bool | None:
    """Give a truth value from true/false, Y/N, yes/no, 1/0, or None."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    return {"y": True, "yes": True, "true": True, "1": True, "n": False, "no": False, "false": False, "0": False}.get(
        word
    )


_MONTHS = {
    name: i
    for i, names in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
    for name in (names,)
}


def month_number(value: object) -> int | None:
    """Give 1 to 12 from a number or an English name of a month, or None."""
    found = number(value)
    if found is None and isinstance(value, str):
        found = _MONTHS.get(value.strip()[:3].lower())
    return found if found and 1 <= found <= 12 else None


def day_of(year: object, month: object = None, day: object = None) -> str | None:
    """Give an ISO date if all three parts make one, else None."""
    y, m, d = number(year), month_number(month), number(day)
    try:
        return date(y, m, d).isoformat() if y and m and d else None
    except (OverflowError, ValueError):
        return None


def day(value: object) -> str | None:
    """Give the ISO date that a text begins with (`2024-02-13T…`, `2024/02/13`, `20240213`), or None."""
    word = text(value) or ""
    found = re.match(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)", word, re.ASCII) or re.match(
        r"(\d{4})(\d{2})(\d{2})(?:\D|$)", word, re.ASCII
    )
    return day_of(*found.groups()) if found else None


def day_of_ms(value: object) -> str | None:
    """Give the ISO date (UTC) of milliseconds since 1970, or None."""
    ms = number(value)
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat() if ms else None
    except (OverflowError, ValueError, OSError):
        return None


def year(*values: object) -> int | None:
    """Give the first year, 1000 to 2999, that a number or a text begins with."""
    for value in values:
        found = re.match(r"\s*([12]\d{3})(?!\d)", text(value) or "", re.ASCII) or re.match(
            r"\s*([12]\d{3})(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?!\d)", text(value) or "", re.ASCII
        )
        if found:
            return int(found[1])
    return None


def person(given: object, family: object, whole: object = None) -> str | None:
    """Give a name as `Given Family`; `Family, Given` is turned round; None where there is none."""
    first, last = tidy(given), tidy(family)
    if first or last:
        return f"{first} {last}".strip()
    name = text(whole)
    if not name:
        return None
    parts = [part.strip() for part in name.split(",")]
    if (
        len(parts) == 2
        and all(parts)
        and not re.fullmatch(r"(?i)(?:jr|sr|[ivx]+|ph\.?d|m\.?d|inc|ltd|llc)\.?", parts[1])
    ):
        return f"{parts[1]} {parts[0]}"
    return name


def people(names: Iterable[str | None]) -> list[str]:
    """Give the names that are there, in order, each once (repositories' merges double them)."""
    return once(name for name in names if name)


def identifiers(**values: object) -> dict[str, str]:
    """Bring identifiers to their one form, with those that follow from them; unreadable ones are left out."""
    known: dict[str, str] = {}
    for kind, value in values.items():
        word = text(value)
        if not word:
            continue
        if kind == "arxiv":
            word = re.sub(r"(?i)^oai:arxiv\.org:", "", word)
        found = normalize(kind, word)
        if found:
            known.setdefault(kind, found)
    for kind, value in implied_identifiers(known).items():
        known.setdefault(kind, value)
    return known


def version_of(value: object) -> int | None:
    """Give the version that an arXiv id or address carries, or None."""
    word = text(value)
    return arxiv_version(word) if word else None


def reference(doi: object = None, words: object = None, **others: object) -> str | None:
    """Give a cited work as `kind:value`, the first kind that can be read, else its text, else None."""
    found = identifiers(doi=doi, **others)
    for kind in ("doi", "arxiv", "pmid", "pmcid", "openalex", "s2"):
        if kind in found:
            return f"{kind}:{found[kind]}"
    return next((f"{kind}:{value}" for kind, value in found.items()), None) or text(words)


def link(value: object) -> str | None:
    """Give an http(s) address, or None."""
    word = text(value) or ""
    if word.startswith("//"):
        word = f"https:{word}"
    return word if re.match(r"(?i)https?://[^\s/]", word) and " " not in word else None


def named(value: object) -> str | None:
    """Give `kind:value` of an identifier in any dress, or None."""
    found = parse_identifier(text(value) or "")
    return found.key if found else None
