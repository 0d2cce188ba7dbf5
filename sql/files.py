"""Reads the SQL that ships with the package: migrations, functions, named queries."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


def folder() -> Path:
    """Where the SQL files lie."""
    return Path(str(resources.files("sql")))


def migration_files() -> list[Path]:
    """The migrations in the order in which they run."""
    return sorted((folder() / "migrations").glob("*.sql"))


def function_files() -> list[Path]:
    """The re-runnable definitions, in the order in which they run."""
    return sorted((folder() / "functions").glob("*.sql"))


def frozen_hashes() -> dict[str, str]:
    """sha256 of every migration that was ever shipped, by file name."""
    return json.loads((folder() / "frozen.json").read_text())


def digest(path: Path) -> str:
    """sha256 of a file, hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=64)
def queries(name: str) -> dict[str, LiteralString]:
    """The named queries of `sql/queries/<name>.sql`: blocks that begin with a line `-- name: x`.

    They are files of the package, never input, which is what LiteralString stands for.
    """
    text = (folder() / "queries" / f"{name}.sql").read_text()
    parts = _NAME.split(text)
    return {key: cast("LiteralString", body.strip()) for key, body in zip(parts[1::2], parts[2::2], strict=True)}
