"""Bodies of answers: as text, as JSON, and the errors that they hold in whatever shape the service prefers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from corpus.errors import SourceNonsense, SourceRefused, SourceThrottled
from ingest.sources.base import Answer
from ingest.sources.outcomes import failure, kind_of, nonsense
from ingest.sources.words import plain, tidy

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


_XML_MESSAGE = r"(?s)<(summary|error|ERROR|message|Message|errMsg|detail)\b[^<>]*>(.*?)</\1>"


def _html_words(text: str) -> tuple[str, str]:
    """Title and first heading of an HTML page, and its first words."""
    heads = [
        plain(found[2]) for found in re.finditer(r"<(title|h1)\b[^<>]*>(.*?)</\1", text, re.IGNORECASE | re.DOTALL)
    ]
    return " – ".join(word for word in dict.fromkeys(heads) if word), plain(re.sub(r"(?s)<[^<>]*>", " ", text[:4000]))


def is_html(text: str) -> bool:
    """Tell whether a body begins like an HTML page."""
    return bool(
        re.match(
            r"(?is)\s*(?:<\?xml[^<>]*\?>\s*)?(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html\b|<head\b|<body\b|<title\b)",
            text,
        )
    )


def message_of(answer: Answer) -> str:
    """Give the words of an error body, short enough to be judged by them."""
    text = decoded(answer)
    if text.lstrip()[:1] in {"{", "["} and (found := json_message(text)):
        return found
    if "<" not in text[:200]:
        return tidy(text[:1000])
    if not is_html(text) and (found := re.search(_XML_MESSAGE, text)):
        return plain(found[2])
    head, body = _html_words(text)
    return head or body[:300]


def json_message(text: str) -> str | None:
    """Give the error words of a JSON body, or None."""
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
    if failed and isinstance(value.get("message-type"), str):
        parts.append(value["message-type"])
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
    said = message_of(answer)
    challenged = _CHALLENGE.search(decoded(answer)[:20000]) or _CHALLENGE.search(answer.header("location") or "")
    if status < 400:
        kind = SourceRefused if challenged else SourceNonsense
        raise failure(source, kind, said or "a redirect that was not followed", answer)
    kind = SourceRefused if challenged and status in {401, 403} else kind_of(status, said)
    if status == 503 and answer.header("retry-after"):  # how OAI-PMH and others say "slower"
        kind = SourceThrottled
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


def parse_json(source: str, answer: Answer) -> Any:
    """Read a JSON body; raises the outcome of an HTML page, a plain message, half a document, or an error object."""
    text = decoded(answer)
    if text.lstrip()[:1] not in {"{", "["}:
        raise_unreadable(source, answer, "JSON")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise_unreadable(source, answer, "JSON")
    raise_if_json_error(source, value, answer)
    if isinstance(value, list) and value and not any(item is None or isinstance(item, dict | list) for item in value):
        raise nonsense(source, "a JSON list of bare values", answer)
    return value
