"""Seed files: one topic a file, its description first, then one paper a line. They and the store are the backup.

The file is named after the topic; signs that a file name cannot hold are percent-encoded, so that any name works and no
two topics share a file. Papers without a topic are in `_unsorted.jsonl`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from corpus.errors import InputError, UsageError
from corpus.ids import implied_identifiers, paper_key, parse_identifier
from ingest.jsonl import iter_lines
from ingest.records import IDENTIFIER_KINDS, KINDS, PaperRecord, parse_year

UNSORTED = "_unsorted"
_NAME_MAX = 180
_FILE_SUFFIXES = (".pdf", ".md", ".markdown", ".html", ".htm", ".txt", ".xml")


@dataclass(slots=True)
class SeedFile:
    """A topic's file in memory. `entries` are kept as they were read; nothing that we do not know is lost."""

    path: Path
    topic: str | None
    meta: dict[str, Any] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SeedPaper:
    """One entry, read: what is known of the paper (None without any identifier), and where its full text is."""

    entry: Mapping[str, Any]
    record: PaperRecord | None
    title: str | None
    path: Path | None = None
    url: str | None = None
    sha256: str | None = None
    mark: str | None = None


def seed_path(folder: Path, topic: str | None) -> Path:
    """The file of a topic; None means the papers without one."""
    if topic is None:
        return folder / f"{UNSORTED}.jsonl"
    name = quote(topic, safe=" ")
    if name[0] in "._-~ ":
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _NAME_MAX:
        name = f"{name[:100]}-{hashlib.sha256(topic.encode()).hexdigest()[:16]}"
    return folder / f"{name}.jsonl"


def list_seed_files(folder: Path) -> list[Path]:
    """Every seed file of a folder, the unsorted one last."""
    return sorted(folder.glob("*.jsonl"), key=lambda path: (path.stem == UNSORTED, path.name))


def find_seed_file(folder: Path, topic: str) -> SeedFile | None:
    """The file whose topic is exactly this one, or whose name is."""
    by_name = seed_path(folder, topic)
    if by_name.exists():
        return read_seed_file(by_name)
    for path in list_seed_files(folder):
        seed = read_seed_file(path)
        if topic in {seed.topic, path.stem}:
            return seed
    return None


def get_seed_file(folder: Path, topic: str) -> SeedFile:
    """As `find_seed_file`; raises UsageError that names the topics there are."""
    seed = find_seed_file(folder, topic)
    if seed is None:
        known = ", ".join(repr(unquote(p.stem)) for p in list_seed_files(folder)) or "none yet"
        raise UsageError(
            f"There is no seed file for the topic {topic!r} in {folder} (topics there: {known}).",
            mend=f"Begin one with `brain seed add {json.dumps(topic)} ID…`.",
        )
    return seed


def read_seed_file(path: Path) -> SeedFile:
    """Read a file; lines that cannot be used are in `errors`, named by number, and the rest is there."""
    topic = None if path.stem == UNSORTED else unquote(path.stem)
    seed = SeedFile(path, topic)
    for line in iter_lines(path):
        if line.error is None and isinstance(line.value, dict):
            if "_meta" in line.value and isinstance(line.value["_meta"], dict):
                seed.meta = line.value["_meta"]
                stated = seed.meta.get("topic")
                seed.topic = stated if isinstance(stated, str) and stated else seed.topic
            else:
                seed.entries.append(line.value)
        else:
            what = line.error or "it is not an object"
            seed.errors.append(InputError(f"{path} line {line.number}: {what}.", file=str(path), line=line.number))
    return seed


def write_seed_file(seed: SeedFile) -> None:
    """Write the file whole, by rename: a reader sees the old or the new one. One paper a line, in a stable order."""
    meta = {"topic": seed.topic, **seed.meta} if seed.topic is not None else dict(seed.meta)
    lines = [json.dumps({"_meta": meta}, ensure_ascii=False)]
    lines += sorted((json.dumps(entry, ensure_ascii=False) for entry in seed.entries), key=_sort_key)
    seed.path.parent.mkdir(parents=True, exist_ok=True)
    fresh = seed.path.with_name(f".{seed.path.name}.{os.getpid()}")
    text = "\n".join(lines) + "\n"
    if seed.path.exists() and seed.path.read_text(encoding="utf-8") == text:
        return
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(seed.path)


def _sort_key(line: str) -> str:
    return str(json.loads(line).get("id", ""))


