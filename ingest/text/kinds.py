"""What a file is, told by its content and never by its name."""

from __future__ import annotations

import codecs
import contextlib
import itertools
import re

from ingest.text.result import Kind

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"PK\x03\x04", "a ZIP archive or Office file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"%!PS", "a PostScript file"),
    (b"{\\rtf", "an RTF file"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "a database"),
)
_PDF_WINDOW = 1024  # ISO 32000, implementation notes: the header may stand anywhere in the first 1,024 bytes
_HTML = re.compile(
    rb"(?i)^\s*(?:<!--(?:(?!-->).)*-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype\s+html|html|head|body|title|meta)\b", re.DOTALL
)
_HTML_ANYWHERE = re.compile(rb"(?i)<(?:html|body|head|title|script|div|p|h1)[\s>]")
_JATS = re.compile(
    rb"<(?:[a-z]+:)?(?:article|pmc-articleset|book-part-wrapper)[\s/>]|<!DOCTYPE\s+(?:article|pmc-articleset)"
)
_XML = re.compile(rb"^\s*<(?:\?xml|!DOCTYPE|[a-zA-Z][\w:.-]*[\s>/])")
_MARKDOWN = re.compile(  # lengths are bounded, so that no file makes the search try every end for every beginning
    r"^(?:#{1,6} \S|```|~~~|\* \S|- \S|> \S|\|.{1,500}\|[ \t]{0,20}$|={3,}\s*$)"
    r"|\[[^\]\n]{1,300}\]\([^)\n]{1,300}\)|\*\*[^*\n]{1,300}\*\*",
    re.MULTILINE,
)
_NOT_ASCII = bytes(range(128, 256))
_ENOUGH_MARKS = 2
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
_SURROGATES = re.compile(rb"(?:\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf])|\xed[\xa0-\xbf][\x80-\xbf]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # bytes that are nothing in Windows-1252


def find_kind(content: bytes) -> tuple[Kind, str]:
    """Return the kind of a file and what it looks like in words (for the reason of a refusal)."""
    head = content[:_PDF_WINDOW]
    if b"%PDF-" in head:
        return "pdf", "a PDF"
    if not content.strip():
        return "unknown", "an empty file"
    for signature, words in _SIGNATURES:
        if content.startswith(signature):
            return "unknown", words
    start = _as_utf8(content[:8192])
    if _JATS.search(start) and _XML.match(start) and not _HTML.match(start):
        return "jats", "a JATS article"
    if _HTML.match(start) or (_XML.match(start) and _HTML_ANYWHERE.search(start)):
        return "html", "an HTML page"
    if start.lstrip().startswith(b"<?xml"):
        return "unknown", "an XML file that is no JATS article"
    if not is_text(content):
        return "unknown", "a binary file"
    return ("markdown" if is_markdown(content) else "text"), "a text file"


def is_text(content: bytes) -> bool:
    """Whether the bytes read as text: hardly any control characters, in an encoding that is told or can be guessed."""
    if has_mark(content):
        return True
    sample = content[:65536]
    n_controls = sum(sample.count(bytes([c])) for c in range(32) if c not in {9, 10, 12, 13, 27})
    return n_controls * 50 <= len(sample)


def is_markdown(content: bytes) -> bool:
    """Whether a text uses Markdown's marks on more than a stray line."""
    text = content[:65536].decode("utf-8", "replace")
    n_marks = sum(1 for _ in itertools.islice(_MARKDOWN.finditer(text), _ENOUGH_MARKS))
    return n_marks >= _ENOUGH_MARKS or text.lstrip().startswith("# ")


def has_mark(content: bytes) -> bool:
    """Whether a byte order mark tells the encoding."""
    return content.startswith(_MARKS)


def decode(content: bytes) -> str:
    """Return the text of bytes whose encoding nothing tells: its mark, UTF-8, else Windows-1252.

    Surrogates that were encoded one by one become their character, a lone one U+FFFD. A file that is mostly valid UTF-8 is
    UTF-8, its broken bytes U+FFFD each; bytes that are hardly ever valid are the old Western encoding.
    """
    if has_mark(content):
        is_utf8 = content.startswith(codecs.BOM_UTF8)
        return (
            _SURROGATES.sub(_as_character, content).decode("utf-8-sig", "replace")
            if is_utf8
            else content.decode("utf-16", "replace")
        )
    with contextlib.suppress(UnicodeDecodeError):
        return content.decode("utf-8")
    mended = _SURROGATES.sub(_as_character, content)
    text = mended.decode("utf-8", "replace")
    n_stated = mended.count(b"\xef\xbf\xbd")
    n_bad = text.count("\ufffd") - n_stated
    n_valid = len(text) - n_bad - len(mended.translate(None, _NOT_ASCII))
    if n_valid * 4 >= n_bad and (n_valid or not n_bad):
        return text
    return text if _UNDEFINED.search(mended) else content.decode("cp1252", "replace")


def _as_character(match: re.Match[bytes]) -> bytes:
    pair = match[0].decode("utf-8", "surrogatepass")
    return (
        pair.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        if len(pair) == 2
        else b"\xef\xbf\xbd"
    )


def _as_utf8(start: bytes) -> bytes:
    if start.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        return start.decode("utf-16", "replace").encode()
    return start.removeprefix(codecs.BOM_UTF8)
