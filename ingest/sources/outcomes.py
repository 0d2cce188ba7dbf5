"""Which of the five outcomes an answer is: by its status, and by what it says where the status lies or is unknown.

Services report errors inside HTTP 200, in JSON, XML, HTML and plain text; the words decide there.
"""

from __future__ import annotations

import re

from corpus.errors import SourceAbsent, SourceDown, SourceError, SourceNonsense, SourceRefused, SourceThrottled
from ingest.sources.base import Answer
from ingest.sources.words import tidy

_THROTTLED = re.compile(
    r"too many (?:api )?requests|rate[ -]?limit|rate exceeded|limit exceeded|exceeded .{0,40}(?:limit|quota|budget)|"
    r"quota|throttl|slow down|surpassing the limit|(?:daily|monthly) (?:limit|budget)|insufficient (?:budget|credit)|"
    r"out of credits|budget (?:is )?(?:used|exhausted|exceeded)|retry[ -]after",
    re.IGNORECASE,
)
_FAULT = re.compile(  # says so even under a 404: the request, not the thing, is wrong
    r"cursor|invalid|not[ -]valid|malformed|no search criteria|unrecogni[sz]ed|unsupported|missing (?:a |the )?\w+|"
    r"required|must be|bad request|cannot be (?:larger|greater|less)|incorrect id format|(?:undefined|unknown) (?:field|"
    r"parameter|argument|filter)|syntax error|parse error|cannot parse|not an? (?:integer|number)|too (?:long|large)",
    re.IGNORECASE,
)
_NOT_ALLOWED = re.compile(
    r"forbidden|unauthori[sz]ed|not (?:allowed|permitted|authori[sz]ed)|access(?: is)? denied|permission|api[ -_]?key|"
    r"authentication|captcha|challenge|not a robot|blocked|illegal",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"not found|no such|doesn.?t exist|does not exist|do(?:es)? not correspond|unknown|isn.?t in|not in (?:the )?|"
    r"is ?not ?open ?access|no (?:posts?|records?|results?|match(?:es)?|document|paper|item)s?\b|gone|no longer|"
    r"could not (?:be found|find)|no html for|not available for|has been (?:removed|deleted|withdrawn)|empty result",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"unavailable|maintenance|temporar|internal (?:server )?error|server error|time[d]?[ -]?out|overload|bad gateway|"
    r"try (?:again|later)|backend|service error|out of service|unexpected error|connection (?:refused|reset)|too busy",
    re.IGNORECASE,
)
_UNITS = {"second": 1.0, "sec": 1.0, "s": 1.0, "minute": 60.0, "min": 60.0, "hour": 3600.0, "h": 3600.0, "day": 86400.0}
_WAIT = re.compile(r"(\d+(?:\.\d+)?)\s*(second|sec|s|minute|min|hour|h|day)s?\b", re.IGNORECASE)


def wait_named(message: str) -> float | None:
    """Give the seconds that a message asks to wait (`try again in 30 minutes and 8 seconds` → 1808), or None."""
    found = re.search(r"(?:try again|retry|wait|available again|resets?)\b(?P<rest>.{0,80})", message, re.IGNORECASE)
    parts = _WAIT.findall(found["rest"].partition("(")[0]) if found else []
    return sum(float(amount) * _UNITS[unit.lower()] for amount, unit in parts) if parts else None


def kind_of(status: int | None, message: str) -> type[SourceError]:
    """Classify a failure by its status (None or 2xx: by its words alone).

    404 and 410 are absence unless the words say that the request was at fault (Crossref's `cursor-invalid`); 401, 403
    and other 4xx are refusals unless the words speak of limits; 5xx is down unless they do.
    """
    by_words = None if status is None or status < 400 else status
    if by_words in {404, 410}:
        return SourceRefused if _FAULT.search(message) else SourceAbsent
    if by_words in {420, 429, 509} or _THROTTLED.search(message):
        return SourceThrottled
    if by_words in {408, 425} or (by_words and by_words >= 500):
        return SourceDown
    if by_words:
        return SourceRefused
    for pattern, kind in (
        (_FAULT, SourceRefused),
        (_DOWN, SourceDown),
        (_ABSENT, SourceAbsent),
        (_NOT_ALLOWED, SourceRefused),
    ):
        if pattern.search(message):
            return kind
    return SourceNonsense


_MENDS = {
    SourceAbsent: "Ask another source.",
    SourceThrottled: "It is asked again later by itself.",
    SourceDown: "It is asked again later by itself.",
    SourceRefused: "Look at the request, the key or the contact address.",
    SourceNonsense: "If this lasts, the source has changed its format: read the stored payload with `brain source parse`.",
}


def failure(source: str, kind: type[SourceError], message: str, answer: Answer | None = None) -> SourceError:
    """Make the error of one outcome, with the time to wait where answer or message names one."""
    wait = None
    if kind in {SourceThrottled, SourceDown}:
        wait = (answer.retry_after_s if answer else None) or wait_named(message)
        if wait is None and answer and kind is SourceThrottled:
            wait = _reset(answer)
    status = f" (HTTP {answer.status})" if answer and answer.status and answer.status != 200 else ""
    said = tidy(message)[:300] or "it said nothing"
    return kind(f"{source} answered{status}: {said}", mend=_MENDS[kind], retry_after_s=wait)


def _reset(answer: Answer) -> float | None:
    """Seconds until a budget is filled again, where X-RateLimit-Reset counts seconds (OpenAlex), not a date."""
    value = answer.header("x-ratelimit-reset") or answer.header("ratelimit-reset") or ""
    seconds = float(value) if re.fullmatch(r"\d{1,9}(?:\.\d+)?", value.strip()) else None
    return seconds if seconds is not None and seconds <= 86400 else None


def nonsense(source: str, message: str, answer: Answer | None = None) -> SourceError:
    """Make the error of an answer that cannot be read."""
    return failure(source, SourceNonsense, message, answer)
