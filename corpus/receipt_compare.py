"""What is missing, changed and new between two receipts, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from corpus.receipt import PARTS, Receipt

Row = Mapping[str, Any]


@dataclass(slots=True)
class Difference:
    """One side of a comparison, named. Passages and embeddings are counted by the paper that they belong to."""

    topics: list[str] = field(default_factory=list)
    papers: list[Any] = field(default_factory=list)
    documents: list[dict[str, Any]] = field(default_factory=list)
    passages: list[dict[str, Any]] = field(default_factory=list)
    embeddings: list[dict[str, Any]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """How many things are named."""
        return sum(len(getattr(self, name)) for name in ("topics", *PARTS, "other"))


@dataclass(slots=True)
class Comparison:
    """The corpus as it is, beside what an older receipt says. `is_named` is false where only the topics could be told."""

    missing: Difference = field(default_factory=Difference)
    changed: Difference = field(default_factory=Difference)
    new: Difference = field(default_factory=Difference)
    is_named: bool = True

    @property
    def is_equal(self) -> bool:
        """Nothing differs."""
        return not (len(self.missing) or len(self.changed) or len(self.new))

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "is_equal": self.is_equal, "is_named": self.is_named,
            "n_missing": len(self.missing), "n_changed": len(self.changed), "n_new": len(self.new),
            "missing": asdict(self.missing), "changed": asdict(self.changed), "new": asdict(self.new),
        }  # fmt: skip


def compare(old: Receipt, now: Receipt) -> Comparison:
    """Set the corpus as it is beside an older receipt."""
    found = Comparison()
    _compare_topics(old, now, found)
    _compare_heads(old, now, found)
    if old.papers is None or now.papers is None:
        found.is_named = False
        _compare_counts(old, now, found)
        return found
    for paper_id, before in old.papers.items():
        after = now.papers.get(paper_id)
        if after is None:
            found.missing.papers.append(paper_id)
            _lost_with_paper(before, found)
        else:
            _compare_paper(paper_id, before, after, found)
    found.new.papers += [paper_id for paper_id in now.papers if paper_id not in old.papers]
    return found


def _lost_with_paper(before: Row, found: Comparison) -> None:
    paper_id = before["paper_id"]
    found.missing.documents += [_file(paper_id, document) for document in before["documents"]]
    for part in ("passages", "embeddings"):
        if n := before[f"n_{part}"]:
            getattr(found.missing, part).append({"paper_id": paper_id, "n": n})


def _compare_paper(paper_id: str, before: Row, after: Row, found: Comparison) -> None:
    if differing := [name for name in ("words", "facts", "identifiers", "topics") if before[name] != after[name]]:
        found.changed.papers.append({"paper_id": paper_id, "what": differing})
    old_files = {document[0]: document for document in before["documents"]}
    new_files = {document[0]: document for document in after["documents"]}
    found.missing.documents += [_file(paper_id, d) for sha256, d in old_files.items() if sha256 not in new_files]
    found.new.documents += [_file(paper_id, d) for sha256, d in new_files.items() if sha256 not in old_files]
    found.changed.documents += [
        _file(paper_id, d) for sha256, d in new_files.items() if sha256 in old_files and d[1] != old_files[sha256][1]
    ]
    for part in ("passages", "embeddings"):
        n_before, n_after = before[f"n_{part}"], after[f"n_{part}"]
        row = {"paper_id": paper_id, "n_before": n_before, "n_now": n_after}
        if n_after < n_before:
            getattr(found.missing, part).append({**row, "n": n_before - n_after})
        elif before[part] != after[part]:
            side = found.new if n_before < n_after else found.changed
            getattr(side, part).append({**row, "n": (n_after - n_before) or n_after})


def _file(paper_id: str, document: list[Any]) -> dict[str, Any]:
    return {"paper_id": paper_id, "sha256": document[0], "file_name": document[2] if len(document) > 2 else None}


def _compare_topics(old: Receipt, now: Receipt, found: Comparison) -> None:
    before, after = old.head.get("topics") or {}, now.head.get("topics") or {}
    found.missing.topics += [name for name in before if name and name not in after]
    found.new.topics += [name for name in after if name and name not in before]
    found.changed.topics += [
        name for name in before if name and name in after and before[name].get("meta") != after[name].get("meta")
    ]


def _compare_heads(old: Receipt, now: Receipt, found: Comparison) -> None:
    for name, value in (old.head.get("settings") or {}).items():
        if name not in now.head["settings"]:
            found.missing.other.append(f"setting {name}")
        elif now.head["settings"][name] != value:
            found.changed.other.append(f"setting {name}")
    found.new.other += [
        f"setting {name}" for name in now.head["settings"] if name not in (old.head.get("settings") or {})
    ]
    before, after = old.head.get("apart") or [], now.head["apart"]
    found.missing.other += [f"merge undone {pair}" for pair in before if pair not in after]
    found.new.other += [f"merge undone {pair}" for pair in after if pair not in before]
    if old.head.get("encoder") != now.head["encoder"]:
        (found.missing if now.head["encoder"] is None else found.changed).other.append("encoder")
    before, after = old.head.get("citations") or {"n": 0, "sha256": ""}, now.head["citations"]
    if before["sha256"] != after["sha256"]:
        side = found.missing if after["n"] < before["n"] else found.changed if after["n"] == before["n"] else found.new
        side.other.append(f"citation links: {before['n']} before, {after['n']} now")


def _compare_counts(old: Receipt, now: Receipt, found: Comparison) -> None:
    """Without the detail file only topics can be told apart."""
    before, after = old.head.get("topics") or {}, now.head.get("topics") or {}
    empty = {part: {"n": 0, "sha256": ""} for part in PARTS}
    for topic in sorted({*before, *after}):
        for part in PARTS:
            a, b = before.get(topic, empty)[part], after.get(topic, empty)[part]
            if (a["n"], a["sha256"]) != (b["n"], b["sha256"]) and (a["n"] or b["n"]):
                side = found.missing if b["n"] < a["n"] else found.changed if a["n"] == b["n"] else found.new
                side.other.append(f"{part} of {topic or 'no topic'}: {a['n']} before, {b['n']} now")
