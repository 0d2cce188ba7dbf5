"""`brain sources`: on, off, why, limit."""

from __future__ import annotations

import json

import pytest

from brain.sources import list_sources, sources
from ingest.sources import SOURCES


def test_every_source_is_shown():
    rows = {row["name"]: row for row in list_sources({})}
    assert rows.keys() == SOURCES.keys()
    assert not rows["unpaywall"]["is_on"]
    assert "BRAIN_CONTACT_EMAIL" in rows["unpaywall"]["lacks"][0]
    assert all(row["is_on"] for name, row in rows.items() if name != "unpaywall")
    assert rows["core"]["key"] == "BRAIN_CORE_API_KEY"
    assert rows["arxiv"]["limit"] == "1 in 3 s, 1 at once"


def test_an_address_and_keys_are_taken_from_the_environment():
    rows = {
        row["name"]: row
        for row in list_sources({"BRAIN_CONTACT_EMAIL": "reader@university.edu", "BRAIN_CORE_API_KEY": "k"})
    }
    assert rows["unpaywall"]["is_on"]
    assert rows["core"]["lacks"] == []


def test_counts_of_the_day_are_shown_where_there_are_any():
    rows = {row["name"]: row for row in list_sources({}, {"arxiv": {"n_found": 3, "n_throttled": 1}})}
    assert rows["arxiv"]["today"]["n_found"] == 3
    assert rows["arxiv"]["today"]["n_new"] is None


def test_printed(capsys: pytest.CaptureFixture[str]):
    sources()
    assert "unpaywall         off" in capsys.readouterr().out
    sources(json=True)
    assert len(json.loads(capsys.readouterr().out)) == len(SOURCES)
