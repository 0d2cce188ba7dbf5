"""Canaries: a few fixed texts by whose embeddings an encoder proves that it is the one it claims to be.

Wrong weights, a wrong prompt, a tokenizer that cuts early, pooling of another kind or a broken driver all show here,
before a single wrong embedding is stored.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from corpus.errors import EncoderRefused
from encoders.base import Embeddings, Encoder, EncoderSpec, check_embeddings

VERSION = 1
LEAST_COSINE = 0.999
"""Below this to the reference, an encoder may not write (half precision on a GPU stays above 0.99999)."""

LEAST_SELF_COSINE = 0.9999
"""A text alone and the same text in a batch must agree this well before a reference is made."""

_BATCH = 32
_LONG = " ".join(
    f"In series {number} the {animal} of the {place} reef was counted at {number * 7} metres, and the tide was noted."
    for number, (animal, place) in enumerate(
        [("urchin", "northern"), ("wrasse", "inner"), ("octopus", "outer"), ("sponge", "western"), ("crab", "drowned")]
        * 7
    )
)
"""Longer than one window of 512 tokens, and different at its end from what any early cut would leave."""

DOCUMENTS: tuple[str, ...] = (
    "Attention weights say which words of a sentence each word is read with.",
    "Enzyme kinetics at 37 °C: k_cat/K_m = 1.2 × 10⁶ M⁻¹ s⁻¹, n = 14, p < 0.05.",
    "Über die naïve Größe von Gletscherzungen — 氷河の長さについて, и о ветре.",
    "def cut(text):\n\treturn text[:512]  # the tail is gone",
    "?",
    f"{_LONG} The last sentence alone speaks of copper prices in winter.",
)
QUERIES: tuple[str, ...] = ("why do glaciers move", "Which enzyme cuts DNA at a palindrome?")


def canary_embeddings(encoder: Encoder) -> Embeddings:
    """Embed the canaries as they are embedded for a reference: documents first, then queries."""
    found = np.concatenate([encoder.encode(DOCUMENTS, kind="document"), encoder.encode(QUERIES, kind="query")])
    return check_embeddings(found, len(DOCUMENTS) + len(QUERIES), dim=encoder.spec.dim)


def make_reference(encoder: Encoder) -> dict[str, Any]:
    """Make a reference for JSON from an encoder that agrees with itself at batch sizes 1 and 32.

    Raises EncoderRefused when a text's embedding depends on its company.
    """
    alone = np.concatenate([encoder.encode([text]) for text in DOCUMENTS])
    crowd = [*DOCUMENTS, *QUERIES]
    crowd += [f"{text[:40]} {number}" for number, text in enumerate(crowd * _BATCH)][: _BATCH - len(crowd)]
    together = encoder.encode(crowd)[: len(DOCUMENTS)]
    _compare(together, alone, LEAST_SELF_COSINE, f"{encoder.spec.name} on {encoder.device} disagrees with itself")
    return _pack(encoder.spec, canary_embeddings(encoder))


def prove(encoder: Encoder, reference: Mapping[str, Any]) -> None:
    """Return when the encoder's canaries agree with the reference; raise EncoderRefused when one does not."""
    expected = _unpack(reference)
    if differences := encoder.spec.differences(reference):
        raise EncoderRefused(f"The reference is of another encoder than {encoder.spec.name}: {'; '.join(differences)}.")
    what = f"{encoder.spec.name} by {encoder.backend} on {encoder.device} is not the encoder it claims to be"
    _compare(canary_embeddings(encoder), expected, LEAST_COSINE, what)


def find_reference(spec: EncoderSpec) -> dict[str, Any] | None:
    """Find the reference that ships with this project for an encoder, by its identity."""
    for file in files("encoders").joinpath("data").iterdir():
        if file.name.startswith("canary-") and file.name.endswith(".json"):
            reference = json.loads(file.read_text("utf-8"))
            if not spec.differences(reference):
                return reference
    return None


def _compare(found: np.ndarray, expected: np.ndarray, least: float, what: str) -> None:
    cosines = np.einsum("ij,ij->i", found, expected, dtype=np.float64)
    worst = int(np.argmin(cosines))
    if not cosines[worst] >= least:
        raise EncoderRefused(
            f"{what}: canary {worst} has cosine {cosines[worst]:.5f}, below {least}.",
            mend="Check its weights, prompts and driver (brain doctor), or let this node compute on another device.",
        )


def _pack(spec: EncoderSpec, vectors: Embeddings) -> dict[str, Any]:
    packed = base64.b64encode(vectors.astype("<f2").tobytes()).decode("ascii")
    return {"canary": VERSION, **spec.identity(), "vectors": packed}


def _unpack(reference: Mapping[str, Any]) -> np.ndarray:
    n = len(DOCUMENTS) + len(QUERIES)
    mend = "Make a new one with this version of the program."
    if reference.get("canary") != VERSION:
        raise EncoderRefused(f"The reference has version {reference.get('canary')}, not {VERSION}.", mend=mend)
    try:
        vectors = np.frombuffer(base64.b64decode(reference["vectors"], validate=True), dtype="<f2").reshape(n, -1)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise EncoderRefused(f"The reference cannot be read: {error}.", mend=mend) from error
    wide = vectors.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)
