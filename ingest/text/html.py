"""HTML pages of papers: the article's own text without menus, scripts and what is hidden."""

# ruff: noqa: SIM905  lists of words read best as words

from __future__ import annotations

import re
from typing import Any

from ingest.text.blocks import Block
from ingest.text.characters import clean_text
from ingest.text.finish import finish
from ingest.text.headings import section_kind
from ingest.text.inline import inline_text
from ingest.text.limits import Limits
from ingest.text.loose import first_identifiers, mend_blocks
from ingest.text.result import Extraction, refuse
from ingest.text.trees import parse_html

_DROPPED = frozenset(
    "script style noscript template nav form button select input textarea iframe svg canvas object embed head link meta "
    "audio video dialog menu".split()
)
_BLOCKS = frozenset(
    "p div section article main li dd dt blockquote pre figcaption caption h1 h2 h3 h4 h5 h6 tr table ul ol dl figure body "
    "header footer aside address details summary hr center td th tbody thead tfoot fieldset html".split()
)
_CHROME = re.compile(
    r"\b(?:nav(?:bar|igation)?|menu|breadcrumbs?|cookie|banner|sidebar|social|share|advert\w*|site-header|site-footer|"
    r"skip-link|toolbar|related-articles|newsletter|login)\b",
    re.IGNORECASE,
)
_REFERENCES = re.compile(
    r"\b(?:references|ref-list|bibliography|biblist|citations?-list|ltx_bibliography)\b", re.IGNORECASE
)
_FOOTNOTES = re.compile(r"\b(?:footnotes?|fn-group|endnotes?|doc-footnote|doc-endnotes)\b", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_ERROR_PAGE = re.compile(
    r"\b(?:30[1278] (?:found|moved)|40[0-9] |403 forbidden|404|50[0-9] |access denied|just a moment|are you a robot|captcha|"
    r"attention required|enable javascript|checking your browser|page not found|object moved|error \d{3}|unusual traffic|"
    r"security check|verify you are human)",
    re.IGNORECASE,
)
_ERROR_PAGE_CHARS = 1500


def extract_html(content: bytes, limits: Limits) -> Extraction:
    """Return the text of a page; an error or bot-check page is refused with its own words as the reason."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    try:
        tree = parse_html(content)
    except etree.LxmlError as error:
        return refuse("no_pages", f"the HTML page cannot be read: {error}", kind="html")
    root = tree.root
    if root is None:
        return refuse("no_pages", "the HTML page holds no text", kind="html")
    metadata = _metadata(root)
    title = (
        metadata.get("citation_title")
        or metadata.get("dc.title")
        or _first_text(root, "h1")
        or metadata.get("og:title")
    )
    page_title = _first_text(root, "title")
    reader = _Reader()
    reader.walk(_main_part(root))
    reader.flush()
    text = " ".join(block.text for block in reader.blocks)
    if len(text) < _ERROR_PAGE_CHARS and (found := _ERROR_PAGE.search(f"{page_title or ''} {text[:600]}")):
        return refuse(
            "not_pdf",
            f"an error or bot-check page instead of a paper: {(page_title or found[0]).strip()[:120]}",
            kind="html",
        )
    title = title or page_title
    title_block = next(
        (b for b in reader.blocks if b.role == "heading" and title and b.text.casefold() == title.casefold()), None
    )
    if title_block is not None:
        title_block.role = "title"
    blocks, n_replaced, language = mend_blocks(reader.blocks)
    found_ids = first_identifiers(
        [metadata.get("citation_doi"), metadata.get("dc.identifier"), metadata.get("prism.doi")], text[:3000]
    )
    arxiv_id = metadata.get("citation_arxiv_id") or found_ids.arxiv_id
    return finish(
        "html",
        blocks,
        limits,
        title=clean_text(title)[0] if title else None,
        is_cut=tree.is_cut,
        n_replaced_chars=n_replaced,
        doi=found_ids.doi,
        arxiv_id=arxiv_id,
        language=language,
    )


class _Reader:
    """Collects blocks while walking the tree; text between two block elements is one paragraph."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._pieces: list[str] = []
        self._role: Any = "paragraph"
        self._in_references = False

    def walk(self, element: Any) -> None:
        """Read an element and what is below it; an explicit stack, since pages nest deeper than Python recurses."""
        stack: list[tuple[str, Any]] = [("open", element)]
        while stack:
            step, node = stack.pop()
            if step == "tail":
                self._pieces.append(node)
                continue
            if step == "close":
                self._close(node)
                continue
            if not isinstance(node.tag, str) or _is_dropped(node):
                continue
            if node.tag in {"table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "math", "figcaption", "caption"}:
                self._whole(node)
                continue
            if node.tag in _BLOCKS:
                self.flush()
                self._enter(node)
                stack.append(("close", node))
            elif (
                node.tag in {"sup", "sub", "a", "em", "i", "b", "strong", "span", "code", "br", "img"}
                and len(node) == 0
            ):
                self._pieces.append(inline_text(node, "".join(self._pieces[-1:])))
                continue
            for child in reversed(node):
                if child.tail:
                    stack.append(("tail", child.tail))
                stack.append(("open", child))
            if node.text:
                self._pieces.append(node.text)

    def flush(self) -> None:
        """End the running paragraph."""
        text = " ".join("".join(self._pieces).split())
        self._pieces.clear()
        if text:
            self.blocks.append(Block(self._role, text))
        self._role = "paragraph"

    def _enter(self, node: Any) -> None:
        label = f"{node.get('id', '')} {node.get('class', '')} {node.get('role', '')}"
        if node.tag in {"section", "div", "ol", "ul"} and _REFERENCES.search(label) and not self._in_references:
            self._in_references = True
            if not (
                self.blocks and self.blocks[-1].role == "heading" and section_kind(self.blocks[-1].text) == "references"
            ):
                self._pending_references = len(self.blocks)

    def _close(self, node: Any) -> None:
        if self._pieces and node.tag == "li" and not "".join(self._pieces).isspace():
            self._pieces.insert(
                0,
                "• "
                if node.getparent() is not None and node.getparent().tag == "ul" and not self._in_references
                else "",
            )
        label = f"{node.get('id', '')} {node.get('class', '')} {node.get('role', '')}"
        if _FOOTNOTES.search(label):
            self._role = "footnote"
        self.flush()
        pending = getattr(self, "_pending_references", None)
        if pending is not None and len(self.blocks) > pending:
            first = self.blocks[pending]
            if first.role != "heading":
                first.opens = ("references", "References")
            self._pending_references = None

    def _whole(self, node: Any) -> None:
        """Elements whose text is taken as one."""
        tag = node.tag
        if tag == "math":
            self._pieces.append(inline_text(node, ""))
            return
        self.flush()
        if tag == "table":
            rows = []
            for row in node.iter("tr"):
                cells = [" ".join(inline_text(cell, "").split()) for cell in row if cell.tag in {"td", "th"}]
                if any(cells):
                    rows.append("\t".join(cells))
            for caption in node.iter("caption"):
                self.blocks.append(Block("caption", " ".join(inline_text(caption, "").split())))
            # A table that only lays out a page holds paragraphs, not cells.
            self.blocks.append(Block("table", "\n".join(rows)))
        elif tag == "pre":
            self.blocks.append(Block("paragraph", inline_text(node, "").strip("\n")))
        else:
            text = " ".join(inline_text(node, "").split())
            if text and tag in {"figcaption", "caption"}:
                self.blocks.append(Block("caption", text))
            elif text:
                self._in_references = False
                level = int(tag[1])
                self.blocks.append(Block("heading", text, level=max(level - 1, 1)))


def _is_dropped(node: Any) -> bool:
    if node.tag in _DROPPED or node.get("hidden") is not None or node.get("aria-hidden") == "true":
        return node.tag != "math"
    style = node.get("style")
    if style and _HIDDEN.search(style):
        return True
    if node.tag in {"header", "footer", "aside"} and node.getparent() is not None and node.getparent().tag == "body":
        return True
    label = f"{node.get('class', '')} {node.get('id', '')} {node.get('role', '')}"
    return (
        node.tag in {"div", "ul", "section", "aside", "header", "footer"}
        and bool(_CHROME.search(label))
        and len(node.text_content()) < 4000
    )


def _main_part(root: Any) -> Any:
    """The article of the page: the largest of what is marked as such, if it holds a good part of the text."""
    body = root.find("body") if root.find("body") is not None else root
    total = len(body.text_content())
    marked = [*body.iter("article", "main"), *body.xpath(".//*[@role='main']")]
    best = max(marked, key=lambda node: len(node.text_content()), default=None)
    return best if best is not None and len(best.text_content()) > 0.4 * total else body


def _metadata(root: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = (meta.get("name") or meta.get("property") or "").lower()
        if name and meta.get("content"):
            found.setdefault(name, meta.get("content").strip())
    return found


def _first_text(root: Any, tag: str) -> str | None:
    for node in root.iter(tag):
        text = " ".join(node.text_content().split())
        if text:
            return text
    return None
