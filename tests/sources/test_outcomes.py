"""The five outcomes: by status, and by what a body says where the status lies or is unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from corpus.errors import SourceError
from ingest.sources import SOURCES
from ingest.sources.base import Answer
from ingest.sources.outcomes import wait_named
from tests.sources.support import read

HTML = b"<!doctype html><html><head><title>%s</title></head><body><h1>%s</h1></body></html>"


def outcome(name: str, given: Answer) -> SourceError:
    with pytest.raises(SourceError) as caught:
        read(name, given)
    return caught.value


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("body", [b"", b"Something went wrong", b'{"message": "x"}', HTML % (b"Oops", b"Oops")])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "refused"), (401, "refused"), (403, "refused"), (404, "absent"), (410, "absent"), (414, "refused"),
        (422, "refused"), (429, "throttled"), (408, "down"), (500, "down"), (502, "down"), (503, "down"),
        (504, "down"), (301, "nonsense"),
    ],
)  # fmt: skip
def test_statuses(name: str, body: bytes, status: int, expected: str):
    assert outcome(name, Answer(body, status)).outcome == expected


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "biorxiv"])
def test_an_empty_success_is_nonsense(name: str):
    assert outcome(name, Answer(b" \n")).outcome == "nonsense"


def test_an_empty_success_of_biorxiv_is_its_being_down():
    assert outcome("biorxiv", Answer(b"", 200)).outcome == "down"


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (HTML % (b"Welcome", b"Our new home page"), "nonsense"),
        (HTML % (b"404 Not Found", b"Not Found"), "absent"),
        (HTML % (b"429 Too Many Requests", b"429"), "throttled"),
        (HTML % (b"503 Service Temporarily Unavailable", b"503"), "down"),
        (HTML % (b"502 Bad Gateway", b"502 Bad Gateway"), "down"),
        (HTML % (b"403 Forbidden", b"Forbidden"), "refused"),
        (HTML % (b"Just a moment...", b"Checking your browser"), "refused"),
        (b'<html><body><div class="g-recaptcha"></div></body></html>', "refused"),
        (b"Rate limit exceeded, please slow down", "throttled"),
        (b"This API is temporarily unavailable", "down"),
        (b'{"half": ["an', "nonsense"),
        (b"<feed><entry>", "nonsense"),
        (b"\x00\x01\x02\xff\xfe\x00", "nonsense"),
        (b"%PDF-1.7\n1 0 obj", "nonsense"),
    ],
)
def test_what_a_success_may_really_be(name: str, body: bytes, expected: str):
    assert outcome(name, Answer(body, 200)).outcome == expected
    assert outcome(name, Answer(body)).outcome == expected


JSON_SOURCES = (
    "core", "crossref", "datacite", "dblp", "doaj", "europe-pmc", "hal", "inspire-hep", "ncbi-pmc", "openalex",
    "openreview", "plos", "semantic-scholar", "unpaywall", "zenodo",
)  # fmt: skip


@pytest.mark.parametrize("name", JSON_SOURCES)
@pytest.mark.parametrize(
    "body", [b"{}", b'{"unknown": 1}', b"[1, 2]", b"[null, [", b"[" * 5000, b'{"a": 1' + b"0" * 9000]
)
def test_other_json_is_nonsense(name: str, body: bytes):
    assert outcome(name, Answer(body)).outcome == "nonsense"


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("openalex", b'{"error": "Invalid query parameters error.", "message": "foo is not a valid field."}', "refused"),
        ("openalex", b'{"error": "Too Many Requests", "message": "You have used up your daily budget."}', "throttled"),
        ("semantic-scholar", b'{"message": "Forbidden"}', "refused"),
        ("semantic-scholar", b'{"message": "Internal Server Error"}', "down"),
        ("semantic-scholar", b'{"message": "Endpoint request timed out"}', "down"),
        ("datacite", b'{"errors": [{"status": "400", "title": "Bad request"}]}', "refused"),
        ("zenodo", b'{"status": 429, "message": "30 per 1 minute"}', "throttled"),
        ("zenodo", b'{"status": 404, "message": "The persistent identifier does not exist."}', "absent"),
        ("inspire-hep", b'{"status": 404, "message": "PID does not exist."}', "absent"),
        ("hal", b'{"error": {"msg": "undefined field foo", "code": 400}}', "refused"),
        ("doaj", b'{"status": "not_found", "error": "no such article"}', "absent"),
        ("core", b'{"message": "Too Many Requests. You have exceeded your quota"}', "throttled"),
        ("ncbi-pmc", b'{"error": "API rate limit exceeded", "count": "11"}', "throttled"),
        ("ncbi-pmc", b'{"esearchresult": {"ERROR": "Search Backend failed: read timeout"}}', "down"),
        ("ncbi-pmc", b"<eSearchResult><ERROR>Invalid db name specified: foo</ERROR></eSearchResult>", "refused"),
        ("biorxiv", b'{"messages": [{"status": "no posts found"}], "collection": []}', "absent"),
        ("biorxiv", b'{"messages": [{"status": "Error: invalid date format"}]}', "refused"),
        ("openreview", b'{"name": "ChallengeRequiredError", "message": "challenge", "status": 403}', "refused"),
        ("dblp", b'{"result": {"status": {"@code": "500", "text": "internal error"}}}', "down"),
        ("europe-pmc", b"<responseWrapper><errCode>404</errCode><errMsg>No search criteria provided</errMsg></responseWrapper>",
         "refused"),
        ("ncbi-pmc", b'<OA><error code="idDoesNotExist">no such id</error></OA>', "absent"),
        ("arxiv", b'<OAI-PMH><error code="badArgument">from is no date</error></OAI-PMH>', "refused"),
        ("crossref", b'{"status": "error", "message-type": "rate-limit-exceeded", "message": "slow"}', "throttled"),
    ],
)  # fmt: skip
def test_errors_inside_a_success(name: str, body: bytes, expected: str):
    assert outcome(name, Answer(body, 200)).outcome == expected


def test_no_posts_in_an_interval_is_an_empty_search():
    body = b'{"messages": [{"status": "no posts found", "interval": "2026-01-01:2026-01-01"}], "collection": []}'
    assert read("biorxiv", Answer(body)).works == []


def test_an_empty_page_of_arxiv_that_should_not_be_empty_is_asked_for_again():
    feed = (
        b'<feed xmlns="http://www.w3.org/2005/Atom" xmlns:o="http://a9.com/-/spec/opensearch/1.1/">'
        b"<o:totalResults>%d</o:totalResults><o:startIndex>%d</o:startIndex><o:itemsPerPage>10</o:itemsPerPage></feed>"
    )
    assert outcome("arxiv", Answer(feed % (500, 100))).outcome == "down"
    assert read("arxiv", Answer(feed % (100, 100))).works == []


def test_refusals_that_speak_of_limits_are_throttling():
    assert outcome("zenodo", Answer(b'{"message": "Rate limit exceeded"}', 403)).outcome == "throttled"


def test_a_challenge_is_a_refusal_and_not_passed():
    challenge = Answer(b"", 302, headers={"Location": "https://openreview.net/challenge?captcha=1"})
    assert outcome("openreview", challenge).outcome == "refused"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "soon"}, None),
        ({"X-RateLimit-Reset": "58798"}, 58798.0),
        ({"X-RateLimit-Reset": "1790000000"}, None),  # a date, not a wait
        ({}, None),
    ],
)
def test_the_wait_that_an_answer_asks_for(headers: dict[str, str], expected: float | None):
    assert outcome("openalex", Answer(b"{}", 429, headers=headers)).retry_after_s == expected


def test_503_with_a_wait_is_throttling():
    error = outcome("arxiv", Answer(b"Retry after 10 seconds", 503, headers={"Retry-After": "10"}))
    assert (error.outcome, error.retry_after_s) == ("throttled", 10.0)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("surpassing the limit of 98 requests. Please try again in 30 minutes and 8 seconds (2026-08-05-1368)", 1808.0),
        ("please wait 2 hours", 7200.0),
        ("Rate exceeded.", None),
    ],
)
def test_the_wait_that_a_message_names(message: str, expected: float | None):
    assert wait_named(message) == expected


def test_openreview_names_its_wait():
    said = b'{"name": "RateLimitError", "message": "Too many requests: please try again in 1 minutes and 5 seconds"}'
    error = outcome("openreview", Answer(said, 429))
    assert (error.outcome, error.retry_after_s) == ("throttled", 65.0)


def test_messages_name_the_source_and_the_mend():
    error = outcome("plos", Answer(b'{"error": {"msg": "undefined field"}}', 400))
    assert str(error).startswith("plos answered (HTTP 400): undefined field")
    assert error.mend


def test_a_date_without_the_answers_own_is_counted_from_now():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    waits = [
        outcome("crossref", Answer(b"{}", 429, headers={"Retry-After": word})).retry_after_s
        for word in (soon, soon[:-4])
    ]
    assert all(wait is not None and 80 <= wait <= 91 for wait in waits)
