"""No silent loss: the word list's quality on real questions, against the figures that were reached before."""

import gzip
import json
import math
import statistics
from pathlib import Path

import pytest

from search_server.filters import Filters
from search_server.words.index import Generation
from search_server.words.layout import IndexRow, Memory
from tests.support import shared

EXPECTED = json.loads((Path(__file__).parent / "quality.json").read_text())


def ndcg(ranking: list[str], judged: dict[str, int]) -> float:
    gain = sum(judged.get(paper, 0) / math.log2(place + 2) for place, paper in enumerate(ranking[:10]))
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(sorted(judged.values(), reverse=True)[:10]))
    return gain / ideal


@pytest.mark.shared
@pytest.mark.parametrize("name", EXPECTED["passage_bm25"])
def test_words_find_what_they_found_before(name, tmp_path):
    from corpus.passages import cut_passages

    folder = shared("collections", name)
    index = Generation.create(tmp_path)
    ids: list[str] = []
    rows: list[IndexRow] = []
    with gzip.open(folder / "corpus.jsonl.gz", "rt") as lines:
        for line in lines:
            paper = json.loads(line)
            ids.append(str(paper["_id"]))
            text = "\n\n".join(t for t in ((paper["title"] or "").strip(), (paper["text"] or "").strip()) if t)
            for cut in cut_passages(text):
                part = text[cut.char_start : cut.char_end]
                rows.append(
                    IndexRow(
                        len(rows) + 1, len(ids), "abstract", cut.char_start, part, paper["title"], "paper", None, None
                    )
                )
    index.replace((), rows)
    index.commit(Memory("i", "s", 1, "m", "1:1:", None, None))
    questions = {str(r["_id"]): r["text"] for r in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    judged: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "dev.tsv").read_text().splitlines()[1:]:
        question, paper, grade = line.split("\t")[:3]
        if int(float(grade)) > 0:
            judged.setdefault(question, {})[paper] = int(float(grade))
    reader = index.reader
    values = []
    for question, grades in judged.items():
        hits = reader.search(reader.ask(questions[question]), Filters(), 20)
        values.append(ndcg(list(dict.fromkeys(ids[hit.paper_pk - 1] for hit in hits)), grades))
    assert statistics.fmean(values) >= EXPECTED["passage_bm25"][name] - EXPECTED["tolerance"]
