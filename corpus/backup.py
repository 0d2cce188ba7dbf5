"""Backups of the embedded server: taken while it runs, verified before they count, verified again before a restore.

pg_basebackup copies; the copy is checked against PostgreSQL's own manifest. That manifest leaves the write-ahead log out
beyond what a restore replays, so a list of our own holds the sha256 of every file there is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corpus.backup_manifest import find_damage, run
from corpus.embedded import EmbeddedServer
from corpus.embedded_host import give_to_server_user
from corpus.errors import BackupDamaged, EmbeddedServerError, InputError

LIST = "brain-backup.json"
SEAL = "brain-backup.sha256"
_PREFIX = "brain-"
_LEFT_OVERS = ("postmaster.pid", "postmaster.opts", "server.log")
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup: its folder, when it was taken, and what its list says."""

    folder: Path
    taken_at: str
    said: Mapping[str, Any]


def _quiet(text: str) -> None:
    """Tell nothing."""


def take(server: EmbeddedServer, target: Path, *, receipt: Mapping[str, Any], progress: Progress = _quiet) -> Backup:
    """Copy the running server into a new folder below `target`; it appears there when it is whole and verified.

    Raises EmbeddedServerError when the copy fails, BackupDamaged when it does not verify.
    """
    target.mkdir(parents=True, exist_ok=True)
    at = datetime.now(UTC)
    folder = target / f"{_PREFIX}{at:%Y%m%dT%H%M%S}Z"
    fresh = target / f".{folder.name}.partial-{os.getpid()}"
    for left in target.glob(f".{_PREFIX}*.partial-*"):
        shutil.rmtree(left, ignore_errors=True)
    progress("copying")
    try:
        done = run(
            "pg_basebackup", "-d", server.conninfo, "-D", str(fresh), "-X", "stream", "-c", "fast",
            "--manifest-checksums=SHA256",
        )  # fmt: skip
        if done.returncode != 0:
            raise EmbeddedServerError(
                f"The backup into {target} failed: {done.stderr.strip()[-400:]}", mend="Give the folder room."
            )
        for name in _LEFT_OVERS:
            with contextlib.suppress(FileNotFoundError):
                (fresh / name).unlink()
        progress("verifying")
        _verify_manifest(fresh)
        progress("sealing")
        said = {
            "format": 1, "taken_at": at.isoformat(timespec="seconds"), "receipt": receipt, "files": _digests(fresh),
            "server_version": (fresh / "PG_VERSION").read_text().strip(),
        }  # fmt: skip
        text = json.dumps(said, ensure_ascii=False, sort_keys=True, indent=0)
        (fresh / LIST).write_text(text, encoding="utf-8")
        (fresh / SEAL).write_text(hashlib.sha256(text.encode()).hexdigest() + "\n")
        os.sync()
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Backup(folder, said["taken_at"], said)


def list_backups(target: Path) -> list[Path]:
    """The backups below a folder, the oldest first."""
    return sorted(path for path in target.glob(f"{_PREFIX}*") if (path / SEAL).is_file())


def remove_older(target: Path, keep: int) -> list[Path]:
    """Remove all but the newest `keep` backups; returns what was removed."""
    gone = list_backups(target)[: -max(1, keep)]
    for path in gone:
        shutil.rmtree(path)
    return gone


def find(path: Path) -> Path:
    """The backup that a path means: itself, or the newest below it. Raises InputError when there is none."""
    if (path / LIST).is_file() or (path / SEAL).is_file() or (path / "backup_manifest").is_file():
        return path
    if found := list_backups(path) if path.is_dir() else []:
        return found[-1]
    raise InputError(f"There is no backup in {path}.", mend="Name a folder that `brain backup` wrote.", file=str(path))


def verify(folder: Path, progress: Progress = _quiet) -> Backup:
    """Check every byte of a backup; nothing is changed. Raises BackupDamaged, naming what differs."""
    progress("verifying")
    try:
        text = (folder / LIST).read_text(encoding="utf-8")
        seal = (folder / SEAL).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise BackupDamaged(f"The backup {folder} has no list that can be read: {error}.", mend=_MEND) from error
    if hashlib.sha256(text.encode()).hexdigest() != seal:
        raise BackupDamaged(f"The backup {folder} is damaged: its list is not the one that was sealed.", mend=_MEND)
    said = json.loads(text)
    there = _digests(folder)
    if differing := sorted(name for name in {*there, *said["files"]} if there.get(name) != said["files"].get(name)):
        shown = ", ".join(differing[:5]) + (f" and {len(differing) - 5} more" if len(differing) > 5 else "")
        raise BackupDamaged(f"The backup {folder} is damaged: {shown} is missing or holds other bytes.", mend=_MEND)
    _verify_manifest(folder)
    return Backup(folder, said["taken_at"], said)


_MEND = "Nothing was touched. Take an older backup, or `brain rebuild` from the seed files."


def restore(server: EmbeddedServer, backup: Backup, progress: Progress = _quiet) -> Path | None:
    """Put a verified backup in the server's place and start it; returns where the database that was there lies now.

    Raises EmbeddedServerError when it is of another PostgreSQL or does not start; then the old database is back.
    """
    ours = run("postgres", "--version").stdout.split()[-1]
    theirs = backup.said["server_version"]
    if ours.partition(".")[0] != theirs.partition(".")[0]:
        raise EmbeddedServerError(
            f"The backup {backup.folder} is of PostgreSQL {theirs}; this machine has {ours}.",
            mend="Restore it with the version of the program that took it, or use `brain rebuild`.",
        )
    progress("copying")
    fresh = server.folder.parent / f".{server.folder.name}.restore-{os.getpid()}"
    for left in server.folder.parent.glob(f".{server.folder.name}.restore-*"):
        shutil.rmtree(left, ignore_errors=True)
    server.folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(backup.folder, fresh, ignore=shutil.ignore_patterns(LIST, SEAL))
    _keep_own_settings(server.folder, fresh)
    for path in (fresh, *fresh.rglob("*")):
        give_to_server_user(path)
        path.chmod(0o700 if path.is_dir() else 0o600)
    os.sync()
    aside: Path | None = None
    server.stop()
    server.end_orphans()
    if server.folder.exists():
        aside = server.folder.with_name(f"{server.folder.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        server.folder.rename(aside)
    fresh.rename(server.folder)
    progress("starting")
    try:
        server.ensure_running(progress)
    except Exception:
        server.stop()
        shutil.rmtree(server.folder)
        if aside is not None:
            aside.rename(server.folder)
        raise
    return aside


def _keep_own_settings(old: Path, fresh: Path) -> None:
    """Addresses and memory belong to a machine: this one's stay, another one's do not come along."""
    for name in ("brain-listen.conf", "brain-local.conf"):
        with contextlib.suppress(FileNotFoundError):
            (fresh / name).unlink()
        if (old / name).exists():
            shutil.copyfile(old / name, fresh / name)


def _digests(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in {LIST, SEAL}:
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _verify_manifest(folder: Path) -> None:
    if what := find_damage(folder, ignored=(LIST, SEAL, *_LEFT_OVERS)):
        raise BackupDamaged(f"The backup {folder} is damaged: {what}.", mend=_MEND)
