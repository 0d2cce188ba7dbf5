#!/usr/bin/env python3
"""Measure the real encoder on this machine's CPU: OpenVINO against plain sentence-transformers on the same texts.

    scripts/bench_encode.py [FILE] [--texts N] [--rounds N] [--json]

FILE is text or JSON lines with `text` (also .gz); without one, the project's own documents are cut into passages. The
three are timed in turn, so that a busy machine slows all of them, and of each the best round counts:

* plain: `SentenceTransformer.encode(list)` with a limit of 512 tokens
* openvino: this project's encoder
* product: float32 matrix products of 2048³ by torch with as many threads, the best of five

`share` is the encoder's rate of useful operations (a text of t tokens: 2 × 85 M × t + 4 × 12 × 768 × t², padding not
counted) over the product's rate. The figures with `busy` are by processor time: what an otherwise free machine gives.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PASSAGE = 1_800
STEP = 1_600


def read_texts(file: Path | None, n: int) -> list[str]:
    """Take up to n passages of 1,800 characters from a file, or from the project's documents."""
    if file is None:
        whole = "\n\n".join(
            path.read_text("utf-8") for path in sorted(ROOT.glob("**/*.md")) if ".venv" not in path.parts
        )
    else:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        lines = raw.decode("utf-8", "replace").split("\n")
        if ".jsonl" in file.name:
            whole = "\n\n".join(str(json.loads(line).get("text", "")) for line in lines[: 20 * n] if line.strip())
        else:
            whole = "\n".join(lines)
    return [whole[start : start + PASSAGE] for start in range(0, max(1, len(whole) - PASSAGE), STEP)][:n]


def n_operations(n_tokens: int) -> float:
    """Count the useful floating-point operations of one text."""
    return 2 * 85e6 * n_tokens + 4 * 12 * 768 * n_tokens**2


class Best:
    """The least wall-clock and the least processor seconds of a piece of work that is done several times."""

    def __init__(self) -> None:
        self.wall_s = self.busy_s = float("inf")

    def run(self, work: Callable[[], Any]) -> Any:
        """Do the work once more and give its result."""
        wall, busy = time.perf_counter(), time.process_time()
        result = work()
        self.wall_s = min(self.wall_s, time.perf_counter() - wall)
        self.busy_s = min(self.busy_s, time.process_time() - busy)
        return result


def peak_gigabytes(texts: list[str]) -> float | None:
    """Peak memory of a process that only encodes with OpenVINO (Linux)."""
    import subprocess

    if not Path("/proc/self/status").exists():
        return None
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from encoders.load import load_encoder\n"
        "load_encoder('all-mpnet-base-v2', device='cpu', backend='openvino').encode(json.load(sys.stdin))\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ROOT)], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1e6


def measure(texts: list[str], rounds: int) -> dict[str, Any]:
    """Time everything in turn and compare the embeddings."""
    import torch

    from encoders.known import KNOWN
    from encoders.load import load_encoder
    from encoders.tokens import Pieces
    from encoders.torch_encoder import open_model
    from encoders.weights import ensure_weights

    folder = ensure_weights(KNOWN[0])
    windows = Pieces(folder / "tokenizer.json", 512).windows(texts)
    texts = [
        texts[owner] for owner, ids in zip(windows.owners, windows.ids, strict=True) if windows.owners.count(owner) == 1
    ]
    lengths = [
        len(ids) for owner, ids in zip(windows.owners, windows.ids, strict=True) if windows.owners.count(owner) == 1
    ]
    plain_model = open_model(folder, "cpu")
    plain_model.max_seq_length = 512
    encoder = load_encoder("all-mpnet-base-v2", device="cpu", backend="openvino")
    plain_model.encode(texts[:2])
    encoder.encode(texts[:2])
    plain, openvino, product, query = Best(), Best(), Best(), Best()
    one, other = torch.randn(2048, 2048), torch.randn(2048, 2048)
    cosine = 1.0
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for _ in range(5):
            product.run(lambda: one @ other)
        found = openvino.run(lambda: encoder.encode(texts))
        wanted = plain.run(lambda: plain_model.encode(texts, normalize_embeddings=True))
        cosine = min(cosine, float(np.einsum("ij,ij->i", found, wanted).min()))
    for _ in range(7):
        query.run(lambda: encoder.encode(["how does multi-head attention work"], kind="query"))
    encoder.close()
    useful, of_product = sum(map(n_operations, lengths)), 2 * 2048**3
    return {
        "n_texts": len(texts),
        "mean_tokens": round(sum(lengths) / len(lengths), 1),
        "threads": torch.get_num_threads(),
        "plain_texts_s": round(len(texts) / plain.wall_s, 3),
        "openvino_texts_s": round(len(texts) / openvino.wall_s, 3),
        "speedup": round(plain.wall_s / openvino.wall_s, 3),
        "least_cosine": round(cosine, 7),
        "openvino_gflops": round(useful / openvino.wall_s / 1e9, 1),
        "product_gflops": round(of_product / product.wall_s / 1e9, 1),
        "share": round(useful / openvino.wall_s / (of_product / product.wall_s), 3),
        "speedup_busy": round(plain.busy_s / openvino.busy_s, 3),
        "share_busy": round(useful / openvino.busy_s / (of_product / product.busy_s), 3),
        "query_ms": round(query.wall_s * 1e3, 1),
        "peak_gb": peak_gigabytes(texts),
    }


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="text or JSON lines; default: the project's documents")
    parser.add_argument("--texts", type=int, default=24, help="how many passages (default 24)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is timed; the best counts (default 2)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    texts = read_texts(given.file, given.texts)
    if not texts:
        print("There is no text to encode.", file=sys.stderr)
        return 2
    found = measure(texts, given.rounds)
    if given.json:
        print(json.dumps(found))
    else:
        for key, value in found.items():
            print(f"{key:>18}  {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
