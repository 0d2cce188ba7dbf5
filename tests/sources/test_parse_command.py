"""`brain source parse`: one JSON object a line, errors as lines, nothing for an empty search."""

from __future__ import annotations

import io
import json

import pytest

from brain.source import parse, parse_lines
from corpus.errors import UsageError
from tests.support import shared

FIELDS = {
    "source", "source_id", "identifiers", "title", "abstract", "authors", "year", "published_on", "venue", "locations",
    "n_citations", "references", "is_retracted",
}  # fmt: skip


def lines(name: str, *files: str, **given: object) -> list[dict[str, object]]:
    paths = [str(shared("sources", name, file)) for file in files]
    return [json.loads(line) for line in parse_lines(name, paths, **given)]  # pyright: ignore[reportArgumentType]


def test_works_are_printed_one_a_line(capsys: pytest.CaptureFixture[str]):
    parse("unpaywall", str(shared("sources", "unpaywall", "v2_10.1016_j.xgen.2025.100814_gold.json")))
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1
    work = json.loads(printed[0])
    assert work.keys() >= FIELDS
    assert work["identifiers"] == {"doi": "10.1016/j.xgen.2025.100814"}
    assert work["locations"][0].keys() >= {"url", "kind", "version", "licence"}
    assert work["abstract"] is None


def test_an_empty_search_prints_nothing():
    assert lines("semantic-scholar", "search_empty_200.json") == []


def test_an_error_is_one_line():
    assert lines("openalex", "work_by_doi_not_found_404.html", status=404) == [
        {"outcome": "absent", "detail": "openalex answered (HTTP 404): 404 Not Found – Not Found", "retry_after_s": None}
    ]  # fmt: skip


def test_an_error_does_not_end_the_run():
    found = lines("arxiv", "excerpt_error_429.txt", "query_id_1605.08386.atom.xml")
    assert found[0]["outcome"] == "throttled"
    assert found[1]["source_id"] == "1605.08386"


def test_the_status_outweighs_the_body():
    assert lines("crossref", "works_query_no_hits.json", status=503)[0]["outcome"] == "down"


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Rate exceeded.")))
    assert [json.loads(line)["outcome"] for line in parse_lines("arxiv", ["-"])] == ["throttled"]


def test_an_unknown_source_names_the_nearest():
    with pytest.raises(UsageError, match="europe-pmc"):
        list(parse_lines("europepmc", []))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.json"):
        list(parse_lines("arxiv", [str(tmp_path / "nothing.json")]))
