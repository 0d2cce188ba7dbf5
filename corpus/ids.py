"""Identifiers of papers: read in every usual dress, kept in one form, and made into keys.

Too kind a reader gives a wrong paper: what is not certainly an identifier is none. A bare number is no arXiv id
(it names one paper in each old archive), and nothing is searched for inside longer text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args
from urllib.parse import unquote

from corpus.errors import InputError
from corpus.id_forms import ACL, ARXIV, ARXIV_DOI, DOI, DOI_STRICT, URL_FORMS, VERSIONED_PREPRINT_DOI, Kind

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Every kind of identifier, the first known one of which becomes a paper's key."""

_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))
_UPPER = {ord(c): ord(c) + 32 for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_QUOTES = "\"'`“”‘’«»"
_CLOSERS = {")": "(", "]": "[", "}": "{", ">": "<"}


@dataclass(frozen=True, slots=True)
class Identifier:
    """One identifier in its one form: `value` is bare, without prefix, address or version."""

    kind: Kind
    value: str

    @property
    def key(self) -> str:
        """The key of a paper that is known by this identifier, such as `arxiv:2005.11401`."""
        return f"{self.kind}:{self.value}"


def _clean(text: str) -> str:
    return text.translate(_INVISIBLE).strip()


def _arxiv(text: str) -> str | None:
    found = ARXIV.fullmatch(text)
    if not found:
        return None
    return found["new"] or f"{found['archive'].lower()}/{found['number']}"


def _undressed_doi(text: str) -> str:
    """Give the DOI without percent signs, entities and the signs of the sentence that it stood in, to a fixed point."""
    while True:
        plain = html.unescape(unquote(text)) if "%" in text or "&" in text else text
        plain = plain.translate(_INVISIBLE).strip().rstrip(".,;" + _QUOTES)
        opener = _CLOSERS.get(plain[-1:])
        if opener and plain.count(plain[-1]) > plain.count(opener):
            plain = plain[:-1]
        if plain == text:
            return plain
        text = plain


def _doi(text: str, pattern: re.Pattern[str] = DOI) -> str | None:
    plain = _undressed_doi(text).translate(_UPPER)
    if not pattern.fullmatch(plain) or not plain.isprintable():
        return None
    # The version of a bioRxiv or medRxiv preprint is written behind its DOI and is no part of it.
    return VERSIONED_PREPRINT_DOI.sub(r"\1", plain)


def _acl(text: str) -> str | None:
    found = ACL.fullmatch(text)
    if not found:
        return None
    return found["old"].upper() if found["old"] else found["new"].lower()


def _pattern(pattern: str, text: str, form: str) -> str | None:
    found = re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII)
    return form.format(found[1].lower()) if found else None


def normalize(kind: str, value: str) -> str | None:
    """Give the one form of a value whose kind is known, or None when it is no such identifier. Idempotent.

    Kinds that this project does not key by (`dblp`, `mag`, …) are only stripped.
    """
    text = _clean(value)
    if kind not in KINDS:
        return text or None
    own = parse_identifier(text)
    if own and own.kind == kind:
        return own.value
    match kind:
        case "arxiv":
            return _arxiv(text)
        case "doi":
            return _doi(re.sub(r"(?i)^(?:doi\s*[:=]?\s*|(?:https?://)?(?:dx\.|www\.)?doi\.org/)+", "", text))
        case "pmcid":
            return _pattern(r"(?:PMC)?0*([1-9]\d{0,9})(?:\.\d+)?", text, "PMC{}")
        case "pmid":
            return _pattern(r"0*([1-9]\d{0,8})", text, "{}")
        case "acl":
            return _acl(text)
        case "openreview":
            found = re.fullmatch(r"[\w-]{4,24}", text, re.ASCII)
            return found[0] if found else None
        case "openalex":
            return _pattern(r"W?0*([1-9]\d{0,11})", text, "W{}")
        case "s2":
            return _pattern(r"([0-9a-f]{40})", text, "{}")
        case _:
            return _pattern(r"([0-9a-f]{64})", text, "{}")


def _prefixed(text: str) -> Identifier | None:
    """`kind: value`, as papers, reference lists and our own keys write it."""
    found = re.match(
        r"(?i)(oai:arxiv\.org|arxiv|info:doi/|urn:doi|doi|pmcid|pmid|acl|openreview|openalex|s2|file|sha256)", text
    )
    if not found:
        return None
    name, rest = found[0].lower(), text[found.end() :]
    kind = {"oai:arxiv.org": "arxiv", "info:doi/": "doi", "urn:doi": "doi", "sha256": "file"}.get(name, name)
    separator = re.match(r"\s*:\s*", rest)
    if separator:
        rest = rest[separator.end() :]
    elif name != "info:doi/" and not (kind in {"doi", "pmid", "pmcid", "arxiv"} and rest[:1].isspace()):
        return None
    rest = rest.strip()
    if kind == "arxiv":  # the form of citations: arXiv:2401.00042v1 [cs.CL]
        rest = re.sub(r"\s*\[[a-zA-Z.-]+\]$", "", rest)
    if kind == "doi":
        return _as_identifier("doi", _doi(rest)) or _from_address(rest)
    inner = _bare(rest) if re.match(r"(?i)arxiv|PMC|https?:", rest) else None
    if inner and inner.kind == kind:
        return inner
    match kind:
        case "arxiv":
            return _as_identifier(kind, _arxiv(rest))
        case "acl":
            return _as_identifier(kind, _acl(rest))
        case _:
            forms = {
                "pmcid": (r"(?:PMC)?0*([1-9]\d{0,9})(?:\.\d+)?", "PMC{}"),
                "pmid": (r"0*([1-9]\d{0,8})", "{}"),
                "openalex": (r"W0*([1-9]\d{0,11})", "W{}"),
                "s2": (r"([0-9a-f]{40})", "{}"),
                "file": (r"([0-9a-f]{64})", "{}"),
            }
            if kind in forms:
                return _as_identifier(kind, _pattern(forms[kind][0], rest, forms[kind][1]))
            found = re.fullmatch(r"[\w-]{4,24}", rest, re.ASCII)
            return _as_identifier(kind, found[0] if found else None)


