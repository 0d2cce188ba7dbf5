"""Turn a model's folder into OpenVINO's form, once: `python -m encoders.convert FOLDER OUT MAX_TOKENS`.

A process of its own, because torch and a second copy of the weights then leave the memory for good, and because no
thread of the caller shares the interpreter with a tracer that it might disturb.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from encoders.canary import DOCUMENTS, QUERIES
from encoders.mixed import choose_half_layers, load_library
from encoders.tokens import Pieces

_CALIBRATION_TOKENS = 200
MODEL = "model.xml"
FACTS = "facts.json"


def convert(folder: Path, out: Path, max_tokens: int) -> None:
    """Write `model.xml`, `model.bin`, `tokenizer.json` and, last, `facts.json` into `out`."""
    warnings.filterwarnings("ignore")
    openvino = load_library()
    import torch

    from encoders.torch_encoder import open_model

    model = open_model(folder, "cpu")

    class Whole(torch.nn.Module):
        """The model with all that comes after it (pooling, dense layers), as one function of ids and mask."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model({"input_ids": input_ids, "attention_mask": attention_mask})["sentence_embedding"]

    config: Any = getattr(model[0], "auto_model", model[0]).config
    example = torch.arange(34).reshape(2, 17) % min(config.vocab_size, 1000)
    with torch.inference_mode():
        traced = openvino.convert_model(
            Whole().eval(), example_input={"input_ids": example, "attention_mask": torch.ones_like(example)}
        )
    out.mkdir(parents=True, exist_ok=True)
    openvino.save_model(traced, str(out / MODEL), compress_to_fp16=False)
    (out / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    pad = int(config.pad_token_id or 0)
    width = model.get_embedding_dimension()
    half, cosine = choose_half_layers(out / MODEL, _calibration(out / "tokenizer.json", max_tokens, pad))
    facts = {"pad": pad, "width": width, "half_layers": half, "half_cosine": cosine}
    (out / FACTS).write_text(json.dumps(facts), "utf-8")


def _calibration(tokenizer: Path, max_tokens: int, pad: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Make batches of very different texts, padded ones among them, for measuring what fewer bits do."""
    texts = [
        *DOCUMENTS[:-1],
        *QUERIES,
        DOCUMENTS[-1][:900],
        DOCUMENTS[-1][-500:],
        "qx zvk, jwp bhgf. mmrl o" * 6,
        "the",
        "e",
    ]
    ids = sorted(Pieces(tokenizer, min(max_tokens, _CALIBRATION_TOKENS)).windows(texts).ids, key=len)
    batches = []
    for start in range(0, len(ids), 3):
        part = ids[start : start + 3]
        block = np.full((len(part), len(part[-1])), pad, dtype=np.int64)
        mask = np.zeros_like(block)
        for row, pieces in enumerate(part):
            block[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        batches.append((block, mask))
    return batches


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
