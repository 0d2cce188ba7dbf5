"""The default encoder itself, on each CPU backend: the published numbers, tails, company, queries, threads."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from encoders.base import Encoder, check_embeddings
from encoders.canary import find_reference, prove
from encoders.lines import encode_lines
from tests.support import ROOT, shared

pytestmark = [pytest.mark.encoder]

BODY = " ".join(
    f"We measured the {a} of the {b} and mapped it."
    for a in ("drift", "tide", "kiln", "prism", "orbit")
    for b in ("reef", "ridge", "basin", "cortex", "dune", "lens", "larva", "moss", "pollen", "shelf", "gorge")
)
SHORT = ["A note on tides.", "Lichen.", "How do bats find the mouth of a cave at dusk?"]


@pytest.fixture(params=["openvino", "torch"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return request.getfixturevalue(request.param)


@pytest.mark.shared
def test_it_gives_the_published_embeddings(encoder: Encoder):
    with np.load(next(iter(sorted(shared("vectors").glob("scifact-*.npz")))), allow_pickle=False) as shard:
        places = {digest: place for place, digest in enumerate(shard["text_sha256"])}
        vectors = shard["vector"].astype(np.float32)
    texts, wanted = [], []
    with gzip.open(shared("collections", "scifact", "corpus.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            text = "\n\n".join(part.strip() for part in (row["title"], row["text"]) if part.strip())
            place = places.get(hashlib.sha256(text.encode()).hexdigest())
            if place is not None and len(text) < 1200:
                texts.append(text)
                wanted.append(vectors[place] / np.linalg.norm(vectors[place]))
            if len(texts) == 4:
                break
    found = encoder.encode(texts)
    assert np.einsum("ij,ij->i", found, np.stack(wanted)).min() > 0.9999


def test_tails_count_and_company_and_order_do_not(openvino: Encoder):
    one = f"{BODY} The cure was a lens of ice."
    two = f"{BODY} Nothing of this concerns the price of copper in Chile."
    before = openvino.n_windowed
    mixed = check_embeddings(openvino.encode([SHORT[0], one, SHORT[1], two, SHORT[2], ""]), 6)
    assert openvino.n_windowed == before + 2
    assert mixed[1] @ mixed[3] < 0.99995
    assert mixed[0] @ mixed[2] < 0.99
    for place, text in ((0, SHORT[0]), (1, one), (2, SHORT[1]), (4, SHORT[2]), (5, "")):
        assert openvino.encode([text])[0] @ mixed[place] > 0.9999


def test_it_passes_the_shipped_canary(openvino: Encoder):
    reference = find_reference(openvino.spec)
    assert reference is not None
    prove(openvino, reference)


def test_odd_texts_have_embeddings(openvino: Encoder):
    texts = ["", "\x00", "\ud800 lone", "😀" * 30, "a" * 3000, "\n\n\t", "。"]
    check_embeddings(openvino.encode(texts), len(texts))


def test_backends_agree(openvino: Encoder, torch: Encoder):
    texts = [*SHORT, "E = mc²; ∂u/∂t = α∇²u"]
    assert np.einsum("ij,ij->i", openvino.encode(texts), torch.encode(texts)).min() > 0.9999


def test_a_query_is_quick(openvino: Encoder):
    openvino.encode(["warm up"], kind="query")
    best = 9.0
    for _ in range(5):
        started = time.process_time()
        openvino.encode(["does batch normalization reduce internal covariate shift"], kind="query")
        best = min(best, time.process_time() - started)
    assert best < 0.3  # processor time of all threads, about 0.06 s: tests share their machine


def test_threads_may_share_it(openvino: Encoder):
    texts = [f"question number {number} about glaciers" for number in range(8)]
    expected = openvino.encode(texts)
    found: dict[int, np.ndarray] = {}

    def ask(number: int) -> None:
        found[number] = openvino.encode([texts[number]])[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.einsum("ij,ij->i", np.stack([found[n] for n in range(len(texts))]), expected).min() > 0.9999


def test_lines_give_as_many_vectors(openvino: Encoder):
    found = list(encode_lines(openvino, ["one", "", "one"]))
    assert len(found) == 3
    assert np.allclose(found[0], found[2], atol=1e-5)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_prepared_node_starts_soon_small_and_without_torch(openvino: Encoder):
    script = (
        "import sys, time\nstarted = time.process_time()\nfrom encoders.load import load_encoder\n"
        "encoder = load_encoder('all-mpnet-base-v2', device='cpu', backend='openvino')\n"
        "took = time.process_time() - started\n"
        "encoder.encode([('word ' * 480)] * 3)\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(took, peak.split()[1], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    took, kilobytes, has_torch = done.stdout.split()
    assert float(took) < 5  # processor time, about 1 s: tests share their machine
    assert float(kilobytes) < 1.6e6
    assert has_torch == "False"
