"""What an encoder is: its identity, its promise, and the check that every embedding passes before anyone sees it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from corpus.errors import BadEmbedding

DIM = 768
"""Width of every embedding of this project."""

Kind = Literal["document", "query"]
Pooling = Literal["mean", "cls", "last", "service"]
Embeddings = np.ndarray[tuple[int, int], np.dtype[np.float32]]

LENGTH_TOLERANCE = 1e-3
"""How far from 1 the length of an embedding may lie. Half precision rounds a 768-d unit vector by less than this."""


def _no_prompts() -> Mapping[str, str]:
    return {"query": "", "passage": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """Who an encoder is, whatever backend, device or machine runs it. Two encoders with one `identity` may mix.

    `weights_sha256` is the digest of the weights file (for a service: of what the service calls its digest; for the
    hashing encoder: of its rule). `prompts` are put before a text, by the keys `query` and `passage`. `source` says
    where the weights come from and is no part of the identity: `hashing`, `known:NAME`, `dir:PATH`,
    `ollama:MODEL@URL`, `openai:MODEL@URL`.
    """

    name: str
    revision: str
    weights_sha256: str
    max_tokens: int
    dim: int = DIM
    prompts: Mapping[str, str] = field(default_factory=_no_prompts, hash=False)
    pooling: Pooling = "mean"
    source: str = field(default="", compare=False)

    def prompt(self, kind: Kind) -> str:
        """Give the words that the encoder wants before a text of this kind; often none."""
        return self.prompts.get("query" if kind == "query" else "passage", "")

    def identity(self) -> dict[str, Any]:
        """Give what vector shards carry in their `encoder` field."""
        return {
            "name": self.name,
            "revision": self.revision,
            "weights_sha256": self.weights_sha256,
            "max_tokens": self.max_tokens,
            "prompts": dict(self.prompts),
            "dimension": self.dim,
            "normalized": True,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, for the database; `from_dict` is its inverse."""
        return {**self.identity(), "pooling": self.pooling, "source": self.source}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> EncoderSpec:
        """Read the spec that `to_dict` or `identity` wrote. Raises KeyError for a missing field."""
        return cls(
            name=str(row["name"]),
            revision=str(row.get("revision", "")),
            weights_sha256=str(row["weights_sha256"]),
            max_tokens=int(row["max_tokens"]),
            dim=int(row.get("dimension", DIM)),
            prompts=normal_prompts(row.get("prompts")),
            pooling=row.get("pooling", "mean"),
            source=str(row.get("source", "")),
        )

    def differences(self, identity: Mapping[str, Any]) -> list[str]:
        """Why embeddings labelled `identity` may not stand beside this encoder's; empty when they may.

        Only what changes the numbers counts: digest, token limit and prompts. Names and revisions differ freely.
        """
        theirs = {
            "weights_sha256": str(identity.get("weights_sha256", "")).lower(),
            "max_tokens": identity.get("max_tokens"),
            "prompts": normal_prompts(identity.get("prompts")),
        }
        ours = {
            "weights_sha256": self.weights_sha256,
            "max_tokens": self.max_tokens,
            "prompts": normal_prompts(self.prompts),
        }
        return [
            f"{key} is {json.dumps(theirs[key])}, not {json.dumps(ours[key])}"
            for key in ours
            if ours[key] != theirs[key]
        ]


def normal_prompts(prompts: object) -> dict[str, str]:
    """Prompts with both keys present; `document` is another word for `passage`."""
    given: dict[str, str] = {}
    if isinstance(prompts, Mapping):
        given = {str(key): str(value or "") for key, value in prompts.items()}
    return {"query": given.get("query", ""), "passage": given.get("passage", given.get("document", ""))}


@runtime_checkable
class Encoder(Protocol):
    """Text → embedding. `encode` may be called from several threads; calls wait for one another where they must."""

    @property
    def spec(self) -> EncoderSpec:
        """Who this is."""
        ...

    @property
    def backend(self) -> str:
        """What computes: `hashing`, `torch`, `openvino`, `ollama`, `openai`."""
        ...

    @property
    def device(self) -> str:
        """Where: `cpu`, `cuda`, `mps`, or the address of a service."""
        ...

    @property
    def n_windowed(self) -> int:
        """How many texts so far were longer than one window (zero where the backend does not tell)."""
        ...

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:
        """One float32 unit vector a text, in the order of the texts: shape (n, 768).

        Raises EncoderUnavailable, EncoderThrottled, EncoderOutOfMemory, EncoderRefused, BadEmbedding.
        """
        ...

    def close(self) -> None:
        """Give back memory and connections; calling it twice is fine."""
        ...


def check_embeddings(array: object, n: int, *, dim: int = DIM) -> Embeddings:
    """Return the array as (n, dim) float32, or BadEmbedding that names the first row which is wrong and how."""
    try:
        found = np.asarray(array, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BadEmbedding(f"The encoder's answer is not an array of numbers: {error}.") from error
    if found.shape != (n, dim):
        raise BadEmbedding(f"{n} embeddings of {dim} numbers were asked for; the answer has shape {found.shape}.")
    # Squares of finite float32 numbers can pass float32's range, so the length is taken in double precision.
    lengths = np.sqrt(np.einsum("ij,ij->i", found, found, dtype=np.float64))
    right = np.isfinite(lengths) & (np.abs(lengths - 1.0) <= LENGTH_TOLERANCE)
    if not right.all():
        row = int(np.argmin(right))
        length = float(lengths[row])
        what = "has length zero" if length == 0 else f"has length {length:.6g}, not 1"
        raise BadEmbedding(f"Embedding {row} of {n} {what if math.isfinite(length) else 'is not finite'}.")
    return found


def normalised(array: object, n: int, *, dim: int = DIM) -> Embeddings:
    """Return the rows scaled to length 1; BadEmbedding where a row is not finite or zero, or the shape is wrong."""
    try:
        found = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadEmbedding(f"The encoder's answer is not an array of numbers: {error}.") from error
    if found.shape != (n, dim):
        raise BadEmbedding(f"{n} embeddings of {dim} numbers were asked for; the answer has shape {found.shape}.")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return check_embeddings(found / lengths, n, dim=dim)