def _as_identifier(kind: str, value: str | None) -> Identifier | None:
    if value is None:
        return None
    if kind == "doi" and (arxiv := ARXIV_DOI.fullmatch(value)):  # DataCite's DOIs of arXiv papers
        bare = _arxiv(arxiv[1])
        return Identifier("arxiv", bare) if bare else Identifier("doi", value)
    return Identifier(kind, value)  # pyright: ignore[reportArgumentType]


def _from_address(text: str) -> Identifier | None:
    found = re.match(r"(?i)(?:https?:)?//|(?=[a-z0-9.-]+\.[a-z]{2,}/)", text)
    if not found:
        return None
    rest = text[found.end() :]
    for kind, pattern in URL_FORMS:
        hit = pattern.fullmatch(rest)
        if not hit:
            continue
        value = unquote(hit[1])
        match kind:
            case "arxiv":
                value = _arxiv(re.sub(r"(?i)^arxiv:|\.pdf$|/$", "", value))
            case "doi":
                value = _doi(re.sub(r"(?i)^doi:\s*", "", hit[1]))
            case "acl":
                value = _acl(value)
            case "pmcid":
                value = _pattern(r"PMC0*([1-9]\d{0,9})", value, "PMC{}")
            case "pmid":
                value = _pattern(r"0*([1-9]\d{0,8})", value, "{}")
            case "openalex":
                value = _pattern(r"W0*([1-9]\d{0,11})", value, "W{}")
            case "s2":
                value = value.lower()
            case _:
                pass
        if value:
            return _as_identifier(kind, value)
    return None


def _bare(text: str) -> Identifier | None:
    """Read a value without prefix or address, of the kinds whose form cannot be anything else."""
    for kind, value in (
        ("arxiv", _arxiv(text)),
        ("doi", _doi(text, DOI_STRICT) if text.startswith("10.") else None),
        ("pmcid", _pattern(r"PMC0*([1-9]\d{0,9})(?:\.\d+)?", text, "PMC{}")),
        ("acl", _acl(text)),
        ("openalex", _pattern(r"W([1-9]\d{4,11})", text, "W{}")),
        ("s2", _pattern(r"([0-9a-f]{40})", text, "{}")),
        ("file", _pattern(r"([0-9a-f]{64})", text, "{}")),
    ):
        if value:
            return _as_identifier(kind, value)
    return None


def parse_identifier(text: str) -> Identifier | None:
    """Give the identifier that the whole of `text` is, in whichever usual dress, or None.

    Reads bare values, prefixes (`doi:`, `arXiv:`, `PMID:` and our own keys), and addresses of the known hosts.
    """
    plain = _clean(text)
    if len(plain) > 1 and plain[0] == "<" and plain[-1] == ">":
        plain = plain[1:-1].strip()
    if not plain or len(plain) > 1000:
        return None
    if re.match(r"(?i)url:", plain):
        plain = plain[4:].strip()
    return _prefixed(plain) or _from_address(plain) or _bare(plain)


def find_identifier_in_question(text: str) -> Identifier | None:
    """Give the identifier that a search question is, quotes and a question mark aside, or None for words."""
    plain = _clean(text).strip(_QUOTES).strip()
    return parse_identifier(plain) or parse_identifier(plain.rstrip("?!.,; "))


def arxiv_version(text: str) -> int | None:
    """Give the version that an arXiv id names in any dress (`arXiv:2401.00042v3` → 3), or None."""
    found = parse_identifier(text)
    if not found or found.kind != "arxiv":
        return None
    tail = re.search(re.escape(found.value.rpartition("/")[2]) + r"[vV](\d{1,3})", unquote(text))
    return int(tail[1]) if tail else None


def implied_identifiers(identifiers: Mapping[str, str]) -> dict[str, str]:
    """Give the identifiers in their one form, with those that follow from them; unreadable ones are left out.

    DataCite's `10.48550/arXiv.X` is the arXiv id X; ACL's `10.18653/v1/X` and `10.3115/v1/X` name anthology id X.
    """
    known: dict[str, str] = {}
    for kind, value in identifiers.items():
        if not value or not (plain := normalize(kind, value) or (kind == "doi" and _arxiv_of_doi(value))):
            continue
        if kind == "doi" and (arxiv := _arxiv_of_doi(plain) or _arxiv_of_doi(value)):
            known.setdefault("arxiv", arxiv)
            continue
        known[kind] = plain
        if (
            kind == "doi"
            and (acl := re.fullmatch(r"10\.(?:18653|3115)/v1/(.+)", plain))
            and (anthology := _acl(acl[1]))
        ):
            known.setdefault("acl", anthology)
    return known


def _arxiv_of_doi(text: str) -> str | None:
    found = parse_identifier(text)
    return found.value if found and found.kind == "arxiv" else None


def paper_key(identifiers: Mapping[str, str], sha256: str | None = None) -> str:
    """Give the key of a new paper: its first known identifier in the order of `KINDS`, else the hash of its file.

    Raises InputError when there is neither.
    """
    known = implied_identifiers(identifiers)
    for kind in KINDS:
        if kind in known:
            return f"{kind}:{known[kind]}"
    if sha256 and (plain := normalize("file", sha256)):
        return f"file:{plain}"
    raise InputError("A paper without identifier and without file has no key.", mend="Give an id or a file.")
