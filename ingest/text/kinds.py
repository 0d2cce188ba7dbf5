"""What a file is, told by its content and never by its name."""

from __future__ import annotations

import codecs
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
    rb"(?i)^\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(?:!doctype\s+html|html|head|body|title|meta)\b", re.DOTALL
)
_HTML_ANYWHERE = re.compile(rb"(?i)<(?:html|body|head|title|script|div|p|h1)[\s>]")
_JATS = re.compile(
    rb"<(?:[a-z]+:)?(?:article|pmc-articleset|book-part-wrapper)[\s/>]|<!DOCTYPE\s+(?:article|pmc-articleset)"
)
_XML = re.compile(rb"^\s*<(?:\?xml|!DOCTYPE|[a-zA-Z][\w:.-]*[\s>/])")
_MARKDOWN = re.compile(
    r"^(?:#{1,6} \S|```|~~~|\* \S|- \S|> \S|\|.+\|\s*$|={3,}\s*$)|\[[^\]\n]+\]\([^)\n]+\)|\*\*[^*\n]+\*\*", re.MULTILINE
)


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
    if content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        return True
    sample = content[:65536]
    n_controls = sum(sample.count(bytes([c])) for c in range(32) if c not in {9, 10, 12, 13, 27})
    return n_controls * 50 <= len(sample)


def is_markdown(content: bytes) -> bool:
    """Whether a text uses Markdown's marks on more than a stray line."""
    text = content[:65536].decode("utf-8", "replace")
    n_marks = len(_MARKDOWN.findall(text))
    return n_marks >= 2 or text.lstrip().startswith("# ")


def decode(content: bytes) -> str:
    """Return the text of bytes whose encoding nothing tells: its mark, UTF-8, else Windows-1252."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_BE, "utf-16"),
        (codecs.BOM_UTF16_LE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        n_bad = content.decode("utf-8", "replace").count("\ufffd")
        # A few broken bytes in UTF-8 stay marked; bytes that are mostly no UTF-8 are the old Western encoding.
        n_high = sum(content.count(bytes([b])) for b in range(0xC2, 0xF5))
        return content.decode("utf-8", "replace") if n_bad * 4 < n_high else content.decode("cp1252", "replace")


def _as_utf8(start: bytes) -> bytes:
    if start.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        return start.decode("utf-16", "replace").encode()
    return start.removeprefix(codecs.BOM_UTF8)
