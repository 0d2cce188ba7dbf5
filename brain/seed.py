"""`brain seed …`: seed files and database in step."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from brain.common import Bars, Db, Json, get_database, get_settings, print_json, say


def list_topics(*, db: Db = None, json: Json = False) -> int:
    """List the topics: of the seed files, and of the database."""
    from ingest.seeds import list_seed_files, read_seed_file
    from ingest.topics import list_topics as topics_of

    settings = get_settings()
    rows: dict[str, dict[str, object]] = {}
    for path in list_seed_files(settings.seeds_dir):
        seed = read_seed_file(path)
        name = seed.topic or "_unsorted"
        rows[name] = {
            "topic": name,
            "title": seed.meta.get("title"),
            "file": str(path),
            "n_entries": len(seed.entries),
            "n_papers": 0,
        }
    with get_database(db, settings).connect() as connection:
        for row in topics_of(connection):
            known = rows.setdefault(
                row["name"], {"topic": row["name"], "title": row["title"], "file": None, "n_entries": 0}
            )
            known["n_papers"] = row["n_papers"]
    if json:
        print_json(list(rows.values()))
        return 0
    for row in rows.values():
        print(f"{row['topic']}\t{row['n_papers']} papers\t{row['n_entries']} entries\t{row['file'] or 'no seed file'}")
    return 0


def show(topic: str, /, *, json: Json = False) -> int:
    """Show what a topic's seed file holds."""
    from ingest.seeds import get_seed_file

    seed = get_seed_file(get_settings().seeds_dir, topic)
    if json:
        print_json(
            {"topic": seed.topic, "meta": seed.meta, "papers": seed.entries, "errors": [str(e) for e in seed.errors]}
        )
        return 0
    print(f"{seed.topic}: {seed.meta.get('title') or ''} ({len(seed.entries)} papers, {seed.path})")
    for entry in seed.entries:
        print(f"  {entry.get('id')}\t{entry.get('year') or ''}\t{entry.get('title') or ''}")
    for error in seed.errors:
        say(str(error))
    return 3 if seed.errors else 0


def add(
    topic: str,
    /,
    *ids: Annotated[str, Parameter(help="arXiv id or address, DOI, PMID, PDF file or address, title in quotes.")],
    no_ingest: Annotated[bool, Parameter(negative=(), help="Write the seed file only.")] = False,
    db: Db = None,
) -> int:
    """Put papers into a topic's seed file, then ingest the topic.

    Example: `brain seed add self-improving-rag 2310.11511 10.18653/v1/2020.emnlp-main.550 ~/paper.pdf`.
    """
    from pathlib import Path

    from corpus.errors import InputError, UsageError
    from ingest.pipeline import Ingest, Wanted
    from ingest.seeds import SeedFile, add_entries, find_seed_file, seed_path, write_seed_file
    from ingest.store import Store

    if not topic.strip() or not ids:
        raise UsageError("Name a topic and at least one paper.", mend="Example: brain seed add my-topic 2310.11511")
    settings = get_settings()
    seed = find_seed_file(settings.seeds_dir, topic) or SeedFile(
        seed_path(settings.seeds_dir, topic), topic, {"topic": topic}
    )
    resolved = [str(Path(text).expanduser().absolute()) if Path(text).expanduser().is_file() else text for text in ids]
    try:
        added = add_entries(seed, resolved, settings.seeds_dir.parent)
    except InputError as error:
        raise UsageError(
            f"{error}.", mend="Give an arXiv id or address, a DOI, a PMID, a PDF file or address, or a title in quotes."
        ) from error
    write_seed_file(seed)
    say(f"{seed.path}: {len(added)} new, {len(ids) - len(added)} known already")
    if no_ingest:
        return 0
    database = get_database(db, settings, name="brain ingest")
    with Bars() as bars:
        report = Ingest(database, Store(settings.store_url), settings, bars).run(
            Wanted(topics=[seed.topic or topic], has_searches=False)
        )
    for problem in [*report.problems, *report.notes]:
        say(problem)
    return 3 if report.problems else 0


def export(*, db: Db = None, json: Json = False) -> int:
    """Write every paper of the database into the seed files: with the store they are all that a rebuild needs."""
    from ingest.topics import export_seeds

    settings = get_settings()
    with get_database(db, settings).connect() as connection:
        written = export_seeds(connection, settings.seeds_dir)
    if json:
        print_json(written)
        return 0
    for name, n in sorted(written.items()):
        print(f"{settings.seeds_dir / name}\t{n} papers")
    return 0
