"""`brain backup` and `brain restore`: the embedded server's database, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_settings, print_json, say

if TYPE_CHECKING:
    from corpus.database import Database


def backup(
    folder: Path,
    /,
    *,
    keep: Annotated[int | None, Parameter(help="Remove all but the newest N backups of FOLDER afterwards.")] = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Copy the embedded server's database below FOLDER while it runs, and verify the copy.

    A server of your own: see docs/host-loss.md for pgBackRest.
    """
    from corpus import backup as backups
    from corpus.errors import UsageError
    from corpus.receipt import take

    if keep is not None and keep < 1:
        raise UsageError("--keep must be at least 1.")
    database = _embedded(db)
    server = database.embedded
    assert server is not None
    database.ensure_started(say)
    with database.connect(autocommit=True) as connection:
        receipt = take(connection)
    made = backups.take(server, folder.expanduser().absolute(), receipt=receipt.identity, progress=say)
    gone = backups.remove_older(folder.expanduser().absolute(), keep) if keep is not None else []
    if json:
        print_json({"folder": str(made.folder), "taken_at": made.taken_at, "removed": [str(path) for path in gone]})
    else:
        print(made.folder)
        for path in gone:
            say(f"removed {path}")
    return 0


def restore(
    folder: Annotated[Path, Parameter(help="A backup, or the folder whose newest backup is meant.")],
    /,
    *,
    verify_only: Annotated[bool, Parameter(negative=(), help="Check the backup and change nothing.")] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Put a backup in the embedded server's place. A damaged one is refused before anything is touched (exit 5).

    The database that was there is kept beside it, and its place is told. Exit 3 when the corpus is not what the backup's
    receipt says.
    """
    from corpus import backup as backups
    from corpus.receipt import take

    database = _embedded(db)
    server = database.embedded
    assert server is not None
    found = backups.verify(backups.find(folder.expanduser().absolute()), say)
    if verify_only:
        say(f"{found.folder} is whole ({found.taken_at})")
        return 0
    aside = backups.restore(server, found, say)
    with database.connect(autocommit=True) as connection:
        is_equal = take(connection).identity == found.said["receipt"]
    if json:
        print_json(
            {
                "backup": str(found.folder),
                "taken_at": found.taken_at,
                "is_equal": is_equal,
                "kept": str(aside) if aside else None,
            }
        )
    else:
        say(f"{server.folder} is what it was at {found.taken_at}" + ("" if is_equal else "; the receipt differs"))
        if aside is not None:
            say(f"the database that was there is in {aside}; remove it when you no longer need it")
    return 0 if is_equal else 3


def _embedded(db: str | None) -> Database:
    from corpus.database import Database
    from corpus.errors import UsageError

    settings = get_settings()
    database = Database.named(db, settings, application_name="brain backup")
    if database.embedded is None:
        raise UsageError(
            f"{database.url.masked} is not the embedded server.",
            mend="Back up a server of your own with pgBackRest: see docs/host-loss.md.",
        )
    return database
