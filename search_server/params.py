"""The parameters of a question: one table for HTTP, its documentation, and the command line; read strictly."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from search_server.errors import BadParameter, EmptyQuestion
from search_server.filters import KINDS
from search_server.fusion import BOOST_RANGE, LISTS, ListName

MAX_QUESTION_CHARS = 8000
MAX_K = 100
WEIGHT_RANGE = (1e-9, 1e9)  # beyond, sums of shares leave the range of a double
MAX_PER_LIST = 200
MAX_PASSAGES = 10
FUSIONS = ("rrf", "blend")
BOOSTS = ("velocity", "citations", "recency")
_SURROGATES = re.compile("[\ud800-\udfff\0]")


@dataclass(frozen=True, slots=True)
class SearchParams:
    """One question, checked. None stands for the stored or built-in default."""

    q: str
    k: int = 8
    topic: tuple[str, ...] = ()
    exclude_topic: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    exclude_kind: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    per_list: int | None = None
    weights: dict[ListName, float] | None = None
    boosts: dict[str, float] = field(default_factory=dict)
    fusion: str | None = None
    explain: bool = False
    passages: int = 1
    highlights: bool = False


def _string(description: str, *, many: bool = False, **more: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", **more}
    return {"schema": {"type": "array", "items": schema} if many else schema, "description": description}


def _integer(description: str, low: int, high: int, default: int | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": low, "maximum": high}
    if default is not None:
        schema["default"] = default
    return {"schema": schema, "description": description}


SEARCH_PARAMETERS: dict[str, dict[str, Any]] = {
    "q": {**_string("The question, in plain words; an identifier, a DOI or an exact title finds its paper first.",
                    minLength=1, maxLength=MAX_QUESTION_CHARS), "required": True},
    "k": _integer("How many papers.", 1, MAX_K, 8),
    "topic": _string("Only papers of this topic (any of those given).", many=True),
    "exclude_topic": _string("No papers of this topic.", many=True),
    "kind": _string("Only this kind; sessions and exams come only when asked for.", many=True, enum=list(KINDS)),
    "exclude_kind": _string("Not this kind.", many=True, enum=list(KINDS)),
    "year_from": _integer("Published in this year or later.", 0, 9999),
    "year_to": _integer("Published in this year or earlier.", 0, 9999),
    "per_list": _integer("Entries of each list that are fused; a stored setting by default.", 1, MAX_PER_LIST),
    "weights": _string("Weights of the lists, such as passage_vector:0.5,passage_bm25:0.3,paper_vector:0.2; lists that are not "
                       "named have weight 0 and are not asked."),
    "boosts": _string(f"Factors such as velocity:1.1, within {BOOST_RANGE[0]} to {BOOST_RANGE[1]}; known: {', '.join(BOOSTS)}."),
    "fusion": _string("How the lists become one.", enum=list(FUSIONS)),
    "explain": {"schema": {"type": "boolean", "default": False}, "description": "Say why each hit stands where it stands."},
    "passages": _integer("Passages shown per paper, best first.", 1, MAX_PASSAGES, 1),
    "highlights": {"schema": {"type": "boolean", "default": False}, "description": "Where the question's words stand in each passage."},
}  # fmt: skip


def openapi_parameters(table: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The table as OpenAPI documents it."""
    return [{"name": name, "in": "query", "required": False, **about} for name, about in table.items()]


def clean_text(text: str) -> str:
    """Replace what no text column can hold: NUL and lone surrogates."""
    return _SURROGATES.sub("\ufffd", text)


