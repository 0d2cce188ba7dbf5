"""Where sentences end, by rules that hold for papers in most scripts.

A full stop ends none after an abbreviation ("et al. (2018)", "Fig. 2c", "e.g."), an initial ("J. Smith"), inside a
number, or where the sentence plainly goes on in lower case. CJK marks need no white space after them. A blank line
ends whatever stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_CLOSERS = "\"'”’»›)\\]」』】）"
_END = re.compile(
    rf"""
      (?P<mark>[.!?…‽]+)                                          # Latin, Greek, Cyrillic, …
      (?P<close>[{_CLOSERS}]*(?:\[[\d,;\s–-]{{1,30}}\])?[{_CLOSERS}]*
        (?:(?<=[^\W\d]\.)\d{{1,3}}(?:[,–-]\d{{1,3}}){{0,9}})?)     # "archaea.12,13 Next": a superscript reference
      (?=\s|\Z)
    | [。！？｡؟۔।॥։᠃።]+[{_CLOSERS}]*                              # marks that need no space
    | (?<=\S)(?=[ \t]*\n[ \t]*\n)                                 # a blank line
    """,
    re.VERBOSE,
)

_ABBREVIATION_WORDS = """
    al approx art assoc bull ca cap cf chap chem col conf cor corp def dept dev diff dist div dr ed eds eg e.g eq eqn eqns eqs
    esp est etc ex expt ext fig figs figure fn ft gen gov i.e ie ibid inc incl inst int jr lab lect lem lett lit ltd m.sc math
    max min misc mr mrs ms mt nat nb no nos nr obs op p para ph.d phys pl pp prep pres proc prof prop prot pt pub publ q.v rec ref
    refs rem rep resp rev s.a s.t sci sec secs sect sen ser sp spp sr ss st sub subsp suppl supp syn tab tabs techn temp thm tr
    trans univ usu v var vers viz vol vols vs wt bzw bspw ggf d.h z.b u.a vgl abb tab nr bd hrsg p.ex env cad ej pág núm
    u.s u.k a.m p.m
"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_WORDS.split())
# After these a capital letter can begin the next sentence all the same.
_MAY_END = frozenset(
    {"etc", "no", "u.s", "u.k", "a.m", "p.m", "jr", "inc", "ltd", "corp", "al", "resp", "sub", "max", "min"}
)
_TOKEN = re.compile(r"[^\s(\[{\"“‘«/–—,;:]*\Z")
_INITIAL = re.compile(r"(?:[^\W\d_][.-])*[^\W\d_]\Z")
_NUMBERING = re.compile(r"(?:\d{1,2}|[ivxIVX]{1,4}|[A-Za-z])\Z")


def iter_sentence_ends(text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield the offset just after each sentence that ends in text[start:end], rising; white space after it is not counted."""
    stop = len(text) if end is None else end
    for match in _END.finditer(text, start, stop):
        if match.end() > start and _is_end(text, match):
            yield match.end()


def find_last_sentence_end(text: str, start: int, end: int) -> int | None:
    """Return the last offset in (start, end] at which a sentence ends, or None.

    Text beyond `end` is looked at (the next word tells whether a full stop ends anything) and text before `start` too
    (the word that the full stop belongs to).
    """
    found = None
    # One more character, so that a mark right before `end` sees what follows it.
    for match in _END.finditer(text, max(start - 1, 0), min(end + 1, len(text))):
        if start < match.end() <= end and _is_end(text, match):
            found = match.end()
    return found


def split_sentences(text: str) -> list[str]:
    """Split a text into its sentences , stripped, none empty."""
    cuts = [0, *iter_sentence_ends(text), len(text)]
    pieces = (text[a:b].strip() for a, b in pairwise(cuts))
    return [piece for piece in pieces if piece]


def _is_end(text: str, match: re.Match[str]) -> bool:
    mark = match["mark"]
    if mark is None or set(mark) - {"."}:
        return mark is None or not _goes_on_in_lower_case(text, match.end())
    after = text[match.end() : match.end() + 24].lstrip()
    following = after[:1]
    if following and (following.islower() or following in ",;:%=+<>≤≥"):
        return False
    if len(mark) > 1:  # an ellipsis
        return not following or following.isupper()
    if match["close"]:
        return True
    before = _TOKEN.search(text, max(0, match.start() - 24), match.start())
    token = before[0] if before else ""
    if not token:
        return True
    lowered = token.casefold()
    if lowered in _ABBREVIATIONS:
        return not following or (lowered in _MAY_END and following.isupper() and not _is_initial(after))
    if _NUMBERING.match(token) and _starts_line(text, match.start() - len(token)):
        return False  # "3. Results": a number of a heading or a list
    # "J. Smith" or "A.-B. Jones"; but "… of vitamin C. The …" ends: a capital word of two letters and more, then more.
    if _INITIAL.match(token) and token[-1:].isupper() and following:
        previous = text[: match.start() - len(token)].rstrip()[-1:]
        return previous.islower() and bool(
            re.match(r"(?:The|This|These|It|In|We|A|An|However|For|As|To|Our|Thus)\s", after)
        )
    return True


def _goes_on_in_lower_case(text: str, at: int) -> bool:
    return text[at : at + 8].lstrip()[:1].islower()


def _is_initial(after: str) -> bool:
    return len(after) > 1 and after[0].isupper() and after[1] == "."


def _starts_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"
