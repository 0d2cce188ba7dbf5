"""Checks a base backup against PostgreSQL's manifest: every file, the manifest itself, the write-ahead log it needs.

This is what pg_verifybackup does, and it is used as well where it runs. The embedded server's package ships one that
cannot be loaded on Linux (its dynamic section lies in a read-only segment), which is why the rules stand here too:
https://www.postgresql.org/docs/current/backup-manifest-format.html
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from corpus.embedded_host import binaries, server_environment

MANIFEST = "backup_manifest"
_UNLISTED = ("postgresql.auto.conf", "standby.signal", "recovery.signal")
_LAST_LINE = b'"Manifest-Checksum"'


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one of the server's programs as ourselves, without PG* variables of the caller."""
    return subprocess.run(
        [str(binaries() / program), *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env=server_environment(),
    )  # fmt: skip


@lru_cache(maxsize=1)
def has_pg_verifybackup() -> bool:
    """Whether the package's pg_verifybackup can be run at all."""
    try:
        return run("pg_verifybackup", "--version").returncode == 0
    except OSError:
        return False


def find_damage(folder: Path, *, ignored: Iterable[str] = ()) -> str:
    """What is wrong with a base backup in plain form; empty when it is whole. Checksums must be SHA256."""
    try:
        raw = (folder / MANIFEST).read_bytes()
        manifest = json.loads(raw)
        listed = {row["Path"]: (row["Size"], row["Checksum"]) for row in manifest["Files"]}
        body = raw[: raw.rindex(_LAST_LINE)]
        if hashlib.sha256(body).hexdigest() != manifest["Manifest-Checksum"]:
            return f"{MANIFEST} is not the one that was written"
        wal = [(row["Timeline"], row["Start-LSN"], row["End-LSN"]) for row in manifest["WAL-Ranges"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{MANIFEST} cannot be read: {error}"
    return _files_damage(folder, listed, set(ignored)) or _wal_damage(folder, wal) or _tool_damage(folder, ignored)


def _files_damage(folder: Path, listed: dict[str, tuple[int, str]], ignored: set[str]) -> str:
    for name, (size, checksum) in listed.items():
        path = folder / name
        if name in ignored:
            continue
        if not path.is_file() or path.stat().st_size != size:
            return f"{name} is missing or has another size"
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                return f"{name} holds other bytes"
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        is_free = name.startswith("pg_wal/") or name in {MANIFEST, *_UNLISTED, *ignored}
        if path.is_file() and name not in listed and not is_free:
            return f"{name} is no part of it"
    return ""


def _wal_damage(folder: Path, ranges: list[tuple[int, str, str]]) -> str:
    for timeline, start, stop in ranges:
        done = run("pg_waldump", "-q", "-p", str(folder / "pg_wal"), "-t", str(timeline), "-s", start, "-e", stop)
        if done.returncode != 0:
            return f"its write-ahead log cannot be replayed: {done.stderr.strip()[-200:]}"
    return ""


def _tool_damage(folder: Path, ignored: Iterable[str]) -> str:
    if not has_pg_verifybackup():
        return ""
    words = [word for name in ignored for word in ("-i", name)]
    done = run("pg_verifybackup", "--exit-on-error", "--quiet", *words, str(folder))
    return "" if done.returncode == 0 else done.stderr.strip()[-300:] or "pg_verifybackup refuses it"
