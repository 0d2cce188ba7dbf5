"""JATS XML as PubMed Central and Europe PMC give it: front matter, body and back in reading order."""

from __future__ import annotations

from typing import Any

from ingest.text.blocks import Block, Role
from ingest.text.finish import finish
from ingest.text.inline import inline_text, local_name
from ingest.text.limits import Limits
from ingest.text.loose import first_identifiers, mend_blocks
from ingest.text.result import Extraction, refuse
from ingest.text.trees import parse_xml

_FLOATS = frozenset(
    {"fig", "fig-group", "table-wrap", "table-wrap-group", "boxed-text", "disp-formula-group", "supplementary-material"}
)
_KINDS = {
    "intro": "introduction", "introduction": "introduction", "background": "introduction",
    "methods": "method", "materials": "method", "materials|methods": "method", "materials-methods": "method", "subjects": "method",
    "results": "results", "cases": "results", "discussion": "discussion", "conclusions": "conclusion", "conclusion": "conclusion",
    "results|discussion": "results",
}  # fmt: skip
_NO_ABSTRACTS = frozenset({"graphical", "toc", "teaser", "video", "web-summary"})

_MAX_LEVEL = 100
"""Sections below that are no sections any more, only their paragraphs."""


def extract_jats(content: bytes, limits: Limits) -> Extraction:
    """Return the text of the first article in the XML."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    try:
        tree = parse_xml(content)
    except etree.LxmlError as error:
        return refuse("damaged", f"the XML cannot be read: {error}", kind="jats")
    root = tree.root
    if root is None:
        return refuse("damaged", "the XML cannot be read", kind="jats")
    article = (
        root if local_name(root) == "article" else next((n for n in root.iter() if local_name(n) == "article"), root)
    )
    reader = _Reader()
    title = reader.front(article)
    for part in article:
        if local_name(part) == "body":
            reader.section_content(part, 1)
        elif local_name(part) == "floats-group":
            reader.later.append(part)
    for part in article:
        if local_name(part) == "back":
            reader.back(part)
    for part in reader.later:
        reader.section_content(part, 1)
    blocks, n_replaced, language = mend_blocks(reader.blocks)
    own = first_identifiers([reader.ids.get("doi")], "")
    arxiv_id = reader.ids.get("arxiv")
    return finish(
        "jats",
        blocks,
        limits,
        title=title,
        is_cut=tree.is_cut,
        n_replaced_chars=n_replaced,
        doi=own.doi,
        arxiv_id=arxiv_id or own.arxiv_id,
        language=language,
    )


class _Reader:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.ids: dict[str, str] = {}
        self.later: list[Any] = []

    def front(self, article: Any) -> str | None:
        """Read title, identifiers and abstracts."""
        title: str | None = None
        meta = _find(article, "front", "article-meta")
        if meta is None:
            return None
        for node in meta:
            name = local_name(node)
            if name == "article-id":
                self.ids.setdefault(node.get("pub-id-type", ""), (node.text or "").strip())
            elif name == "title-group":
                found = _find(node, "article-title")
                title = _line(found) if found is not None else None
                if title:
                    self._add("title", title)
            elif name in {"abstract", "trans-abstract"} and node.get("abstract-type") not in _NO_ABSTRACTS:
                self._abstract(node, is_translated=name == "trans-abstract")
            elif name == "kwd-group":
                words = [_line(word) for word in node if local_name(word) == "kwd"]
                if words:
                    self._add("paragraph", "Keywords: " + ", ".join(words))
                    self.blocks[-1].opens = ("other", "keywords")
        return title

    def section_content(self, node: Any, level: int) -> None:
        """Read paragraphs, floats and subsections of a body, section or appendix."""
        if level > _MAX_LEVEL:
            for paragraph in node.iter():
                if local_name(paragraph) in {"title", "p"}:
                    self._add("paragraph", _line(paragraph))
            return
        for child in node:
            name = local_name(child)
            if name == "sec":
                self._section(child, level)
            elif name in {"p", "verse-group", "disp-quote", "statement", "speech"}:
                self._paragraph(child)
            elif name in {"list", "def-list"}:
                self._list(child)
            elif name in _FLOATS:
                self._float(child)
            elif name == "disp-formula":
                self._add("paragraph", _line(child))
            elif name == "ref-list":
                self._references(child)

    def back(self, node: Any) -> None:
        """Read acknowledgements, appendices, notes and references in their order."""
        for child in node:
            name = local_name(child)
            if name == "ref-list":
                self._references(child)
            elif name == "ack":
                self._heading(_title(child) or "Acknowledgements", 1, "acknowledgements")
                self.section_content(child, 2)
            elif name == "app-group":
                self.back(child)
            elif name == "app":
                self._heading(_title(child) or "Appendix", 1, "appendix")
                self.section_content(child, 2)
            elif name == "sec":
                self._section(child, 1)
            elif name in {"fn-group", "notes", "glossary", "bio"}:
                if _title(child):
                    self._heading(_title(child) or "", 1, None)
                for note in child.iter():
                    if local_name(note) == "p":
                        self._paragraph(note, "footnote")

    def _abstract(self, node: Any, *, is_translated: bool) -> None:
        title = _title(node) or "Abstract"
        self._heading(title, 1, "other" if is_translated else "abstract")
        start = len(self.blocks)
        for child in node:
            if local_name(child) == "p":
                self._paragraph(child)
            elif local_name(child) == "sec":
                # The parts of a structured abstract are paragraphs with a label, not sections of the paper.
                label = _title(child)
                texts = [_line(p) for p in child.iter() if local_name(p) == "p"]
                text = " ".join(text for text in texts if text)
                self._add(
                    "paragraph",
                    f"{label}: {text}" if label and not label.endswith((":", ".")) else f"{label or ''} {text}".strip(),
                )
        if len(self.blocks) == start:
            self._add("paragraph", _line(node).removeprefix(title).strip())

    def _section(self, node: Any, level: int) -> None:
        title = _title(node)
        label = next((_line(child) for child in node if local_name(child) == "label"), "")
        if title:
            kind = _KINDS.get((node.get("sec-type") or "").lower())
            self._heading(f"{label} {title}".strip(), level, kind)
        self.section_content(node, level + 1)

    def _heading(self, text: str, level: int, kind: str | None) -> None:
        self.blocks.append(Block("heading", " ".join(text.split()), level=level, kind=kind))

    def _paragraph(self, node: Any, role: Role = "paragraph") -> None:
        """A paragraph, then the floats and lists that stand inside it."""
        skip = _FLOATS | {"list", "def-list"}
        self._add(role, _line(node, skip))
        for child in node.iter():
            if child is node:
                continue
            name = local_name(child)
            if name in {"list", "def-list"} and not _is_inside(child, node, {"list", "def-list"} | _FLOATS):
                self._list(child)
            elif name in _FLOATS and not _is_inside(child, node, _FLOATS):
                self._float(child)

    def _list(self, node: Any) -> None:
        for item in node:
            if local_name(item) in {"list-item", "def-item"}:
                label = next((_line(child) for child in item if local_name(child) == "label"), "•")
                text = " ".join(_line(child) for child in item if local_name(child) != "label")
                self._add("paragraph", f"{label} {text}".strip())

    def _float(self, node: Any) -> None:
        name = local_name(node)
        if name in {"fig-group", "table-wrap-group"}:
            for child in node:
                if local_name(child) in _FLOATS:
                    self._float(child)
            return
        if name == "boxed-text":
            self.section_content(node, 3)
            return
        label = next((_line(child) for child in node if local_name(child) == "label"), "")
        captions = [_line(child) for child in node if local_name(child) == "caption"]
        caption = " ".join(part for part in (label.rstrip(".") + "." if label else "", *captions) if part)
        if caption:
            self._add("caption", caption)
        rows: list[str] = []
        for row in node.iter():
            if local_name(row) == "tr":
                cells = [_line(cell) for cell in row if local_name(cell) in {"td", "th"}]
                if any(cells):
                    rows.append("\t".join(cells))
        if rows:
            self.blocks.append(Block("table", "\n".join(rows)))
        for foot in node:
            if local_name(foot) == "table-wrap-foot":
                self._add("footnote", _line(foot))

    def _references(self, node: Any) -> None:
        self._heading(_title(node) or "References", 1, "references")
        for number, ref in enumerate((n for n in node.iter() if local_name(n) == "ref"), 1):
            label = next((_line(child) for child in ref if local_name(child) == "label"), f"{number}.")
            cited = next((child for child in ref.iter() if "citation" in local_name(child)), None)
            self._add("paragraph", f"{label} {_citation(cited) if cited is not None else _line(ref)}")

    def _add(self, role: Role, text: str) -> None:
        if text.strip():
            self.blocks.append(Block(role, text.strip()))


def _citation(node: Any) -> str:
    """A mixed citation is text as it stands; the parts of an element citation are put side by side."""
    if local_name(node) != "element-citation":
        return _line(node)
    names = [
        " ".join(part for part in (_text_of(name, "surname"), _text_of(name, "given-names")) if part)
        for name in node.iter()
        if local_name(name) == "name"
    ]
    rest = [
        _line(child)
        for child in node
        if local_name(child) in {"year", "article-title", "chapter-title", "source", "volume", "fpage", "lpage"}
    ]
    return ". ".join(part for part in (", ".join(name for name in names if name), *rest) if part) + "."


def _text_of(node: Any, name: str) -> str:
    found = _find(node, name)
    return _line(found) if found is not None else ""


def _line(node: Any, skip: frozenset[str] = frozenset()) -> str:
    return " ".join(inline_text(node, "", skip).split())


def _title(node: Any) -> str | None:
    return next((_line(child) for child in node if local_name(child) == "title"), None) or None


def _find(node: Any, *path: str) -> Any | None:
    for name in path:
        found = next((child for child in node if local_name(child) == name), None)
        if found is None:
            return None
        node = found
    return node


def _is_inside(node: Any, top: Any, names: frozenset[str] | set[str]) -> bool:
    above = node.getparent()
    while above is not None and above is not top:
        if local_name(above) in names:
            return True
        above = above.getparent()
    return False