def gather(items: Iterable[tuple[str, str]], table: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Collect query items by name. Raises BadParameter for unknown names, and for single ones given twice."""
    found: dict[str, list[str]] = {}
    for name, value in items:
        if name not in table:
            near = difflib.get_close_matches(name, table, 1, 0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(table)}."
            raise BadParameter(
                f"There is no parameter {clean_text(name)[:60]!r}.", mend=hint, parameter=clean_text(name)[:60]
            )
        if name in found and table[name]["schema"]["type"] != "array":
            raise BadParameter(f"The parameter {name!r} is given twice.", mend="Give it once.", parameter=name)
        found.setdefault(name, []).append(value)
    return found


def parse_search(items: Iterable[tuple[str, str]]) -> SearchParams:
    """Read a question's parameters. Raises EmptyQuestion or BadParameter, which name the thing and the mend."""
    found = gather(items, SEARCH_PARAMETERS)
    year_from, year_to = (
        integer_of(found, "year_from", SEARCH_PARAMETERS),
        integer_of(found, "year_to", SEARCH_PARAMETERS),
    )
    if year_from is not None and year_to is not None and year_from > year_to:
        raise BadParameter(
            f"year_from={year_from} is after year_to={year_to}.", mend="Turn them round.", parameter="year_from"
        )
    fusion = found.get("fusion", [None])[0]
    if fusion is not None and fusion not in FUSIONS:
        raise _choice("fusion", fusion, FUSIONS)
    weights = parse_weights(found["weights"][0]) if "weights" in found else None
    return SearchParams(
        q=question_of(found.get("q", [""])[0]),
        k=integer_of(found, "k", SEARCH_PARAMETERS) or 8,
        topic=tuple(dict.fromkeys(found.get("topic", ()))),
        exclude_topic=tuple(dict.fromkeys(found.get("exclude_topic", ()))),
        kind=kinds_of(found.get("kind", ()), "kind"),
        exclude_kind=kinds_of(found.get("exclude_kind", ()), "exclude_kind"),
        year_from=year_from,
        year_to=year_to,
        per_list=integer_of(found, "per_list", SEARCH_PARAMETERS),
        weights=weights,
        boosts=parse_boosts(found["boosts"][0]) if "boosts" in found else {},
        fusion=fusion,
        explain=boolean_of(found, "explain"),
        passages=integer_of(found, "passages", SEARCH_PARAMETERS) or 1,
        highlights=boolean_of(found, "highlights"),
    )


def question_of(text: str) -> str:
    """Trim a question and replace what cannot be stored. Raises EmptyQuestion or BadParameter (too long)."""
    q = clean_text(text).strip()
    if not q:
        raise EmptyQuestion("The question is empty.", mend="Ask with q=… of 1 to 8,000 characters.")
    if len(q) > MAX_QUESTION_CHARS:
        raise BadParameter(
            f"The question has {len(q):,} characters.", mend=f"At most {MAX_QUESTION_CHARS:,} are read.", parameter="q"
        )
    return q


def kinds_of(values: Sequence[str], name: str) -> tuple[str, ...]:
    """Check kinds of paper."""
    for value in values:
        if value not in KINDS:
            raise _choice(name, value, KINDS)
    return tuple(dict.fromkeys(values))


def integer_of(found: dict[str, list[str]], name: str, table: dict[str, dict[str, Any]]) -> int | None:
    """Read one whole number within its bounds."""
    if name not in found:
        return None
    text, schema = found[name][0].strip(), table[name]["schema"]
    low, high = schema["minimum"], schema["maximum"]
    if not re.fullmatch(r"[+-]?[0-9]{1,12}", text) or not low <= int(text) <= high:
        raise BadParameter(
            f"{name}={clean_text(found[name][0])[:40]!r} is not a whole number from {low} to {high}.",
            mend="Give one within the bounds.", parameter=name,
        )  # fmt: skip
    return int(text)


def boolean_of(found: dict[str, list[str]], name: str) -> bool:
    """Read a yes or no."""
    text = found.get(name, ["false"])[0].strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off"}:
        return False
    raise BadParameter(
        f"{name}={clean_text(text)[:40]!r} is neither true nor false.", mend="Give true or false.", parameter=name
    )


def parse_weights(text: str) -> dict[ListName, float]:
    """Read `list:weight,…`: finite, not negative, at least one above 0; unnamed lists are 0."""
    weights: dict[ListName, float] = dict.fromkeys(LISTS, 0.0)
    for name, number in _pairs("weights", text, LISTS).items():
        if not (number == 0 or WEIGHT_RANGE[0] <= number <= WEIGHT_RANGE[1]):
            raise BadParameter(
                f"The weight of {name} is {number}.",
                mend="Weights are finite and not negative: 0, or between 1e-9 and 1e9.", parameter="weights",
            )  # fmt: skip
        weights[name] = number  # pyright: ignore[reportArgumentType] - _pairs checked it
    if not any(weight > 0 for weight in weights.values()):
        raise BadParameter("All weights are 0.", mend="Give at least one list a weight above 0.", parameter="weights")
    return weights


def parse_boosts(text: str) -> dict[str, float]:
    """Read `name:factor,…` within the bounds of boosts."""
    low, high = BOOST_RANGE
    boosts = _pairs("boosts", text, BOOSTS)
    for name, factor in boosts.items():
        if not low <= factor <= high:
            raise BadParameter(
                f"The boost {name}:{factor} is out of bounds.", mend=f"Boosts are {low} to {high}.", parameter="boosts"
            )
    return boosts


def _pairs(parameter: str, text: str, names: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in clean_text(text).split(","):
        name, colon, number = (piece.strip() for piece in part.partition(":"))
        if name not in names:
            raise _choice(parameter, name, names)
        if name in found:
            raise BadParameter(f"{parameter} names {name} twice.", mend="Name it once.", parameter=parameter)
        if not colon or not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", number, re.ASCII):
            raise BadParameter(
                f"{parameter} gives {name} no number ({number[:30]!r}).", mend=f"Write {name}:0.5.", parameter=parameter
            )
        found[name] = float(number)
    return found


def _choice(parameter: str, value: str, choices: Sequence[str]) -> BadParameter:
    value = clean_text(value)[:60]
    near = difflib.get_close_matches(value, choices, 1, 0.4)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return BadParameter(
        f"{parameter} has no {value!r}.", mend=f"{hint}There are: {', '.join(choices)}.", parameter=parameter
    )
