"""`brain rebuild`: everything back after the loss of the database host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from brain.common import Db, Json, get_settings, print_json, say

if TYPE_CHECKING:
    from corpus.receipt_compare import Comparison


def rebuild(
    *,
    seeds: Annotated[Path | None, Parameter(help="Folder of the seed files; else BRAIN_SEEDS, else seeds.")] = None,
    store: Annotated[
        str | None, Parameter(help="Store of full texts: a folder or an fsspec URL; else BRAIN_STORE.")
    ] = None,
    vectors: Annotated[Path | None, Parameter(help="Folder of vector shards (`brain vectors export`).")] = None,
    offline: Annotated[
        bool, Parameter(negative=(), help="Ask no source for full texts that the store has not.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Bring the corpus back into an empty database, from seed files, store and vector shards.

    Searchable by words from the first minute. May be broken off and run again: it goes on where it was. What has no
    embedding in the shards is queued for the workers. Ends with the comparison beside the receipt of the seed files.
    Exit 3 when something is missing; it is named.
    """
    from dataclasses import asdict

    from brain.rebuild_progress import Stages
    from brain.rebuild_steps import run
    from corpus.errors import UsageError
    from ingest.rebuild import is_seed_folder

    settings = get_settings()
    folder = (seeds or settings.seeds_dir).expanduser().absolute()
    if not is_seed_folder(folder):
        raise UsageError(f"There are no seed files in {folder}.", mend="Name their folder with --seeds DIR.")
    if vectors is not None and not vectors.is_dir():
        raise UsageError(f"There is no folder {vectors} of vector shards.")
    settings = settings.model_copy(update={"seeds": folder, "store": store or settings.store_url})
    with Stages() as stages:
        outcome = run(settings, db=db, vectors=vectors, is_offline=offline, progress=stages)
    for problem in outcome.report.problems[:200]:
        say(problem)
    if json:
        print_json(
            {
                **asdict(outcome.report), "n_queued": outcome.n_queued, "n_imported": outcome.n_imported,
                "counts": outcome.counts, "comparison": outcome.comparison.to_json() if outcome.comparison else None,
            }
        )  # fmt: skip
    else:
        _tell(outcome.counts, outcome.comparison, outcome.n_queued)
    missing = outcome.comparison is not None and len(outcome.comparison.missing) > 0
    return 3 if missing or outcome.report.problems or (outcome.comparison is None and outcome.report.absent) else 0


def _tell(counts: dict[str, int], comparison: Comparison | None, n_queued: int) -> None:
    from brain.receipt import print_comparison

    print(", ".join(f"{n} {part}" for part, n in counts.items()))
    if n_queued:
        say(f"{n_queued} texts wait for an embedding: run `embed-worker --drain`, then `brain receipt --compare SEEDS`")
    if comparison is None:
        say("there is no receipt beside the seed files to compare with; `brain receipt` writes one")
    else:
        print_comparison(comparison)
