"""Which of the five outcomes an answer is: by its status, and by what it says where the status lies or is unknown.

Services report errors inside HTTP 200, in JSON, XML, HTML and plain text; the words decide there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from corpus.errors import SourceAbsent, SourceDown, SourceError, SourceNonsense, SourceRefused, SourceThrottled
from ingest.sources.base import Answer
from ingest.sources.words import plain, tidy

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
    r"could not (?:be found|find)|not available for|has been (?:removed|deleted|withdrawn)|empty result",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"unavailable|maintenance|temporar|internal (?:server )?error|server error|time[d]?[ -]?out|overload|bad gateway|"
    r"try (?:again|later)|backend|service error|out of service|unexpected error|connection (?:refused|reset)|too busy",
    re.IGNORECASE,
)
_CHALLENGE = re.compile(
    r"captcha|cf-chl|cf_chl|challenge-platform|challengerequired|<title>\s*just a moment|not a robot|unusual traffic|"
    r"verify (?:that )?you are (?:a )?human|checking your browser|<title>\s*(?:access denied|attention required)|"
    r"ddos protection|bot (?:verification|detection)",
    re.IGNORECASE,
)
_STATUS_IN_TITLE = re.compile(r"(?<![\d.])([45]\d\d)(?![\d.])")
_ERROR_WORD = re.compile(
    r"error|not found|too many|forbidden|unavailable|bad|gateway|internal|denied|request|unauthori|time|gone|http|"
    r"^\W*\d{3}\W*$",
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


def _html_words(text: str) -> tuple[str, str]:
    """Title and first heading of an HTML page, and its first words."""
    heads = [
        plain(found[2]) for found in re.finditer(r"<(title|h1)\b[^<>]*>(.*?)</\1", text, re.IGNORECASE | re.DOTALL)
    ]
    return " – ".join(dict.fromkeys(word for word in heads if word)), plain(re.sub(r"(?s)<[^<>]*>", " ", text[:4000]))


def is_html(text: str) -> bool:
    """Tell whether a body begins like an HTML page."""
    return bool(re.match(r"(?is)\s*(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html\b|<head\b|<body\b|<title\b)", text))


def message_of(answer: Answer) -> tuple[str, str]:
    """Give the words of an error body, for judging (short) and for people."""
    text = decoded(answer)
    if text.lstrip()[:1] in "{[" and text.strip():
        found = json_message(text)
        if found:
            return found, found
    if "<" in text[:200]:
        head, body = _html_words(text)
        said = head or body[:300]
        return said, f"{said}: {body[:200]}" if head and body else said
    short = tidy(text[:1000])
    return short, short


def json_message(text: str) -> str | None:
    """Give the error words of a JSON body, or None."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return json_error(value) or tidy(text[:300])


def decoded(answer: Answer) -> str:
    """Give the body as text: by its byte order mark, the charset of its content type, else as UTF-8."""
    body = answer.body
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(codec, "replace")
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", answer.content_type, re.IGNORECASE)
    try:
        return body.decode(found[1] if found else "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def json_error(value: object) -> str | None:
    """Give the message of a JSON value that is an error by its own words, in any of the services' shapes, or None."""
    if not isinstance(value, Mapping):
        return None
    parts: list[str] = []
    error = value.get("error") or value.get("Error") or value.get("ERROR")
    if isinstance(error, Mapping):
        parts += [str(error.get(key)) for key in ("code", "type", "name", "msg", "message", "detail") if error.get(key)]
    elif error and error is not True:
        parts.append(str(error))
    for item in value.get("errors") or [] if isinstance(value.get("errors"), list) else []:
        parts.append(
            " ".join(str(item[key]) for key in ("code", "title", "message", "detail", "name") if item.get(key))
            if isinstance(item, Mapping)
            else str(item)
        )
    failed = (
        bool(parts)
        or error is True
        or "errCode" in value
        or "errMsg" in value
        or str(value.get("status", "")).lower() in {"failed", "error", "fail"}
        or bool(status_in(value))
    )
    message = value.get("message")
    if isinstance(message, list):
        message = " ".join(
            f"{item.get('type', '')} {item.get('message', '')}" if isinstance(item, Mapping) else str(item)
            for item in message
        )
    lonely = isinstance(message, str) and set(value) <= {"message", "status", "code", "documentation_url", "requestId"}
    if not failed and not lonely:
        return None
    parts += [str(value[key]) for key in ("errMsg", "detail", "title", "name") if isinstance(value.get(key), str)]
    if isinstance(message, str):
        parts.append(message)
    return tidy(" ".join(dict.fromkeys(parts))) or "an error without words"


def status_in(value: object) -> int | None:
    """Give the HTTP status of an error that a JSON object names itself, or None."""
    if not isinstance(value, Mapping):
        return None
    error = value.get("error")
    errors = value.get("errors")
    places = [value, error, errors[0] if isinstance(errors, list) and errors else None]
    for place in places:
        if not isinstance(place, Mapping):
            continue
        for key in ("HTTP_status_code", "http_status", "status", "statusCode", "status_code", "code", "errCode"):
            word = str(place.get(key, ""))
            if re.fullmatch(r"[45]\d\d", word):
                return int(word)
    return None


def raise_if_json_error(source: str, value: object, answer: Answer) -> None:
    """Raise the outcome that a JSON value names as its error; do nothing where it is none."""
    message = json_error(value)
    if message is None:
        return
    named = status_in(value)
    kind = kind_of(named, message)
    if named is None and kind is SourceNonsense:
        kind = SourceRefused if "error" in message.lower() and not message.startswith("an error") else kind
    raise failure(source, kind, message, answer)


def raise_for_status(source: str, answer: Answer) -> None:
    """Raise the outcome of an answer whose status is no success; do nothing for 2xx and for unknown statuses."""
    status = answer.status
    if status is None or 200 <= status < 300:
        return
    judged, said = message_of(answer)
    challenged = _CHALLENGE.search(decoded(answer)[:20000]) or _CHALLENGE.search(answer.header("location") or "")
    if status < 400:
        kind = SourceRefused if challenged else SourceNonsense
        raise failure(source, kind, said or "a redirect that was not followed", answer)
    kind = SourceRefused if challenged and status in {401, 403} else kind_of(status, judged)
    raise failure(source, kind, said, answer)


def raise_unreadable(source: str, answer: Answer, wanted: str) -> NoReturn:
    """Raise the outcome of a success that does not hold what was wanted: an error page, a plain message, rubbish."""
    text = decoded(answer)
    if not text.strip():
        raise nonsense(source, f"an empty body where {wanted} was expected", answer)
    if is_html(text):
        head, body = _html_words(text)
        if _CHALLENGE.search(text[:20000]):
            raise failure(source, SourceRefused, f"a page that keeps programs out: {head or body[:100]}", answer)
        said = head or body[:200]
        number = _STATUS_IN_TITLE.search(said)
        if number and _ERROR_WORD.search(said):
            raise failure(source, kind_of(int(number[1]), said), said, answer)
        kind = kind_of(None, said) if len(said) < 200 else SourceNonsense
        raise failure(source, kind, f"an HTML page where {wanted} was expected: {said}", answer)
    if text.lstrip()[0] not in "{[<" and len(text) < 2000:
        kind = kind_of(None, tidy(text))
        raise failure(source, kind, tidy(text), answer)
    raise nonsense(source, f"something that is not {wanted}, or only a part of it: {tidy(text[:120])}", answer)
