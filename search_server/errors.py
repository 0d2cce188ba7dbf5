"""What can go wrong while answering, as problems that HTTP shows by their `kind`.

SearchProblem
├── EmptyQuestion, BadParameter, UnknownTopic, UnknownPaper   the caller's (4xx)
└── DatabaseGone, DatabaseUnsupported, Overloaded, TimedOut   ours (503, 504)
"""

from __future__ import annotations

from typing import ClassVar

from corpus.errors import BrainError


class SearchProblem(BrainError):
    """A question that is not answered, with the reason and the mend."""

    kind: ClassVar[str] = "failed"
    title: ClassVar[str] = "The question could not be answered"
    status: ClassVar[int] = 500
    retry_after_s: ClassVar[int | None] = None


class EmptyQuestion(SearchProblem):
    """The question has no character left after trimming."""

    kind = "empty-question"
    title = "The question is empty"
    status = 400
    exit_code = 2


class BadParameter(SearchProblem):
    """A parameter is unknown, given twice, or out of its bounds."""

    kind = "bad-parameter"
    title = "A parameter cannot be used"
    status = 400
    exit_code = 2

    def __init__(self, what: str, *, mend: str = "", parameter: str = "") -> None:
        super().__init__(what, mend=mend)
        self.parameter = parameter


class UnknownTopic(SearchProblem):
    """No topic has this name; `nearest` are those that look alike."""

    kind = "unknown-topic"
    title = "There is no such topic"
    status = 404
    exit_code = 2

    def __init__(self, topic: str, nearest: list[str]) -> None:
        self.topic = topic
        self.nearest = nearest
        near = f"The nearest: {', '.join(repr(n) for n in nearest)}." if nearest else "There are no topics yet."
        super().__init__(f"There is no topic {topic!r}.", mend=near)


class UnknownPaper(SearchProblem):
    """No paper has this key or identifier."""

    kind = "unknown-paper"
    title = "There is no such paper"
    status = 404
    exit_code = 1


class DatabaseGone(SearchProblem):
    """No answer from the database."""

    kind = "database-unavailable"
    title = "The database does not answer"
    status = 503
    exit_code = 4
    transient = True
    retry_after_s = 2


class DatabaseUnsupported(SearchProblem):
    """The database lacks our schema, a right, or is too old."""

    kind = "unsupported-database"
    title = "The database cannot be used"
    status = 503
    exit_code = 5


class Overloaded(SearchProblem):
    """More questions wait than are let wait."""

    kind = "overloaded"
    title = "Too many questions at once"
    status = 503
    transient = True
    retry_after_s = 1


class TimedOut(SearchProblem):
    """No list answered within its time."""

    kind = "time-out"
    title = "The question took too long"
    status = 504
    transient = True
    retry_after_s = 2
