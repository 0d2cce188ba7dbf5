"""`brain reextract`: read full texts anew that an older extractor has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from brain.common import Bars, Db, Json, get_database, get_settings, print_json, say

if TYPE_CHECKING:
    from ingest.reextract import Outdated, Reextraction


def reextract(
    *,
    topic: Annotated[list[str] | None, Parameter(help="Only papers of this topic (repeatable).")] = None,
    paper: Annotated[list[str] | None, Parameter(help="Only this paper (repeatable).")] = None,
    all_: Annotated[
        bool, Parameter(name="--all", negative=(), help="Also what today's extractor has read already.")
    ] = False,
    ocr: Annotated[
        bool, Parameter(negative=(), help="Also what needs text recognition, with it (needs the extra).")
    ] = False,
    dry_run: Annotated[bool, Parameter(negative=(), help="Say what would be read, and read nothing.")] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Read full texts anew that an older extractor has read, from the store.

    The older text is found and quoted until workers have embedded the new one; then it changes at once. Passages whose
    text is unchanged keep their embeddings. May be stopped and run again: what is done is not done twice. A file that the
    store has not, and one that gives no usable text today and so keeps its older one, are named; exit 3.
    """
    from ingest.reextract import list_outdated
    from ingest.reextract import reextract as run
    from ingest.store import Store
    from ingest.text.result import EXTRACTOR_VERSION

    settings = get_settings()
    database = get_database(db, settings, name="brain reextract")
    with database.connect() as connection:
        wanted = list_outdated(connection, topics=topic or (), papers=paper or (), is_all=all_, is_ocr=ocr)
    if dry_run:
        _show(wanted, EXTRACTOR_VERSION, is_json=json)
        return 0
    with Bars() as bars:
        bars.begin("full texts read anew", len(wanted))
        report = run(
            database,
            Store(settings.store_url),
            wanted,
            is_all=all_,
            is_ocr=ocr,
            on_done=lambda each: bars.step(note=each.file_name),
        )
    for problem in report.problems[:200]:
        say(problem)
    if len(report.problems) > 200:
        say(f"… and {len(report.problems) - 200} more")
    if json:
        from dataclasses import asdict

        print_json(asdict(report))
    else:
        say(_summary(report))
    return 3 if report.problems else 0


def _show(wanted: list[Outdated], version: int, *, is_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"paper_id": d.paper_id, "file": d.file_name, "sha256": d.sha256, "verdict": d.verdict, "extractor_version": d.extractor_version}
        for d in wanted
    ]  # fmt: skip
    if is_json:
        print_json({"extractor_version": version, "n_wanted": len(rows), "documents": rows})
        return
    for row in rows:
        print(f"{row['paper_id']}\t{row['file']}\tversion {row['extractor_version'] or 0}, {row['verdict']}")
    say(f"{len(rows)} full texts would be read anew by version {version}")


def _summary(report: Reextraction) -> str:
    parts = [
        f"{n} {words}"
        for n, words in (
            (report.n_same, "with the same text"),
            (report.n_changed, "changed"),
            (report.n_waiting, "changed, served when embedded"),
            (report.n_refused, "without usable text, as before"),
            (len(report.kept), "keep their older text"),
            (len(report.missing), "missing in the store"),
            (len(report.failed), "failed"),
        )
        if n
    ]
    said = f"full texts: {', '.join(parts)}" if parts else "nothing to do"
    if report.n_drafts:
        said += f"; {report.n_drafts} wait for a worker to embed them"
    return said
