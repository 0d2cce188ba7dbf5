"""Works into the database, merged into papers: one transaction a batch, whatever order they come in.

Of each paper that a batch touches every work is merged again, so that the outcome is that of all works together. What
was stated by hand stays; a paper's key never changes; two papers that turn out to be one become the older one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from corpus.errors import InputError
from corpus.ids import KINDS, parse_identifier
from corpus.texts import storable
from ingest.acquire.absorb import absorb
from ingest.acquire.facts import ANCHOR, Stored, anchors, best_of, make_facts, make_record, work_from_json
from ingest.best import BestFields
from ingest.merge import MergedPaper, identifiers_of, linked_identifiers, merge, title_key
from ingest.papers import PRIORITY_BACKLOG, PRIORITY_NEW, lock_papers, write_papers
from ingest.records import PaperRecord
from ingest.work import Work
from sql import files

SQL = files.queries("works")
_SINGLE = 64


@dataclass(slots=True)
class WorksStored:
    """What became of a batch. `pks` are the papers of its works, `n_new` new papers by the source that gave them."""

    pks: list[int] = field(default_factory=list)
    new_pks: set[int] = field(default_factory=set)
    n_new: Counter[str] = field(default_factory=Counter)
    n_changed: int = 0
    n_unkeyed: int = 0


@dataclass(slots=True)
class _Plan:
    """One paper as it will be."""

    merged: MergedPaper
    best: BestFields
    record: PaperRecord
    provenance: dict[str, str]
    stored: list[Stored]


def store_works(
    connection: Connection[Any], works: Sequence[Work], *, topic: str | None = None, answer_id: int | None = None
) -> WorksStored:
    """Write works and the papers that they are merged into, all or nothing. Idempotent.

    With a topic the papers belong to it. Papers loaded with a prefix are never touched.
    """
    rows = {row["key"]: row for row in (_row(work) for work in works) if row is not None}
    done = WorksStored()
    if not rows:
        return done
    with connection.transaction():
        lock_papers(connection)
        _upsert(connection, list(rows.values()), answer_id)
        nodes = sorted({node for row in rows.values() for node in row["nodes"]})
        keys = sorted({row["title_key"] for row in rows.values() if row["title_key"]})
        pk_of = merge_again(connection, nodes, keys, done)
        found = [(pk_of[key], key[0]) for key in rows if key in pk_of]
        done.pks = sorted({pk for pk, _ in found})
        for pk in done.pks:
            if pk in done.new_pks:
                done.n_new[min(source for owner, source in found if owner == pk)] += 1
        if topic is not None and done.pks:
            _add_to_topic(connection, topic, found, done.new_pks)
    return done


def merge_again(
    connection: Connection[Any], nodes: Sequence[str], title_keys: Sequence[str], done: WorksStored
) -> dict[tuple[str, str], int]:
    """Merge anew what has one of these identifiers or titles; gives the paper of each (source, source id)."""
    pks = [row[0] for row in connection.execute(SQL["find_touched"], {"nodes": nodes, "title_keys": title_keys})]
    with connection.cursor(row_factory=class_row(Stored)) as cursor:
        stored = {paper.paper_pk: paper for paper in cursor.execute(SQL["select_papers"], [pks]).fetchall()}
    loaded = connection.execute(
        SQL["select_works"], {"pks": pks, "nodes": list(nodes), "title_keys": list(title_keys)}
    ).fetchall()
    ids: dict[str, list[int]] = defaultdict(list)
    works: list[Work] = []
    for work_id, _, payload in loaded:
        work = work_from_json(payload)
        ids[repr(work)].append(work_id)
        works.append(work)
    works += [anchor for paper in stored.values() for anchor in anchors(paper)]
    apart = [frozenset(pair) for pair in connection.execute(SQL["select_apart"]).fetchall()]
    plans = _plans(connection, merge(works, apart=apart), stored, done)
    return _write(connection, plans, ids, done)


def _row(work: Work) -> dict[str, Any] | None:
    nodes = sorted(identifiers_of(work))
    own = title_key(work)
    if not nodes and not work.title:
        return None
    source_id = work.source_id or (nodes[0] if nodes else None)
    if source_id is None:
        source_id = "title:" + hashlib.sha256((work.title or "").encode("utf-8", "replace")).hexdigest()[:32]
    source_id = storable(source_id)[0]
    payload = json.dumps(work.to_json(), ensure_ascii=False, allow_nan=False)
    return {
        "key": (work.source, source_id),
        "payload": storable(payload)[0].replace("\\u0000", "\ufffd"),
        "nodes": [storable(node)[0] for node in sorted({*nodes, *linked_identifiers(work)})],
        "title_key": storable(own)[0] if own else None,
    }


def _upsert(connection: Connection[Any], rows: Sequence[dict[str, Any]], answer_id: int | None) -> None:
    rows = sorted(rows, key=lambda row: row["key"])
    connection.execute(
        SQL["upsert_works"],
        {
            "answer_id": answer_id, "sources": [row["key"][0] for row in rows], "source_ids": [row["key"][1] for row in rows],
            "payloads": [row["payload"] for row in rows], "nodes": [json.dumps(row["nodes"]) for row in rows],
            "title_keys": [row["title_key"] for row in rows],
        },
    )  # fmt: skip


def _plans(
    connection: Connection[Any], groups: Sequence[MergedPaper], stored: dict[int, Stored], done: WorksStored
) -> list[_Plan]:
    """What is to be written; papers that have become one are made one here."""
    plans: list[_Plan] = []
    fresh = [group for group in groups if not _pks_of(group)]
    taken = _used_keys(connection, (key for group in fresh for key in _keys_of(group)))
    for group in groups:
        real = [work for work in group.works if work.source != ANCHOR]
        pks = [pk for pk in _pks_of(group) if pk in stored]
        if not real:
            continue
        papers = [stored[pk] for pk in pks]
        key = papers[0].paper_id if papers else next((key for key in _keys_of(group) if key not in taken), None)
        if key is None:
            done.n_unkeyed += 1
            continue
        taken.add(key)
        for other in papers[1:]:
            absorb(connection, other.paper_pk, papers[0].paper_pk)
        best = best_of(real)
        record, provenance = make_record(group, best, key, papers)
        plans.append(_Plan(group, best, record, provenance, papers))
    return plans


def _pks_of(group: MergedPaper) -> list[int]:
    return sorted({int(work.source_id) for work in group.works if work.source == ANCHOR and work.source_id})


def _keys_of(group: MergedPaper) -> list[str]:
    order = {kind: n for n, kind in enumerate(KINDS)}
    own = [f"{kind}:{value}" for kind, value in group.identifiers.items() if kind in order]
    return sorted(own, key=lambda key: order[key.partition(":")[0]]) if group.key else []


def _used_keys(connection: Connection[Any], keys: Iterable[str]) -> set[str]:
    return {row[0] for row in connection.execute(SQL["list_used_keys"], [sorted(set(keys))])}


def _write(
    connection: Connection[Any], plans: Sequence[_Plan], ids: dict[str, list[int]], done: WorksStored
) -> dict[tuple[str, str], int]:
    if not plans:
        return {}
    n_fresh = sum(not plan.stored for plan in plans)
    priority = PRIORITY_NEW if max(n_fresh, 1) <= _SINGLE else PRIORITY_BACKLOG
    written = write_papers(connection, [plan.record for plan in plans], priority=priority, is_exact=True)
    done.n_changed += written.n_changed
    pk_of = dict(connection.execute(SQL["find_pks"], [[plan.record.paper_id for plan in plans]]).fetchall())
    today = datetime.now(UTC).date()
    facts = [make_facts(plan.best, today, plan.provenance) for plan in plans]
    pks = [pk_of[plan.record.paper_id] for plan in plans]
    connection.execute(SQL["set_facts"], {"pks": pks, **{name: [fact[name] for fact in facts] for name in facts[0]}})
    _write_aliases(connection, plans, pks)
    owners: dict[tuple[str, str], int] = {}
    links: list[tuple[int, int]] = []
    for plan, pk in zip(plans, pks, strict=True):
        if not plan.stored:
            done.new_pks.add(pk)
        for work in plan.merged.works:
            if work.source != ANCHOR:
                links += [(work_id, pk) for work_id in ids[repr(work)]]
                row = _row(work)
                if row is not None:
                    owners[row["key"]] = pk
    values = {"work_ids": [link[0] for link in links], "pks": [link[1] for link in links]}
    connection.execute(SQL["set_works_paper"], values)
    _write_citations(connection, plans, pks)
    return owners


def _write_aliases(connection: Connection[Any], plans: Sequence[_Plan], pks: Sequence[int]) -> None:
    rows = [
        (alias.partition(":")[0], storable(alias.partition(":")[2])[0], pk) for plan, pk in zip(plans, pks, strict=True) for alias in plan.merged.aliases
        if not alias.startswith("file:")
    ]  # fmt: skip
    values = {"kinds": [r[0] for r in rows], "values": [r[1] for r in rows], "pks": [r[2] for r in rows]}
    connection.execute(SQL["insert_identifiers"], values)


def _write_citations(connection: Connection[Any], plans: Sequence[_Plan], pks: Sequence[int]) -> None:
    cited: list[tuple[int, str, str]] = []
    for plan, pk in zip(plans, pks, strict=True):
        source = next((w.source for w in plan.merged.works if w.references), "")
        known = {found.key for text in plan.best.references if (found := parse_identifier(text)) is not None}
        cited += [(pk, key, source) for key in sorted(known)]
    if cited:
        values = {"pks": [c[0] for c in cited], "cited": [c[1] for c in cited], "sources": [c[2] for c in cited]}
        connection.execute(SQL["insert_references"], values)
    nodes = [(pk, alias) for plan, pk in zip(plans, pks, strict=True) for alias in plan.merged.aliases]
    if nodes:
        connection.execute(SQL["insert_citing"], {"pks": [n[0] for n in nodes], "nodes": [n[1] for n in nodes]})


def _add_to_topic(
    connection: Connection[Any], topic: str, found: Sequence[tuple[int, str]], new_pks: Collection[int]
) -> None:
    row = connection.execute(SQL["find_topic"], [topic]).fetchone()
    if row is None:
        raise InputError(f"There is no topic {topic!r} in the database.")
    pairs = sorted(set(found))
    connection.execute(SQL["add_to_topic"], {"topic_id": row[0], "pks": sorted({pk for pk, _ in pairs})})
    connection.execute(
        SQL["insert_found"],
        {
            "topic_id": row[0], "pks": [pk for pk, _ in pairs], "sources": [source for _, source in pairs],
            "are_new": [pk in new_pks for pk, _ in pairs],
        },
    )  # fmt: skip
