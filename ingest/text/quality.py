"""Whether a text layer is language, judged by statistics of letters and words, and which language it is.

Garbage comes in kinds: characters mapped to others (Latin letters as Chinese ones, a shifted alphabet), characters
without meaning, noise from bad recognition. Each has numbers that no language has. Scripts without a word list are
judged by their characters alone, and get the benefit of the doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ingest.text.lexicon import LANGUAGES, frequent_words, words_of

Quality = Literal["good", "low", "garbage"]

_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_CHUNK = re.compile(r"\S+")
_UNKNOWN = re.compile("[\ufffd\ue000-\uf8ff]")
_CID = re.compile(r"\(cid:\d+\)")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_ACCENTED = re.compile("[\u00c0-\u00ff]")
_ARABIC = re.compile("[\u0600-\u06ff]")
_VOWEL = re.compile("[aeiouyäöüàáâãåæèéêëìíîïòóôõøùúûýœāēīōūąęıůű]", re.IGNORECASE)
_MIXED = re.compile(
    r"[^\W\d_][^\w\s'’\-–/.,()&+@:·]+[^\W\d_]|[a-zß-ÿ][A-Z][a-z]*[A-Z]|[a-z]\d[a-z]|^[^\w\s]+[^\W\d_][^\w\s]+$"
)
_SAMPLE_CHARS = 9_000
# The 120 most frequent characters of modern Chinese cover about half of any text (Jun Da's list, 2004); those that
# Japanese uses too are among them.
_FREQUENT_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运"
    "本会社年月日大学人間研究方法結果場合表図第株式財務報告単位金額計算時的性行発見部国際関係"
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How good a text is, the reason where it is not, and its language where that is sure."""

    quality: Quality
    reason: str = ""
    language: str | None = None


def judge(pieces: Iterable[str]) -> Judgement:
    """Return what the statistics say of a text, given in pieces; only a sample of it is read."""
    text = _sample(pieces)
    visible = len(text) - text.count(" ") - text.count("\n")
    if visible < 30:
        return Judgement("good")
    n_unknown = len(_UNKNOWN.findall(text))
    if n_unknown > 0.25 * visible:
        return Judgement("garbage", "a quarter of the characters have no meaning")
    if len(_CID.findall(text)) * 8 > 0.1 * visible:
        return Judgement("garbage", "glyph numbers instead of characters")
    n_han, n_kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    if n_han > 0.3 * visible and n_han >= 10:
        return _judge_han(text, n_han, n_kana)
    if len(_HANGUL.findall(text)) > 0.3 * visible:
        return Judgement("good", language="ko")
    latin = len(_LATIN.findall(text))
    if latin < 0.35 * visible:
        return Judgement("good" if n_unknown < 0.08 * visible else "low")
    judgement = _judge_latin(text, latin)
    if judgement.quality == "good" and n_unknown > 0.08 * visible:
        return Judgement("low", "many characters have no meaning", judgement.language)
    return judgement


def find_language(pieces: Iterable[str]) -> str | None:
    """Return the language of a text in Latin letters, where its frequent words tell it."""
    tokens = [token.lower() for token in _TOKEN.findall(_sample(pieces))]
    return _language(tokens)


def _sample(pieces: Iterable[str]) -> str:
    """The beginning, middle and end of a long text: one broken font may serve some of its pages only."""
    text = "\n".join(pieces)
    if len(text) <= _SAMPLE_CHARS:
        return text
    part = _SAMPLE_CHARS // 4
    starts = [0, *((len(text) - part) * k // 3 for k in (1, 2, 3))]
    return "\n".join(text[start : start + part] for start in starts)


def _judge_han(text: str, n_han: int, n_kana: int) -> Judgement:
    han = _HAN.findall(text)
    n_round = sum(ord(c) & 0xFF == 0 for c in han)
    if n_round > 0.1 * n_han and n_round >= 5:
        return Judgement(
            "garbage", "the bytes of the character map are swapped: Latin text shows as Chinese characters"
        )
    frequent = sum(c in _FREQUENT_HAN for c in han) / n_han
    if n_han >= 60 and frequent < 0.06 and n_kana < 0.05 * n_han:
        return Judgement("garbage", "Chinese characters that make no language")
    return Judgement("good", language="ja" if n_kana > 0.1 * n_han else "zh")


def _judge_latin(text: str, n_latin: int) -> Judgement:
    chunks = _CHUNK.findall(text)
    tokens = _TOKEN.findall(text)
    words = [token.lower() for token in tokens if len(token) > 1]
    if len(words) < 8:
        return Judgement("good")
    language = _language(words)
    known = max(_share(words, name) for name in LANGUAGES)
    longer = [word for word in words if len(word) >= 4]
    with_vowel = sum(bool(_VOWEL.search(word)) for word in longer) / len(longer) if longer else 1.0
    odd = sum(bool(_MIXED.search(chunk)) for chunk in chunks) / len(chunks)
    single = sum(len(token) == 1 for token in tokens) / len(tokens)
    accented = len(_ACCENTED.findall(text)) / n_latin
    if accented > 0.45 and known < 0.2:
        return Judgement("garbage", "letters of another alphabet were read as accented Latin ones")
    if len(words) >= 20 and known < 0.12 and (with_vowel < 0.7 or odd > 0.25):
        return Judgement("garbage", "the words are of no language")
    if known < 0.3 and (odd > 0.12 or single > 0.35 or with_vowel < 0.8):
        return Judgement("low", "most words are of no language", language)
    if language == "en" and known < 0.72 and odd > 0.04 and len(words) >= 40:
        return Judgement("low", "many words are of no language", language)
    if known < 0.5 and odd > 0.15:
        return Judgement("low", "many words are of no language", language)
    if single > 0.5 and len(tokens) > 50:
        return Judgement("low", "letters stand apart from each other", language)
    return Judgement("good", language=language)


def _share(words: list[str], language: str) -> float:
    known = words_of(language)
    return sum(word in known for word in words) / len(words)


def _language(words: list[str]) -> str | None:
    if len(words) < 20:
        return None
    shares = {name: sum(word in frequent_words(name) for word in words) / len(words) for name in LANGUAGES}
    best = max(shares, key=shares.__getitem__)
    others = max(share for name, share in shares.items() if name != best)
    return best if shares[best] > 0.12 and shares[best] > 1.15 * others else None