def read_entry(entry: Mapping[str, Any], base: Path) -> SeedPaper:
    """What one entry says. Paths are relative to `base` (the folder that holds the seed folder).

    An entry that the database itself has written (`is_stored`) keeps its key, whichever identifiers came later.
    Raises InputError when it names no paper: neither identifier, nor file, nor title.
    """
    stated = {kind: str(entry[kind]) for kind in IDENTIFIER_KINDS if entry.get(kind)}
    own = entry.get("id")
    own_text = str(own).strip() if isinstance(own, str | int) else ""
    is_prefixed = entry.get("is_prefixed") is True
    is_stored = entry.get("is_stored") is True and bool(own_text)
    path, url = _location(own_text, base) if own_text and not is_prefixed else (None, None)
    found = parse_identifier(own_text) if own_text and path is None else None
    if found is not None and found.kind != "file":
        stated.setdefault(found.kind, found.value)
    pdf_url = entry.get("pdf_url")
    if isinstance(pdf_url, str) and pdf_url.strip():
        named_path, named_url = _location(pdf_url.strip(), base)
        path, url = named_path or path, named_url or url
    sha256 = (
        str(entry["sha256"]).lower()
        if entry.get("sha256")
        else (found.value if found and found.kind == "file" else None)
    )
    identifiers = implied_identifiers(stated)
    title = entry.get("title") if isinstance(entry.get("title"), str) else None
    if title is None and own_text[:1] in "\"'“" and own_text:
        title = own_text.strip("\"'“”") or None
    key = own_text if is_prefixed or is_stored else (paper_key(identifiers, sha256) if identifiers or sha256 else None)
    if key is None and path is None and url is None and not title:
        raise InputError(f"the entry {own_text[:80]!r} names no paper: no identifier, no file, no title")
    record = None
    if key is not None:
        record = PaperRecord(
            paper_id=key, is_prefixed=is_prefixed, title=title, identifiers=identifiers,
            kind=str(entry["kind"]) if entry.get("kind") in KINDS else "paper",
            abstract=entry.get("abstract") if isinstance(entry.get("abstract"), str) else None,
            authors=tuple(a for a in entry.get("authors") or () if isinstance(a, str)),
            year=parse_year(entry.get("year")), venue=entry.get("venue") or None,
            url=entry.get("url") or (url if found is None and not is_stored and url and not url.lower().endswith(".pdf") else None),
            raw={**(entry.get("raw") or {}), **({"pdf_url": pdf_url} if url and pdf_url and not is_stored else {})},
        )  # fmt: skip
    mark = entry.get("mark") if entry.get("mark") in {"star", "read", "skip"} else None
    return SeedPaper(entry, record, title, path=path, url=url, sha256=sha256, mark=mark)


def _location(text: str, base: Path) -> tuple[Path | None, str | None]:
    """A local file, an address, or neither. An address that is an identifier's own page is neither."""
    scheme = urlsplit(text).scheme.lower() if "://" in text else ""
    if scheme == "file":
        return Path(unquote(urlsplit(text).path)), None
    if scheme in {"http", "https"}:
        return None, (None if parse_identifier(text) and not text.lower().split("?")[0].endswith(".pdf") else text)
    if not scheme and text.lower().endswith(_FILE_SUFFIXES) and not text.lower().startswith(("arxiv:", "doi:")):
        path = Path(text).expanduser()
        return (path if path.is_absolute() else base / path), None
    return None, None


def add_entries(seed: SeedFile, ids: Iterable[str], base: Path) -> list[dict[str, Any]]:
    """Put new entries for the ids into the seed; those it has already are left out. Returns the new ones."""
    known = {_identity(entry, base) for entry in seed.entries}
    added: list[dict[str, Any]] = []
    for text in ids:
        entry: dict[str, Any] = {"id": text.strip()}
        found = parse_identifier(text)
        if found is not None and found.kind != "file":
            entry["id"] = found.key
            if "://" in text and text.lower().split("?")[0].endswith(".pdf"):
                entry["pdf_url"] = text.strip()
        read_entry(entry, base)
        identity = _identity(entry, base)
        if identity not in known:
            known.add(identity)
            seed.entries.append(entry)
            added.append(entry)
    return added


def _identity(entry: Mapping[str, Any], base: Path) -> str:
    try:
        read = read_entry(entry, base)
    except InputError:
        return json.dumps(entry, sort_keys=True)
    if read.record is not None:
        return read.record.paper_id
    return str(read.path or read.url or (read.title or "").casefold())


def entry_of(
    row: Mapping[str, Any], identifiers: Sequence[tuple[str, str]], documents: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The entry that brings a paper of the database back: what is known and not empty, in a fixed order."""
    first = dict(documents[0]) if documents else {}
    by_kind: dict[str, str] = {}
    more = [
        f"{kind}:{value}"
        for kind, value in sorted(identifiers)
        if kind != "key" and by_kind.setdefault(kind, value) != value
    ]
    raw = row["raw"] or {}
    entry: dict[str, Any] = {
        "id": row["paper_id"], "title": row["title"], "year": row["year"],
        **{kind: value for kind, value in by_kind.items() if f"{kind}:{value}" != row["paper_id"]},
        "identifiers": more, "aliases": sorted(value for kind, value in identifiers if kind == "key"),
        "kind": row["kind"] if row["kind"] != "paper" else None, "is_prefixed": row["is_prefixed"] or None,
        "authors": list(row["authors"]), "published_on": row["published_on"], "venue": row["venue"], "url": row["url"],
        "n_citations": row["n_citations"], "velocity": row["velocity"], "tldr": row["tldr"], "licence": row["licence"],
        "is_retracted": row["is_retracted"] or None, "mark": row["mark"], "same_as": row["same_as"],
        "is_wordless": row["is_wordless"] or None,
        "pdf_url": first.get("source_url") or raw.get("pdf_url"), "sha256": first.get("sha256"),
        "file_name": first.get("file_name"), "document": _document(first), "documents": [_document(d) for d in documents[1:]],
        "raw": raw, "provenance": row["provenance"], "abstract": row["abstract"], "is_stored": True,
    }  # fmt: skip
    return {key: value for key, value in entry.items() if value is not None and value not in ([], {}, "")}


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}
