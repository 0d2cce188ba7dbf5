"""The farm as tables: stages, nodes with their state in colour, topics, verdicts."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

_COLOURS = {
    "working": "green", "idle": "cyan", "loading": "yellow", "waiting": "yellow", "silent": "bold red", "stopped": "dim",
    "refused-by-canary": "bold red",
}  # fmt: skip


def render(status: dict[str, Any]) -> Group:
    """What `corpus.farm.status` gives, for people."""
    parts: list[Any] = [_headline(status), _stages(status)]
    if status["nodes"]:
        parts.append(_nodes(status["nodes"]))
    if status.get("topics"):
        names = ", ".join(f"{t.get('topic') or t.get('name')} ({t.get('n_papers', 0)})" for t in status["topics"][:12])
        parts.append(Text(f"topics: {names}"))
    if status.get("verdicts"):
        parts.append(Text("files: " + ", ".join(f"{n} {name}" for name, n in status["verdicts"].items())))
    if tested := status.get("selftest"):
        parts.append(_selftest(tested))
    return Group(*parts)


def _selftest(tested: dict[str, Any]) -> Text:
    failed = [each["part"] for each in tested.get("failed", ())]
    said = f"self-test of {tested.get('at')}: "
    if failed:
        return Text(said + f"{', '.join(failed)} do not work", style="bold red")
    return Text(said + f"all {tested.get('n_parts')} parts work")


def _headline(status: dict[str, Any]) -> Text:
    workers = [node for node in status["nodes"] if node.get("role") == "worker" and node.get("state") != "stopped"]
    n_working = sum(node.get("state") in {"working", "idle"} for node in workers)
    line = Text(
        f"{n_working} of {len(workers)} workers at work",
        style="bold green" if n_working == len(workers) else "bold red",
    )
    eta = status.get("eta_s")
    if eta:
        line.append(f"   the rest takes {_span(eta[0])} to {_span(eta[1])}", style="not bold default")
    return line


def _stages(status: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("stage", "waiting", "running", "failed", "done"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for stage, counts in status["stages"].items():
        about = "about " if counts.get("is_estimate") else ""
        failed = Text(f"{counts['failed']:,}", style="bold red" if counts["failed"] else "")
        table.add_row(
            stage, f"{about}{counts['waiting']:,}", f"{counts['running']:,}", failed, f"{about}{counts['done']:,}"
        )
    return table


def _nodes(nodes: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in (
        "node",
        "role",
        "state",
        "host",
        "device",
        "backend",
        "done",
        "per s (1/10/60 min)",
        "last sign",
        "last error",
    ):
        table.add_column(name, overflow="fold" if name == "last error" else "ellipsis")
    for node in nodes:
        state = str(node.get("state"))
        rates = node.get("rate") or {}
        shown = (
            "/".join(f"{float(value):.1f}" for value in list(rates.values())[:3])
            if isinstance(rates, dict)
            else str(rates)
        )
        table.add_row(
            str(node.get("name")), str(node.get("role")), Text(state, style=_COLOURS.get(state, "")), str(node.get("host")),
            str(node.get("device") or ""), str(node.get("backend") or ""), f"{node.get('n_texts') or 0:,}", shown,
            str(node.get("last_seen_at") or "")[:19], str(node.get("last_error") or "")[:120],
        )  # fmt: skip
    return table


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
