"""`brain receipt`: what the corpus is, and what is missing beside an older receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from brain.common import Db, Json, get_database, get_settings, print_json, say

if TYPE_CHECKING:
    from corpus.receipt_compare import Comparison

_SHOWN = 50


def receipt(
    *,
    out: Annotated[
        Path | None, Parameter(help="Folder that the receipt is written into; the folder of the seed files by default.")
    ] = None,
    compare: Annotated[
        Path | None, Parameter(help="An older receipt, or its folder: name what is missing, changed and new since.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Write what the corpus is: papers, files, passages and embeddings with their hashes, per topic and in all.

    With --compare nothing is written unless --out asks for it. Exit 3 when something is missing or changed.
    """
    from corpus.receipt import counts, read, take, write
    from corpus.receipt_compare import compare as set_beside

    settings = get_settings()
    old = read(compare) if compare is not None else None
    with get_database(db, settings).connect(autocommit=True) as connection:
        now = take(connection)
    paths = write(now, out or settings.seeds_dir) if out is not None or compare is None else ()
    if old is None:
        if json:
            print_json({**now.head, "files": [str(path) for path in paths]})
        else:
            print(", ".join(f"{n} {part}" for part, n in counts(now).items()))
            say("\n".join(str(path) for path in paths))
        return 0
    found = set_beside(old, now)
    if json:
        print_json({**found.to_json(), "before": old.head["whole"], "now": now.head["whole"]})
    else:
        print_comparison(found)
    return 3 if len(found.missing) or len(found.changed) else 0


def print_comparison(found: Comparison) -> None:
    """Name what differs, for people."""
    if found.is_equal:
        print("equal: nothing is missing, changed or new")
        return
    if not found.is_named:
        say("the older receipt's detail file is not there: only topics can be told apart")
    for side, difference in (("missing", found.missing), ("changed", found.changed), ("new", found.new)):
        lines = [f"topic {name}" for name in difference.topics]
        lines += [f"paper {_paper(row)}" for row in difference.papers]
        lines += [f"full text {_document(row)}" for row in difference.documents]
        lines += [f"{row['n']} passages of {row['paper_id']}" for row in difference.passages]
        lines += [f"{row['n']} embeddings of {row['paper_id']}" for row in difference.embeddings]
        lines += difference.other
        for line in lines[:_SHOWN]:
            print(f"{side}: {line}")
        if len(lines) > _SHOWN:
            print(f"{side}: … and {len(lines) - _SHOWN} more (--json names them all)")


def _paper(row: Any) -> str:
    return row if isinstance(row, str) else f"{row['paper_id']} ({', '.join(row['what'])})"


def _document(row: dict[str, Any]) -> str:
    return f"{row['file_name'] or row['sha256']} of {row['paper_id']}"
