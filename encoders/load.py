"""From a name to a spec, and from a spec to a working encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from corpus.errors import EncoderUnavailable, UsageError
from encoders.base import Encoder, EncoderSpec

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how far it is, and how far it goes (bytes or steps; 0 when unknown)."""


def resolve_spec(name: str, *, cache: Path | None = None) -> EncoderSpec:
    """Find the spec behind what a user writes.

    That is `hashing`, `all-mpnet-base-v2`, a directory, `ollama:MODEL@URL` or `openai:MODEL@URL`.

    Imports no model library. Raises UsageError for a name that means nothing, EncoderUnavailable where the identity
    must be asked of a service that does not answer.
    """
    raise UsageError(f"There is no encoder {name!r}.")


def load_encoder(
    which: EncoderSpec | str,
    *,
    device: str = "auto",
    backend: str = "auto",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Encoder:
    """Make a working encoder for a spec or a name. Weights are fetched into `cache` (default: the user's) when missing.

    `device`: auto, cpu, cuda, mps. `backend`: auto, torch, openvino. Raises EncoderUnavailable, EncoderRefused,
    UsageError.
    """
    raise EncoderUnavailable(f"The encoder {which} cannot be loaded.")
