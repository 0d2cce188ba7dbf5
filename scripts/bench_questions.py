"""Judged questions, and their embeddings kept in a file: what the benches of search ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from encoders.base import EncoderSpec, Kind
from encoders.load import load_encoder


class Remembered:
    """An encoder that keeps the questions' embeddings in a file and loads the real one only for new questions."""

    backend = "remembered"
    device = "-"
    n_windowed = 0

    def __init__(self, source: str, spec: EncoderSpec, file: Path, is_fresh: bool) -> None:
        self.spec = spec
        self._source = source
        self._file = file
        self._real: Any = None
        self._known: dict[str, np.ndarray] = {}
        if file.exists() and not is_fresh:
            kept = np.load(file)
            self._known = dict(zip(kept["text"].tolist(), kept["vector"], strict=True))

    @classmethod
    def of(cls, source: str, cache: Path, *, is_fresh: bool = False) -> Remembered:
        """The encoder that a user names, with what was asked of it before, or, fresh, with nothing of it."""
        from encoders.load import resolve_spec

        spec = resolve_spec(source)
        return cls(source, spec, cache / "bench" / f"questions-{spec.weights_sha256[:12]}.npz", is_fresh)

    def encode(self, texts: Any, *, kind: Kind = "query") -> np.ndarray:
        """Embeddings of questions, one row each."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._real = self._real or load_encoder(self._source)
            for text, vector in zip(new, self._real.encode(new, kind=kind), strict=True):
                self._known[text] = vector
        return np.stack([self._known[text] for text in texts])

    def save(self) -> None:
        """Keep what was asked."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(self._file, text=np.array(list(self._known)), vector=np.stack(list(self._known.values())))

    def close(self) -> None:
        """Nothing is held."""


def read_questions(folder: Path, qrels: str) -> tuple[dict[str, str], dict[str, dict[str, int]], dict[str, str]]:
    """Questions by id, judgments by question, and each question's own paper where it has one."""
    judged: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / f"{qrels}.tsv").read_text().splitlines()[1:]:
        question, paper, grade = line.split("\t")[:3]
        if int(float(grade)) > 0:
            judged.setdefault(question, {})[paper] = int(float(grade))
    questions: dict[str, str] = {}
    own: dict[str, str] = {}
    for line in (folder / "queries.jsonl").read_text().splitlines():
        row = json.loads(line)
        about = row.get("metadata") or {}
        key = str(row["_id"])
        if key not in judged:
            continue
        title = about.get("paper_title")
        questions[key] = f"{title} {row['text']}" if title else row["text"]
        if not title and about.get("paper_id"):
            own[key] = str(about["paper_id"])
    return questions, judged, own
