"""No silent loss: answers to judged questions with the real encoder, against the figures that were reached before.

`answer_quality.json` is what `scripts/bench quality … --out` wrote; write it again when a change moves it on purpose.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import shared

EXPECTED = json.loads((Path(__file__).parent / "answer_quality.json").read_text())
ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 0.005


@pytest.mark.shared
def test_answers_are_as_good_as_before(home, tmp_path):
    names = list(EXPECTED["collections"])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BRAIN_") or k == "BRAIN_CACHE"}
    env = {**kept, "BRAIN_HOME": str(home)}

    def run(command: str, *words: object, codes: tuple[int, ...] = (0,)) -> None:
        program = Path(sys.executable).with_name(command)
        done = subprocess.run([str(program), *map(str, words)], env=env, check=False, capture_output=True, text=True)
        assert done.returncode in codes, done.stderr

    run("brain", "init")
    for name in names:
        run("brain", "ingest", "--jsonl", shared("collections", name, "corpus.jsonl.gz"), "--prefix", name)
    # A few shards hold zero vectors of empty texts: they are refused and told (3).
    run("brain", "vectors", "import", *(shared("vectors", f"{name}-00000.npz") for name in names), codes=(0, 3))
    out = tmp_path / "quality.json"
    run("python", ROOT / "scripts" / "bench_quality.py", shared("collections"), *names, "--out", out, "--fresh")
    found = json.loads(out.read_text())["collections"]
    for name, was in EXPECTED["collections"].items():
        for how, measures in was["means"].items():
            assert found[name]["means"][how]["nDCG@10"] >= measures["nDCG@10"] - TOLERANCE, (name, how)
