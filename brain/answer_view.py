"""Answers as people read them: hits with their passage, and with --explain the lists side by side."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from brain.common import make_console

_LISTS = ("passage_vector", "passage_bm25", "paper_vector")


def print_answer(answer: dict[str, Any], *, is_explained: bool) -> None:
    """The hits of one question; what is missing is said first."""
    console = make_console()
    for miss in answer.get("degraded", []):
        console.print(
            f"[yellow]without {miss['list']}: {miss['reason']}[/] {miss.get('detail') or ''}", highlight=False
        )
    if is_explained:
        console.print(_table(answer))
    for hit in answer["hits"]:
        head = ", ".join(str(part) for part in (_short(hit["authors"]), hit["year"], hit["paper_id"]) if part)
        console.print(
            f"[bold]{hit['rank']}. {_plain(hit['title'] or hit['paper_id'])}[/]  [dim]{_plain(head)}[/]",
            highlight=False,
        )
        passage = hit.get("passage")
        if passage:
            words = " ".join(passage["text"].split())
            shown = textwrap.shorten(words, 420, placeholder=" …")
            console.print(Padding(Text(shown), (0, 0, 0, 3)))
            console.print(f"   [dim]{_plain(_place(passage))}[/]", highlight=False)
    if not answer["hits"]:
        console.print("no hit" + (" (parts of the search were missing: see above)" if answer.get("degraded") else ""))


def print_papers(page: dict[str, Any]) -> None:
    """One page of papers as a table."""
    table = Table(box=None, pad_edge=False)
    for name in ("paper", "title", "year", "state", "verdict", "passages", "embedded"):
        table.add_column(name, overflow="fold" if name in {"paper", "title"} else "ellipsis")
    for row in page["papers"]:
        verdict = " ".join(
            str(part) for part in (row["verdict"], f"({row['reason']})" if row["reason"] else "") if part
        )
        table.add_row(
            _plain(row["paper_id"]), _plain(row["title"] or ""), str(row["year"] or ""), row["state"], _plain(verdict),
            str(row["n_passages"]), str(row["n_embedded"]),
        )  # fmt: skip
    console = make_console()
    console.print(table)
    shown = len(page["papers"])
    console.print(
        f"{shown} of {page['n']}" + (f"; more with --after {page['next']}" if page.get("next") else ""), markup=False
    )


def _table(answer: dict[str, Any]) -> Table:
    table = Table(title="where the scores come from", title_justify="left")
    for name in ("place", "paper", "score", *_LISTS, "boosts"):
        table.add_column(name)
    for hit in answer["hits"]:
        lists = hit["lists"]
        cells = [f"{lists[n]['rank']}. ({lists[n]['score']:.3f})" if lists.get(n) else "–" for n in _LISTS]
        boosts = ", ".join(f"{name} ×{value}" for name, value in (hit.get("boosts") or {}).items())
        table.add_row(str(hit["rank"]), _plain(hit["title"] or hit["paper_id"]), f"{hit['score']:.5f}", *cells, boosts)
    return table


def _place(passage: dict[str, Any]) -> str:
    pages = ""
    if passage.get("page_from"):
        same = passage["page_from"] == passage["page_to"]
        pages = f"page {passage['page_from']}" if same else f"pages {passage['page_from']}–{passage['page_to']}"
    where = f"{passage['part']} {passage['char_start']}:{passage['char_end']}"
    return " · ".join(part for part in (passage.get("section") or "", pages, where) if part)


def _short(authors: list[str]) -> str:
    return f"{authors[0]} et al." if len(authors) > 2 else " and ".join(authors)


def _plain(text: str) -> str:
    """Titles may hold square brackets, which are no markup."""
    return text.replace("[", r"\[")
