"""`brain status` and `brain failures`: the farm at a glance, and what failed."""

from __future__ import annotations

import time
from typing import Annotated, Any

from cyclopts import Parameter

from brain.common import Db, Json, get_database, make_console, print_json, say


def status(
    *,
    watch: Annotated[bool, Parameter(negative=(), help="Show it again every two seconds until Ctrl-C.")] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Show what waits, runs, failed and is done, every node, and how long the rest may take."""
    from corpus.farm import status as read

    database = get_database(db)
    with database.connect(autocommit=True) as connection:
        if json and not watch:
            print_json(read(connection))
            return 0
        from brain.status_view import render

        if not watch:
            make_console().print(render(read(connection)))
            return 0
        from rich.live import Live

        with Live(render(read(connection)), refresh_per_second=4) as live:
            while True:
                time.sleep(2)
                live.update(render(read(connection)))


def failures(
    *,
    retry: Annotated[
        list[int] | None, Parameter(help="Send these failed jobs back to the queue.", consume_multiple=True)
    ] = None,
    retry_all: Annotated[bool, Parameter(negative=(), help="Send every failed job back to the queue.")] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """List what failed and why, the newest first; send one or all back. Exit 3 while there are any."""
    from corpus.errors import UsageError
    from corpus.farm import list_failures, retry_failures

    with get_database(db).connect(autocommit=True) as connection:
        if retry_all or retry:
            sent = retry_failures(connection, None if retry_all else retry)
            unknown = sorted(set(retry or ()) - set(sent)) if not retry_all else []
            if json:
                print_json({"retried": sent, "unknown": unknown})
            else:
                say(f"{len(sent)} jobs sent back to the queue")
            if unknown:
                raise UsageError(
                    f"No failed job has the number {', '.join(map(str, unknown))}.", mend="See `brain failures`."
                )
            return 0
        rows = list_failures(connection)
    if json:
        print_json(rows)
        return 0
    for row in rows:
        _print_failure(row)
    if not rows:
        say("nothing failed")
    return 3 if rows else 0


def _print_failure(row: dict[str, Any]) -> None:
    what = row["paper_id"] or ""
    print(
        f"{row['id']}  {row['kind']}  {row['class']}  {what}  {row['file'] or ''}  (attempt {row['n_attempts']}, {row['at']})"
    )
    print(f"    {row['reason']}")
