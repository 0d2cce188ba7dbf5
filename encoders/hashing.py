"""The hashing encoder: for tests and for trying the farm out, with no weights and no model library.

The same text gives the same 768 float32 numbers, bit for bit, on every machine, Python and batch: only ASCII letters
are folded (tables of larger alphabets differ between Python versions), all hashing and adding is done on integers, and
the one square root and one division at the end are correctly rounded by IEEE 754. Texts that share words, word
beginnings and word pairs are near one another, so a corpus can be tried out with it; it knows nothing of meaning.

Words are runs of ASCII letters, digits and two-byte characters (accented Latin, Greek, Cyrillic …); every longer
character (CJK, emoji, typographic marks) is a word of its own. Everything is done for many texts at once in numpy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from encoders.base import DIM, Embeddings, EncoderSpec, Kind

RULE = "research-brain hashing encoder, rule 1"
"""Names the rule. Any change to the numbers needs another name, so that old and new embeddings cannot meet."""

HASHING = EncoderSpec(
    name="hashing",
    revision="1",
    weights_sha256=hashlib.sha256(RULE.encode()).hexdigest(),
    # There is no limit; the field must hold one, and this is the largest that fits every integer column.
    max_tokens=32_767,
    source="hashing",
)

_U64 = np.uint64
_TEXTS_AT_ONCE = 256
_LOAD = 8
_WHOLE_LOADS = 3
_STEM_BYTES = 5

_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(_LOAD + 1)], dtype=_U64)
_MULTIPLY = _U64(0xBF58476D1CE4E5B9)
_MULTIPLY_AGAIN = _U64(0x94D049BB133111EB)
_LENGTH_SALT = _U64(0x9E3779B97F4A7C15)
_STEM_SALT = _U64(0xD6E8FEB86659FD93)
_PAIR_SALT = _U64(0xA0761D6478BD642F)

# Long words tell more than short ones, which are mostly the same in every text.
_WORD_WEIGHT = np.array([0, 1, 1, 1, 2, 3] + [4] * 3, dtype=np.float64)
_STEM_WEIGHT = 3.0
_PAIR_WEIGHT = 1.0

_IS_WORD = np.zeros(256, dtype=bool)
_IS_WORD[[*range(ord("0"), ord("9") + 1), *range(ord("a"), ord("z") + 1), *range(0x80, 0x100)]] = True


class HashingEncoder:
    """Text → signed counts of hashed words in 768 places, normalised. Thread-safe: it keeps no state."""

    backend = "hashing"
    device = "cpu"
    n_windowed = 0

    def __init__(self) -> None:
        self.spec = HASHING

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:  # noqa: ARG002
        """One float32 unit vector a text; any text has one, also an empty one."""
        out = np.empty((len(texts), DIM), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[start : start + _TEXTS_AT_ONCE]
            out[start : start + len(part)] = _encode(part)
        return out

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


def _encode(texts: Sequence[str]) -> Embeddings:
    folded = [text.encode("utf-8", "surrogatepass").lower() for text in texts]
    # Separators at both ends give every word an edge; the rest of the padding is for loads past the last word.
    data = b"".join((b" ", b" ".join(folded), b" " * (_LOAD * _WHOLE_LOADS)))
    starts, lengths = _words(np.frombuffer(data, dtype=np.uint8))
    text_ends = np.cumsum([len(text) + 1 for text in folded])
    owner = np.searchsorted(text_ends, starts - 1, side="right")
    words, stems = _hash_words(data, starts, lengths)

    long = np.flatnonzero(lengths > _STEM_BYTES)
    pairs = np.flatnonzero(owner[1:] == owner[:-1])
    hashes = np.concatenate(
        (
            words,
            stems[long],
            _mix(words[pairs] * _PAIR_SALT + words[pairs + 1]),
        )
    )
    owners = np.concatenate((owner, owner[long], owner[pairs]))
    weights = np.concatenate(
        (
            _WORD_WEIGHT[np.minimum(lengths, _LOAD)],
            np.full(len(long), _STEM_WEIGHT),
            np.full(len(pairs), _PAIR_WEIGHT),
        )
    )
    places = owners * DIM + (((hashes >> _U64(32)) * _U64(DIM)) >> _U64(32)).astype(np.int64)
    signed = np.where(hashes & _U64(1), weights, -weights)
    # Sums of small whole numbers are exact in float64, in whatever order they are added.
    counts = np.bincount(places, signed, minlength=len(texts) * DIM).reshape(len(texts), DIM)
    squares = np.einsum("ij,ij->i", counts, counts)
    for row in np.flatnonzero(squares == 0):
        counts[row] = _wordless(folded[row])
        squares[row] = np.dot(counts[row], counts[row])
    return (counts / np.sqrt(squares)[:, None]).astype(np.float32)


def _words(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find where words start and how many bytes they have."""
    inside = _IS_WORD[data]
    edge = inside[1:] != inside[:-1]
    leads = np.flatnonzero(data >= 0xE0)
    if not len(leads):
        edges = np.flatnonzero(edge) + 1
        return edges[0::2], edges[1::2] - edges[0::2]
    # A character of three or four bytes begins and ends a word, so one place can be an end and a start at once.
    cut = np.zeros(len(data) + _LOAD, dtype=bool)
    cut[leads] = True
    cut[leads + 3 + (data[leads] >= 0xF0)] = True
    cut = cut[1 : len(data)]
    starts = np.flatnonzero(inside[1:] & (edge | cut)) + 1
    ends = np.flatnonzero(inside[:-1] & (edge | cut)) + 1
    return starts, ends - starts


def _hash_words(data: bytes, starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hash each word, and each word's beginning, to 64 bits."""
    loads = np.ndarray((len(data) - _LOAD + 1,), dtype="<u8", buffer=data, strides=(1,))
    first = loads[starts].astype(_U64)
    hashes = _mix((first & _MASKS[np.minimum(lengths, _LOAD)]) + lengths.astype(_U64) * _LENGTH_SALT)
    for number in range(1, _WHOLE_LOADS):
        longer = np.flatnonzero(lengths > number * _LOAD)
        if not len(longer):
            break
        more = loads[starts[longer] + number * _LOAD].astype(_U64)
        more &= _MASKS[np.minimum(lengths[longer] - number * _LOAD, _LOAD)]
        hashes[longer] = _mix(hashes[longer] ^ more)
    whole = _LOAD * _WHOLE_LOADS
    for word in np.flatnonzero(lengths > whole):
        rest = data[starts[word] + whole : starts[word] + lengths[word]]
        hashes[word] ^= _U64(int.from_bytes(hashlib.blake2b(rest, digest_size=8).digest(), "little"))
    return hashes, _mix((first & _MASKS[_STEM_BYTES]) ^ _STEM_SALT)


def _mix(value: np.ndarray) -> np.ndarray:
    """Spread every bit over all 64 (the finaliser of splitmix64, Steele, Lea and Flood 2014)."""
    value = (value ^ (value >> _U64(30))) * _MULTIPLY
    value = (value ^ (value >> _U64(27))) * _MULTIPLY_AGAIN
    return value ^ (value >> _U64(31))


def _wordless(text: bytes) -> np.ndarray:
    """Signed ones from a hash of the whole text, for texts without a word or whose words cancel out."""
    bits = np.unpackbits(np.frombuffer(hashlib.shake_256(text).digest(DIM // 8), dtype=np.uint8))
    return bits.astype(np.float64) * 2.0 - 1.0
