"""Encoding with OpenVINO on CPUs: torch's float32 embeddings at a cosine of 0.9999 or more, in less of the time.

The model is converted from the loaded torch module once and kept in the cache; after that neither torch nor
transformers is imported, so a node starts in seconds and stays small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from corpus.errors import EncoderRefused, EncoderUnavailable
from encoders.base import EncoderSpec
from encoders.batches import Budget, WindowedEncoder
from encoders.cache import Progress, locked, remove, replace_folder, silent
from encoders.convert import FACTS, MODEL
from encoders.mixed import Mixed
from encoders.tokens import Pieces
from encoders.weights import folder_of

_FORM = 3
"""Raised when the conversion changes, so that old results are not taken for new ones."""

_TOKENS_AT_ONCE = 1_024
"""Larger batches gain nothing on a CPU, and cost memory."""

_LEAST_FILL = 0.95

_CONVERSION_S = 900.0
_TEST_S = 0.2


class NotConvertibleError(EncoderUnavailable):
    """OpenVINO cannot take this model, here or at all; torch still may."""


def converted_folder(spec: EncoderSpec, cache: Path) -> Path:
    """Return where the converted model is kept: one place for each weights, OpenVINO and form of conversion."""
    return cache / "openvino" / f"{spec.name}-{spec.weights_sha256[:16]}-{version('openvino')}-{_FORM}"


def ensure_converted(spec: EncoderSpec, *, cache: Path, progress: Progress = silent) -> Path:
    """Return the folder of the converted model, converting when it is not there. Safe for several processes."""
    folder = converted_folder(spec, cache)
    if (folder / FACTS).is_file():
        return folder
    source = folder_of(spec, cache=cache, progress=progress)
    with locked(folder.with_name(f"{folder.name}.lock"), what=f"preparing {spec.name}", progress=progress):
        if (folder / FACTS).is_file():
            return folder
        partial = folder.with_name(f"{folder.name}.partial")
        remove(partial)
        _convert(spec, source, partial, progress)
        replace_folder(partial, folder)
    return folder


def _convert(spec: EncoderSpec, source: Path, out: Path, progress: Progress) -> None:
    command = [sys.executable, "-m", "encoders.convert", str(source), str(out), str(spec.max_tokens)]
    root = str(Path(__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env
    )
    started = time.monotonic()
    said = b""
    try:
        while True:
            progress(f"preparing {spec.name} for this processor (once)", int(time.monotonic() - started), 0)
            try:
                said, _ = process.communicate(timeout=_TEST_S)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - started > _CONVERSION_S:
                    raise NotConvertibleError(f"Preparing {spec.name} took over {_CONVERSION_S:.0f} s.") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode:
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if "Error" in line]
        raise NotConvertibleError(
            f"{spec.name} cannot be prepared for OpenVINO: {lines[-1] if lines else f'exit {process.returncode}'}",
            mend="Use --backend torch.",
        )


class OpenVinoEncoder(WindowedEncoder):
    """A converted model on all of this machine's cores (see `encoders.mixed` for its precision)."""

    def __init__(self, spec: EncoderSpec, folder: Path) -> None:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        if facts["width"] != spec.dim:
            raise EncoderRefused(f"{spec.name} makes embeddings of {facts['width']} numbers, not {spec.dim}.")
        pieces = Pieces(folder / "tokenizer.json", spec.max_tokens)
        budget = Budget(_TOKENS_AT_ONCE, _TOKENS_AT_ONCE, _LEAST_FILL, few_shapes=True)
        super().__init__(spec, pieces, budget, backend="openvino", device="cpu")
        self._pad = int(facts["pad"])
        first, end = facts["half_layers"]
        self._model: Mixed | None = Mixed(folder / MODEL, (int(first), int(end)))

    def _compute(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        if self._model is None:
            raise EncoderUnavailable(f"The encoder {self.spec.name} was closed.")
        try:
            return self._model(ids, mask)
        except RuntimeError as error:
            if "alloc" in str(error).lower() or "memory" in str(error).lower():
                raise MemoryError(str(error)) from error
            raise EncoderUnavailable(f"{self.spec.name} failed on OpenVINO: {error}.") from error

    def close(self) -> None:
        """Give back the model's memory."""
        self._model = None


def load_openvino(spec: EncoderSpec, *, cache: Path, progress: Progress = silent) -> OpenVinoEncoder:
    """Make an OpenVINO encoder; converts the model first where that was never done. Raises NotConvertibleError."""
    folder = ensure_converted(spec, cache=cache, progress=progress)
    try:
        return OpenVinoEncoder(spec, folder)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        # A damaged result is made anew, once; the weights themselves are checked on their own.
        progress(f"the prepared form of {spec.name} is damaged: preparing it again", 0, 0)
        remove(folder)
        try:
            return OpenVinoEncoder(spec, ensure_converted(spec, cache=cache, progress=progress))
        except (RuntimeError, OSError, ValueError, KeyError):
            raise NotConvertibleError(f"OpenVINO cannot load {spec.name}: {error}.") from error
