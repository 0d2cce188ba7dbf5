"""Receipts: what the corpus is, small enough for version control, and what is missing beside an older one.

A receipt holds, for each topic and for the whole, how many papers, files, passages and embeddings there are and one hash
over each, sorted by key. The detail file beside it has one line a paper, so that a comparison can name what differs.
Numbers of rows (`paper_pk`, `passage_id`) and times are in neither: a rebuilt corpus has an equal receipt.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from corpus.encoders import find_active
from corpus.errors import InputError
from corpus.schema import applied
from sql.files import queries

FORMAT = 1
NAME = "_receipt.json"
DETAIL = "_receipt.detail.jsonl.gz"
OWN_SETTINGS = ["instance", "functions", "rebuild", "selftest"]
PARTS = ("papers", "documents", "passages", "embeddings")
NO_TOPIC = ""
"""Stands for the papers without a topic."""


@dataclass(slots=True)
class Tally:
    """Counts and running hashes of the papers of one topic, fed in the order of their keys."""

    n: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    hashes: dict[str, Any] = field(default_factory=lambda: {part: hashlib.sha256() for part in PARTS})

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one paper of the detail file."""
        key = row["paper_id"]
        said = {
            "papers": [row["words"], row["facts"], row["identifiers"], row["topics"]],
            "documents": [document[:2] for document in row["documents"]],
            "passages": row["passages"],
            "embeddings": row["embeddings"],
        }
        counted = {"papers": 1, "documents": len(row["documents"])}
        for part in PARTS:
            n = counted[part] if part in counted else row[f"n_{part}"]
            if n:
                self.n[part] += n
                self.hashes[part].update(json.dumps([key, said[part]], ensure_ascii=True).encode() + b"\n")

    def to_json(self) -> dict[str, Any]:
        """Counts with hashes."""
        return {part: {"n": self.n[part], "sha256": self.hashes[part].hexdigest()} for part in PARTS}


@dataclass(slots=True)
class Receipt:
    """A receipt in memory: the small part, and one row a paper."""

    head: dict[str, Any]
    papers: dict[str, dict[str, Any]] | None

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal in a rebuilt corpus."""
        return {name: self.head.get(name) for name in ("whole", "topics", "citations", "apart", "settings", "encoder")}


def take(connection: Connection[Any]) -> Receipt:
    """The receipt of the database as it is in one snapshot. The connection must be in autocommit."""
    assert connection.autocommit
    named = queries("receipt")
    whole, by_topic, papers = Tally(), {}, {}
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute(named["plan"])
        encoder = find_active(connection)
        topics = {name: {"meta": meta} for name, meta in connection.execute(named["topics"]).fetchall()}
        with connection.cursor("receipt", row_factory=dict_row) as cursor:
            cursor.itersize = 2000
            for row in cursor.execute(named["papers"], {"encoder_id": encoder.encoder_id if encoder else 0}):
                papers[row["paper_id"]] = row
                whole.add(row)
                for topic in row["topics"] or [NO_TOPIC]:
                    by_topic.setdefault(topic, Tally()).add(row)
        links = hashlib.sha256()
        n_links = 0
        with connection.cursor("links") as cursor:
            for link in cursor.execute(named["citations"]):
                links.update("\t".join(link).encode() + b"\n")
                n_links += 1
        apart = ["|".join(row) for row in connection.execute(named["apart"]).fetchall()]
        settings = dict(connection.execute(named["settings"], {"own": OWN_SETTINGS}).fetchall())
        with connection.cursor(row_factory=dict_row) as cursor:
            versions = cursor.execute(named["versions"]).fetchone() or {}
        schema = sorted(applied(connection))
    empty = Tally().to_json()
    head = {
        "format": FORMAT,
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "whole": whole.to_json(),
        "topics": {
            name: {**topics.get(name, {}), **(by_topic[name].to_json() if name in by_topic else empty)}
            for name in sorted({*topics, *by_topic})
        },
        "citations": {"n": n_links, "sha256": links.hexdigest()},
        "apart": apart,
        "settings": settings,
        "encoder": None
        if encoder is None
        else {
            "name": encoder.name, "revision": encoder.revision, "weights_sha256": encoder.weights_sha256,
            "max_tokens": encoder.max_tokens, "prompts": encoder.prompts,
        },
        "versions": {"research-brain": _version(), "schema": schema, **versions},
    }  # fmt: skip
    return Receipt(head, papers)


def _version() -> str:
    try:
        return metadata.version("research-brain")
    except metadata.PackageNotFoundError:
        return "0"


def write(receipt: Receipt, folder: Path) -> tuple[Path, Path]:
    """Write both files, each whole; the detail first, because the small one names its hash."""
    assert receipt.papers is not None
    folder.mkdir(parents=True, exist_ok=True)
    detail = folder / DETAIL
    digest = hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for row in (receipt.papers or {}).values():
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            digest.update(line)
            yield line

    fresh = detail.with_name(f".{detail.name}.{os.getpid()}")
    # Without a name and a time in it the file is the same for the same corpus.
    with fresh.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.writelines(lines())
    fresh.replace(detail)
    head = folder / NAME
    fresh = head.with_name(f".{head.name}.{os.getpid()}")
    known = {**receipt.head, "detail": {"file": DETAIL, "sha256": digest.hexdigest()}}
    fresh.write_text(json.dumps(known, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    fresh.replace(head)
    return head, detail


def read(path: Path) -> Receipt:
    """Read a receipt: the file, or the folder that holds it. Without its right detail file `papers` is None.

    Raises InputError when there is none, or it cannot be read.
    """
    path = path / NAME if path.is_dir() else path
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"There is no receipt {path}.", mend="Write one with `brain receipt`.", file=str(path)
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"The receipt {path} cannot be read: {error}.", mend="Take an older one.", file=str(path)
        ) from error
    if not isinstance(head, dict) or not isinstance(head.get("whole"), dict) or head.get("format") != FORMAT:
        raise InputError(f"{path} is no receipt of format {FORMAT}.", mend="Take an older one.", file=str(path))
    return Receipt(head, _read_detail(path, head))


def _read_detail(path: Path, head: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    stated = head.get("detail") or {}
    digest = hashlib.sha256()
    papers: dict[str, dict[str, Any]] = {}
    try:
        with gzip.open(path.with_name(stated.get("file") or DETAIL), "rb") as lines:
            for line in lines:
                digest.update(line)
                row = json.loads(line)
                papers[row["paper_id"]] = row
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None
    return papers if digest.hexdigest() == stated.get("sha256") else None


def counts(receipt: Receipt) -> dict[str, int]:
    """How many of each there are in all."""
    return {part: receipt.head["whole"][part]["n"] for part in PARTS}
