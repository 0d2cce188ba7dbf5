"""Hyphens at line ends: joined or kept as a reader would.

The document's own words decide first (in the middle of lines it shows which form it uses), then word lists, then the
shape of the two halves. A hyphen after a space splits no word and stays.
"""

# ruff: noqa: SIM905  lists of words read best as words

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ingest.text.lexicon import is_word

LINE_END = re.compile("(?P<word>[^\\W\\d_][\\w'’.]*(?:[-‐‑][\\w'’]+)*)?(?P<hyphen>[-‐‑\u00ad])$")
_NEXT = re.compile(r"^(?P<word>\w+(?:['’]\w+)?)(?P<more>[-‐‑]\w)?")
_LEFT = re.compile(r"(?P<chain>[\w'’]+(?:[-‐‑–][\w'’]+)*)$")
_WORD = re.compile(
    "[a-z\u00df-\u024f\u0370-\u058f]{2,}"
)  # faster than the class of all letters; other scripts have no hyphens
_COMPOUND = re.compile(r"[^\W_]+(?:[-‐‑][^\W_]+)+")
_HYPHENS = frozenset("-‐‑\u00ad")
_PREFIXES = frozenset(
    ("anti auto bi co counter cross de dis ex extra hyper il im in infra inter intra ir macro mal mega meta micro mid mini mis mono multi "
    "neo non omni over para poly post pre pro proto pseudo quasi re retro self semi sub super sur tele trans tri ultra un under uni up").split()
)  # fmt: skip
_COMPOUND_HEADS = frozenset(
    "self well high low long short large small open end state non half ill cross single multi two three four first second".split()
)
_COMPOUND_TAILS = frozenset(
    ("based like level scale wise aware free specific dependent driven art end of the to and in by order quality term time world "
    "shot hop step stage way class tuned trained related oriented known defined supervised").split()
)  # fmt: skip
_SUFFIXES = frozenset(
    ("ability able ably ality ally ance ances ated ating ation ations ence ences eous erated fully ible ical ically icity ified ifies "
    "ility ions ious ised ising isation istic ities ized izes izing ization less ment ments ness nent sion sions tical ties ting tion tional "
    "tions tive tively tory ture tures ular ward wards ring ling ning ding king").split()
)  # fmt: skip
_LOST = re.compile(r"(?<![\w-])(?P<left>[^\W\d_]{2,})[-‐] (?P<right>[^\W_]{2,})(?![\w-])")
_NO_SECOND_HALVES = frozenset("and or to und oder et ou y o e bis nor vs".split())


class Hyphenation:
    """The decisions for one document."""

    def __init__(self, lines: Iterable[str], language: str = "en") -> None:
        self.language = language
        # Half a word is no evidence: neither the last one of a line that is broken nor the first one of the next.
        whole: list[str] = []
        is_broken = False
        for line in lines:
            kept = line.partition(" ")[2] if is_broken else line
            is_broken = line[-1:] in _HYPHENS
            whole.append(kept.rpartition(" ")[0] if is_broken else kept)
        joined = "\n".join([line for line in whole if "-" in line or "‐" in line or "‑" in line])
        self._compound: Counter[str] = Counter(map(_plain, _COMPOUND.findall(joined)))
        self._whole: Counter[str] = Counter(_WORD.findall("\n".join(whole).lower()))

    def knows(self, word: str) -> bool:
        """Whether the document itself uses the word, or the language does."""
        return word.lower() in self._whole or is_word(word, self.language)

    def join(self, before: str, after: str) -> str:
        """Return two lines as one: with a space, or as one word where a hyphen ends the first."""
        if not before or not after:
            return before + after
        hyphen = before[-1]
        if hyphen not in "-‐‑\u00ad":
            return before + after if before[-1] in "–—/" and self._is_tight(before, after) else f"{before} {after}"
        stem = before[:-1]
        if not stem or stem[-1].isspace() or after[0].isspace():
            return f"{before} {after}"
        left = _LEFT.search(stem)
        right = _NEXT.match(after)
        if left is None or right is None:
            return before + after if not stem[-1].isspace() and after[0].isalnum() else f"{before} {after}"
        if hyphen == "\u00ad":
            return stem + after
        return (stem + "-" if self._keeps(left["chain"], right["word"]) else stem) + after

    def mend(self, text: str) -> str:
        """Return a text whose line ends are lost with its broken words whole: "ac- counting", "COVID- 19".

        Where both halves are words the hyphen is an author's ("pre- and post-war") and nothing is done.
        """
        return _LOST.sub(self._mended, text)

    def _mended(self, match: re.Match[str]) -> str:
        left, right = match["left"], match["right"]
        if right.isdigit():
            return f"{left}-{right}" if left.isupper() and len(left) > 1 else match[0]
        if right.lower() in _NO_SECOND_HALVES or not right.islower():
            return match[0]
        joined = left + right
        if self.knows(joined) and not (self.knows(left) and self.knows(right) and len(left) > 3):
            return joined
        compound = f"{left}-{right}"
        return compound if self._compound[_plain(compound)] else match[0]

    def _keeps(self, chain: str, right: str) -> bool:
        """Whether the hyphen between two halves is the authors' own."""
        left = re.split("[-‐‑–]", chain)[-1]
        joined = (left + right).lower()
        n_compound = self._compound[_plain(f"{chain}-{right}")] + (
            self._compound[_plain(f"{left}-{right}")] if chain != left else 0
        )
        n_whole = self._whole[joined]
        if n_compound or n_whole:
            return n_compound > n_whole
        if right[0].isdigit() or (left and left[-1].isdigit()):
            return True
        if len(left) == 1:
            return True  # "V-measure", "t-test": no word is broken after one letter
        if right[0].isupper():
            # "Triv-iaQA" has a small letter here; "TF-IDF", "Anglo-Saxon", "EF-1A" are compounds. SHOUTED words are broken anywhere.
            return not (left.isupper() and right.isupper() and (len(left) > 3 or is_word(joined, self.language)))
        if left.isupper() and len(left) > 1:
            return True  # "GPU-based"
        if any(word.startswith(joined) or joined.startswith(word) for word in self._longer(joined)):
            return False
        if is_word(joined, self.language):
            return False
        if chain != left:
            # "state-of-the-" + "art": a chain goes on with a hyphen, unless its last part is itself broken.
            return self.knows(left) and self.knows(right)
        low = left.lower()
        if right.lower() in _COMPOUND_TAILS and self.knows(left):
            return True
        if low in _COMPOUND_HEADS and self.knows(right):
            return True
        if low in _PREFIXES or len(left) < 3 or len(right) < 4 or right.lower() in _SUFFIXES:
            return False
        return self.language == "en" and self.knows(left) and self.knows(right)

    def _longer(self, joined: str) -> list[str]:
        """Inflected neighbours that the document uses: "embedding" speaks for "embed-dings"."""
        stems = (
            joined + "s",
            joined + "es",
            joined.removesuffix("s"),
            joined.removesuffix("ed"),
            joined.removesuffix("ing"),
            joined + "ly",
        )
        return [word for word in stems if word != joined and len(word) > 4 and word in self._whole]

    @staticmethod
    def _is_tight(before: str, after: str) -> bool:
        """A dash or slash that stands right after a word at a line end stands right before the next one too."""
        return len(before) > 1 and not before[-2].isspace() and not after[0].isspace()


def _plain(word: str) -> str:
    return word.lower().replace("‐", "-").replace("‑", "-").replace("–", "-")
