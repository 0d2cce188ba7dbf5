"""`brain harvest`: the day's new preprints for the topics that ask for them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json, say


def harvest(
    *topics: Annotated[str, Parameter(help="Topics; without one, every topic that asks for a harvest.")],
    since: Annotated[str, Parameter(help="Day from which on records count, as 2026-11-29.")],
    db: Db = None,
    json: Json = False,
) -> int:
    """Take arXiv's new and changed records by OAI-PMH; a topic asks with `"harvest": true` in its seed file's first line.

    With `"harvest": {"servers": ["arxiv", "biorxiv", "medrxiv"]}` bioRxiv's and medRxiv's new preprints are read as well.
    What fits a topic's queries becomes papers of it; `brain ingest TOPIC` then gets their full texts. Exit 3 when a part
    could not be read.
    """
    import os
    from dataclasses import asdict
    from datetime import date

    from corpus.errors import UsageError
    from ingest.acquire.harvest import harvest as run
    from ingest.acquire.harvest import read_wish
    from ingest.fetching import http_settings
    from ingest.http.clock import SystemClock
    from ingest.http.fetcher import Fetcher
    from ingest.seeds import get_seed_file, list_seed_files, read_seed_file
    from ingest.sources import make_sources
    from ingest.topics import write_topic

    try:
        day = date.fromisoformat(since)
    except ValueError as error:
        raise UsageError(f"--since {since!r} is no day.", mend="Write it as 2026-11-29.") from error
    settings = get_settings()
    folder = settings.seeds_dir
    seeds = [get_seed_file(folder, name) for name in topics] or [read_seed_file(p) for p in list_seed_files(folder)]
    wishes = {wish.topic: wish for seed in seeds if (wish := read_wish(seed)) is not None}
    if not wishes:
        raise UsageError(
            "No topic asks for a harvest.",
            mend='Write "harvest": true and "queries" into the first line of its seed file.',
        )
    database = get_database(db, settings, name="brain harvest")
    with database.connect() as connection:
        for seed in seeds:
            if seed.topic in wishes:
                write_topic(connection, seed)
    done = run(
        database, list(wishes.values()), day, sources=make_sources(os.environ), http=http_settings(settings),
        make_fetcher=Fetcher, clock=SystemClock(),
    )  # fmt: skip
    for problem in done.problems:
        say(problem)
    if json:
        print_json(asdict(done))
    else:
        say(
            f"{done.n_read} records read; "
            + ", ".join(f"{name}: {n}" for name, n in done.n_taken.items())
            + f"; {done.n_new} new papers"
        )
    return 3 if done.problems else 0
