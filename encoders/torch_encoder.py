"""Encoding with sentence-transformers on torch: CUDA, MPS, or CPU."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from corpus.errors import EncoderRefused, EncoderUnavailable
from encoders.base import EncoderSpec
from encoders.batches import Budget, WindowedEncoder
from encoders.tokens import Pieces

_BUDGETS = {"cuda": (16_384, 262_144, 0.6), "mps": (4_096, 32_768, 0.8), "cpu": (1_024, 1_024, 0.95)}
"""Tokens at once by kind of device: to begin with, and at most; and how full a batch must be. See `Budget`."""

_HALF_SAFE = {"mpnet", "bert", "xlm-roberta", "roberta", "distilbert"}
"""Kinds of model whose values stay inside half precision's range (others keep float32)."""


def open_model(folder: Path, device: str) -> Any:
    """Load the model of a folder, from its files alone. Raises EncoderUnavailable when torch cannot take it."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        options = {"dtype": torch.float32}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' words to their own developers
            model = SentenceTransformer(str(folder), device=device, local_files_only=True, model_kwargs=options)
    except Exception as error:  # what a broken folder raises depends on what is broken
        raise EncoderUnavailable(
            f"The model in {folder} cannot be loaded on {device}: {error}.",
            mend="Check that the folder is whole, and that torch is built for this device.",
        ) from error
    return model.eval()


class TorchEncoder(WindowedEncoder):
    """A sentence-transformers model. float32 on CPU and MPS; half precision on CUDA.

    Half precision keeps a cosine of 0.999999 to float32; bfloat16, with its eight bits, falls to 0.9998 and is not
    used.
    """

    def __init__(self, spec: EncoderSpec, folder: Path, *, device: str) -> None:
        kind = device.partition(":")[0]
        pieces = Pieces(folder / "tokenizer.json", spec.max_tokens)
        super().__init__(spec, pieces, Budget(*_BUDGETS[kind]), backend="torch", device=device)
        self._model: Any = open_model(folder, device)
        config: Any = getattr(self._model[0], "auto_model", self._model[0]).config
        if kind == "cuda" and config.model_type in _HALF_SAFE:
            self._model = self._model.half()
        width = self._model.get_embedding_dimension()
        if width != spec.dim:
            raise EncoderRefused(f"{spec.name} makes embeddings of {width} numbers, not {spec.dim}.")
        self._pad = int(config.pad_token_id or 0)

    def _compute(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        import torch

        if self._model is None:
            raise EncoderUnavailable(f"The encoder {self.spec.name} was closed.")
        try:
            with torch.inference_mode():
                batch = {
                    "input_ids": torch.from_numpy(ids).to(self.device),
                    "attention_mask": torch.from_numpy(mask).to(self.device),
                }
                return self._model(batch)["sentence_embedding"].float().cpu().numpy()
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower():
                if self.device.startswith("cuda"):
                    torch.cuda.empty_cache()
                raise MemoryError(str(error)) from error
            if "can't allocate memory" in str(error).lower():
                raise MemoryError(str(error)) from error
            raise EncoderUnavailable(f"{self.spec.name} failed on {self.device}: {error}.") from error

    def close(self) -> None:
        """Give back the model's memory."""
        self._model = None


def load_torch(spec: EncoderSpec, folder: Path, *, device: str) -> TorchEncoder:
    """Make a torch encoder from checked files."""
    return TorchEncoder(spec, folder, device=device)
