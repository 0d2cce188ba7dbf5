"""`brain encoder …`: encoders side by side, one of which serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json, say

Which = Annotated[str, Parameter(help="An encoder's number or name, as `brain encoder list` shows them.")]


def list_encoders(*, db: Db = None, json: Json = False) -> int:
    """List the encoders of the database: which serves, which is filled and how far."""
    from corpus import generations

    with get_database(db).connect(autocommit=True) as connection:
        rows = [
            (row, generations.filling_of(connection, row.encoder_id)) for row in generations.list_encoders(connection)
        ]
    found = [
        {
            "encoder_id": row.encoder_id, "name": row.name, "state": row.state, "source": row.spec.get("source"),
            "weights_sha256": row.weights_sha256, "max_tokens": row.max_tokens, "prompts": row.prompts,
            "has_canary": row.canary is not None, "n_papers": at.n_papers, "n_passages": at.n_passages,
            "n_missing_papers": at.n_missing_papers, "n_missing_passages": at.n_missing_passages, "n_failed": at.n_failed,
            "has_index": at.has_index,
        }
        for row, at in rows
    ]  # fmt: skip
    if json:
        print_json(found)
    for each in [] if json else found:
        missing = each["n_missing_papers"] + each["n_missing_passages"]
        rest = "whole" if not missing else f"{missing} missing"
        print(
            f"{each['encoder_id']:>3}  {each['state']:<8} {each['name']:<28} {each['n_papers']} papers, {each['n_passages']} passages, {rest}"
        )
    return 0


def add(
    name: Annotated[str, Parameter(help="A name, a folder, ollama:MODEL@URL or openai:MODEL@URL.")], /, *,
    device: Annotated[str, Parameter(help="Where its reference embeddings are made.")] = "auto",
    db: Db = None, json: Json = False,
) -> int:  # fmt: skip
    """Add an encoder beside the one that serves. It must agree with itself alone and in a crowd before it is taken.

    Next: `brain encoder fill`, let the workers end, `brain encoder compare`, `brain encoder activate`.
    """
    from corpus.encoders import register_encoder
    from encoders.canary import find_reference, make_reference, prove
    from encoders.load import load_encoder, resolve_spec

    settings = get_settings()
    database = get_database(db, settings)
    spec = resolve_spec(name, cache=settings.cache_dir)
    encoder = load_encoder(spec, device=device, cache=settings.cache_dir)
    try:
        reference = find_reference(spec)
        if reference is None:
            reference = make_reference(encoder)
        else:
            prove(encoder, reference)
    finally:
        encoder.close()
    with database.connect() as connection:
        row = register_encoder(connection, spec, activate=False, canary=reference)
    if json:
        print_json({"encoder_id": row.encoder_id, "name": row.name, "state": row.state})
    else:
        say(f"encoder {row.encoder_id} ({row.name}) is {row.state}; fill it with `brain encoder fill {row.encoder_id}`")
    return 0


def fill(which: Which, /, *, db: Db = None, json: Json = False) -> int:
    """Queue everything for an encoder that does not serve yet; the workers do it when nothing else waits."""
    from corpus import generations

    with get_database(db).connect(autocommit=True) as connection:
        row = generations.get_encoder(connection, which)
        n_jobs = generations.fill(connection, row.encoder_id)
    if json:
        print_json({"encoder_id": row.encoder_id, "n_jobs": n_jobs})
    else:
        say(f"{n_jobs} jobs are queued for encoder {row.encoder_id} ({row.name})")
    return 0


def compare(
    which: Which, /, *,
    collection: Annotated[Path | None, Parameter(help="A test collection: queries.jsonl and qrels/NAME.tsv.")] = None,
    prefix: Annotated[str | None, Parameter(help="The prefix its papers were loaded with; the folder's name without it.")] = None,
    qrels: Annotated[str, Parameter(help="Which judgments of the collection.")] = "dev",
    limit: Annotated[int, Parameter(help="At most so many queries.")] = 200,
    db: Db = None, json: Json = False,
) -> int:  # fmt: skip
    """Show an encoder and the one that serves on the same questions, both by exact search.

    Without a collection the questions are the titles of a fixed sample of papers.
    """
    from brain.encoder_compare import compare_encoders, read_collection, sample_titles
    from corpus import generations
    from corpus.encoders import get_active

    settings = get_settings()
    with get_database(db, settings).connect(autocommit=True) as connection:
        rows = [get_active(connection), generations.get_encoder(connection, which)]
        if collection is not None:
            questions = read_collection(collection, prefix or collection.name, qrels)[:limit]
        else:
            questions = sample_titles(connection, limit)
        found: list[dict[str, Any]] = compare_encoders(connection, rows, questions, settings.cache_dir)
    if json:
        print_json(found)
        return 0
    print(f"{len(questions)} questions, exact search over papers and passages")
    for each in found:
        print(
            f"  {each['encoder_id']} {each['name']:<28} nDCG@10 {each['ndcg_10']:.4f}  MRR@10 {each['mrr_10']:.4f}  "
            f"recall@10 {each['recall_10']:.4f}  same first ten as the active one {each['overlap_10']:.3f}"
        )
    return 0


def activate(
    which: Which, /, *,
    force: Annotated[bool, Parameter(negative=(), help="Even though embeddings are missing.")] = False,
    wait: Annotated[float, Parameter(help="Seconds to wait for search servers to load the encoder.")] = 60.0,
    db: Db = None, json: Json = False,
) -> int:  # fmt: skip
    """Build the encoder's index, wait for the search servers to load it, and let it serve. No question fails meanwhile."""
    from corpus import generations

    with get_database(db).connect(autocommit=True) as connection:
        row = generations.get_encoder(connection, which)
        late = generations.activate(
            connection, row.encoder_id, is_forced=force, wait_s=wait, progress=lambda what, *_: say(what)
        )
    if json:
        print_json({"encoder_id": row.encoder_id, "name": row.name, "late": late})
        return 0
    say(f"encoder {row.encoder_id} ({row.name}) serves")
    if late:
        say(f"these servers answer with the old encoder until they have loaded it: {', '.join(late)}")
    return 0


def retire(which: Which, /, *, db: Db = None, json: Json = False) -> int:
    """Free the space of an encoder that does not serve. It can be filled again later."""
    from corpus import generations

    with get_database(db).connect(autocommit=True) as connection:
        row = generations.get_encoder(connection, which)
        freed = generations.retire(connection, row.encoder_id)
    if json:
        print_json({"encoder_id": row.encoder_id, "n_bytes": freed})
    else:
        say(f"encoder {row.encoder_id} ({row.name}) is retired; {freed / 2**20:.0f} MB are free")
    return 0
