"""`brain ingest`: bring papers in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from brain.common import Bars, Db, Json, get_database, get_settings, print_json, say


def ingest(
    *topics: Annotated[
        str, Parameter(help="Topics whose seed files are worked through; with no option at all, every topic.")
    ],
    pdfs: Annotated[list[Path] | None, Parameter(help="A folder whose *.pdf are taken in, or one file.")] = None,
    files: Annotated[list[Path] | None, Parameter(help="As --pdfs, also .md .html .txt .xml.")] = None,
    jsonl: Annotated[
        list[Path] | None, Parameter(help="Papers, one JSON object a line (also .gz): _id, title, text, metadata.")
    ] = None,
    prefix: Annotated[
        str | None, Parameter(help="Keep each JSONL paper under the key PREFIX:_id, never merged with another.")
    ] = None,
    limit: Annotated[int | None, Parameter(help="At most so many papers or files.")] = None,
    no_pdf: Annotated[bool, Parameter(negative=(), help="Papers only; fetch and read no full texts.")] = False,
    ocr: Annotated[bool, Parameter(negative=(), help="Read scanned pages by OCR (needs the extra).")] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Bring papers in. Every part may be run again: what is there already is not done twice.

    Examples: `brain ingest --pdfs ~/papers` · `brain ingest --jsonl corpus.jsonl.gz --prefix scifact` ·
    `brain ingest self-improving-rag`. Exit 3 when something could not be used; it is named.
    """
    from dataclasses import asdict

    from corpus.errors import UsageError
    from ingest.pipeline import Ingest, Wanted
    from ingest.store import Store

    if prefix is not None and not jsonl:
        raise UsageError("--prefix belongs to --jsonl FILE.")
    if prefix is not None and (not prefix or ":" in prefix or not prefix.isprintable() or prefix != prefix.strip()):
        raise UsageError(f"--prefix {prefix!r} cannot be used.", mend="Take letters, digits, dash, dot or underscore.")
    if limit is not None and limit < 0:
        raise UsageError("--limit must not be negative.")
    settings = get_settings()
    database = get_database(db, settings, name="brain ingest")
    with Bars() as bars:
        run = Ingest(database, Store(settings.store_url), settings, bars)
        report = run.run(
            Wanted(
                topics=topics, is_all_topics=not (topics or pdfs or files or jsonl), pdfs=pdfs or (), files=files or (),
                jsonl=jsonl or (), prefix=prefix, limit=limit, has_full_texts=not no_pdf, is_ocr=ocr,
            )
        )  # fmt: skip
    for problem in report.problems[:200]:
        say(problem)
    if len(report.problems) > 200:
        say(f"… and {len(report.problems) - 200} more")
    for note in report.notes[:50]:
        say(note)
    if json:
        print_json(asdict(report))
    else:
        say(_summary(report))
    return 3 if report.problems else 0


def _summary(report) -> str:  # noqa: ANN001 - ingest.pipeline.Report
    papers = report.papers
    parts = []
    if papers.n_new or papers.n_changed or papers.n_unchanged:
        parts.append(f"papers: {papers.n_new} new, {papers.n_changed} changed, {papers.n_unchanged} as before")
    if report.n_files:
        parts.append(f"files: {report.n_files}, of them {report.n_new_files} new")
    if report.n_found:
        parts.append(f"sources: {report.n_found} works, {report.n_found_new} new papers by search")
    if report.n_fetched or report.n_later or report.n_absent:
        parts.append(
            f"full texts: {report.n_fetched} fetched, {report.n_later} asked for again later, {report.n_absent} not open anywhere"
        )
    if report.verdicts:
        parts.append(
            "read: " + ", ".join(f"{n} {name}" for name, n in sorted(report.verdicts.items(), key=lambda v: -v[1]))
        )
    if report.n_replaced_chars:
        parts.append(f"{report.n_replaced_chars} characters that no database can hold were replaced")
    if report.problems:
        parts.append(f"{len(report.problems)} problems, named above")
    return "; ".join(parts) or "nothing to do"
