"""`brain doctor`: check everything that can be wrong and say the mend."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, make_console, print_json, say


def doctor(
    *,
    mend: Annotated[bool, Parameter(negative=(), help="Queue what has neither an embedding nor a job.")] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Check everything that can be wrong and say the mend. Exit 0 when all is well, 3 when something is not."""
    from corpus.database import check_server
    from ingest.checkup import mend as queue_missing
    from ingest.checkup import run_checks
    from ingest.store import Store

    settings = get_settings()
    database = get_database(db, settings, any_schema=True)
    with database.connect(autocommit=True) as connection:
        check_server(connection)
        if mend:
            say(f"{queue_missing(connection)} jobs queued")
        findings = list(run_checks(connection, Store(settings.store_url), settings))
    if json:
        print_json([finding.to_json() for finding in findings])
    else:
        _show([(f.level, f.check, f.what, f.mend) for f in findings])
    return 3 if any(finding.level == "fault" for finding in findings) else 0


def _show(rows: list[tuple[str, str, str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "warning": "yellow", "fault": "bold red"}
    table = Table(box=None, pad_edge=False, show_header=False)
    for level, check, what, cure in rows:
        told = Text(what)
        if cure:
            told.append(f"\n→ {cure}", style="bold")
        table.add_row(Text(level, style=colours[level]), check, told)
    make_console().print(table)
