"""Small PDFs, written by the tests themselves."""

import zlib

from ingest.text.limits import Limits
from ingest.text.pdf import extract_pdf, load_library

PROSE = (
    "The committee has shown that several methods improve the results when more training data can be found. "
    "Further work should examine whether the same effect appears in other languages and in other domains. "
)


def read(content):
    """What extraction makes of the bytes, in this process."""
    return extract_pdf(content, Limits())


class Pdf:
    """Writes lines at places; y counts from the top."""

    def __init__(self, width=612, height=792):
        self._library = load_library()
        self.document = self._library.open()
        self._size = (width, height)
        self.page = None

    def new_page(self):
        self.page = self.document.new_page(width=self._size[0], height=self._size[1])
        return self

    def line(self, x, y, text, size=10, font="helv", rotate=0):
        self.page.insert_text((x, y), text, fontsize=size, fontname=font, rotate=rotate)
        return self

    def lines(self, x, y, texts, size=10, leading=12, font="helv"):
        for number, text in enumerate(texts):
            self.line(x, y + number * leading, text, size, font)
        return self

    def bytes(self, **options):
        return self.document.tobytes(**options)


def wrapped(text, width):
    """Words in lines of at most `width` characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]


def raw_pdf(content, *, to_unicode=None, filters=None, extra_pages=(), page_extra=b""):
    """A PDF from a content stream as it is, for what no library writes."""
    streams = [content, *extra_pages]
    kids = b" ".join(b"%d 0 R" % (10 + 2 * n) for n in range(len(streams)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[" + kids + b"]/Count %d>>" % len(streams),
        4: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/FirstChar 0/LastChar 255/Encoding/WinAnsiEncoding"
        + (b"/ToUnicode 6 0 R" if to_unicode else b"")
        + b">>",
    }
    if to_unicode:
        cmap = (
            b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def "
            b"1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <20> <7E> <0020> endbfrange "
            + to_unicode
            + b" endcmap end end"
        )
        objects[6] = b"<</Length %d>>stream\n%s\nendstream" % (len(cmap), cmap)
    for n, stream in enumerate(streams):
        objects[10 + 2 * n] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 4 0 R>>>>/Contents %d 0 R%s>>"
            % (11 + 2 * n, page_extra)
        )
        what = b"/Filter[" + filters + b"]" if filters and n == 0 else b""
        objects[11 + 2 * n] = b"<</Length %d%s>>stream\n%s\nendstream" % (len(stream), what, stream)
    out = b"%PDF-1.4\n"
    offsets = {}
    for number in sorted(objects):
        offsets[number] = len(out)
        out += b"%d 0 obj%sendobj\n" % (number, objects[number])
    start = len(out)
    size = max(objects) + 1
    table = [b"%010d 00000 n \n" % offsets[n] if n in offsets else b"0000000000 65535 f \n" for n in range(size)]
    return out + b"xref\n0 %d\n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        size,
        b"".join(table),
        size,
        start,
    )


def shown(*lines, x=72, y=700, leading=14, size=12):
    """A content stream that shows lines; each is the bytes of a PDF string."""
    body = b" ".join(b"1 0 0 1 %d %d Tm (%s) Tj" % (x, y - n * leading, line) for n, line in enumerate(lines))
    return b"BT /F %d Tf %s ET" % (size, body)


def flate_bomb(n_mib):
    """A stream that unpacks twice, to n_mib MiB of spaces."""
    packer = zlib.compressobj(9)
    inner = b"".join(packer.compress(b" " * 2**20) for _ in range(n_mib)) + packer.flush()
    return zlib.compress(inner, 9)
