"""`brain selftest`: every part of the intake once, for real."""

from __future__ import annotations

from brain.common import Db, Json, get_database, get_settings, print_json, say


def selftest(*, db: Db = None, json: Json = False) -> int:
    """Run every part of intake and search once, on tiny inputs in a scratch database of the current schema.

    The real database is only looked at: its schema, rights and indexes. The result is kept for `/health` and
    `brain status`. Exit 3 when a part does not work; it is named.
    """
    from brain.selftest_steps import run

    settings = get_settings()
    report = run(get_database(db, settings, name="brain selftest", any_schema=True), settings)
    if json:
        print_json(report.to_json())
        return 0 if report.is_ok else 3
    for finding in report.findings:
        if finding.is_ok:
            print(f"ok      {finding.part} ({finding.took_ms} ms)")
        else:
            print(f"FAILED  {finding.part}: {finding.what} {finding.mend}".rstrip())
    n_bad = sum(not finding.is_ok for finding in report.findings)
    say(f"{len(report.findings)} parts, {n_bad} of them do not work" if n_bad else f"{len(report.findings)} parts work")
    return 0 if report.is_ok else 3
