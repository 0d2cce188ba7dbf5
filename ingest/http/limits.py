"""How often each host is asked: its published limit, what its answers ask for, and a breaker when it fails.

The window slides: in no stretch of `per_s` seconds do more than `n_requests` begin. (A leaky bucket lets a burst and
its refill fall into one window, up to twice the limit, which services count as abuse.)
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corpus.errors import SourceDown, SourceThrottled
from ingest.http.clock import Clock
from ingest.http.ledger import Ledger, MemoryLedger, Window
from ingest.sources.base import Answer, HostRule

COURTESY = HostRule("*", 1, 1.0, 2, "nothing published: one request a second, two at once, is our own courtesy")
_N_FAILURES_TO_OPEN = 6
_FIRST_OPEN_S, _LONGEST_OPEN_S = 60.0, 900.0
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 5.0, 300.0


@dataclass
class _HostState:
    key: str
    windows: list[Window]
    slots: asyncio.Semaphore
    open_until: float = 0.0
    n_throttled: int = 0
    n_failures: int = 0
    n_opened: int = 0


class HostLimits:
    """The turns of all hosts. Waits at most `patience_s` for a host that asks for a pause; longer is an outcome."""

    def __init__(
        self,
        rules: Iterable[HostRule],
        clock: Clock,
        *,
        patience_s: float = 60.0,
        turn_patience_s: float = 900.0,
        default: HostRule = COURTESY,
        ledger: Ledger | None = None,
        random_source: random.Random | None = None,
    ) -> None:
        self._rules: dict[str, list[HostRule]] = {}
        for rule in rules:
            known = self._rules.setdefault(rule.host.lower(), [])
            if rule not in known:
                known.append(rule)
        self._clock = clock
        self._patience_s = patience_s
        self._turn_patience_s = turn_patience_s
        self._default = default
        self._ledger: Ledger = ledger or MemoryLedger()
        self._random = random_source or random.Random()  # noqa: S311 (jitter, no secret)
        self._states: dict[str, _HostState] = {}

    def rules_of(self, host: str) -> list[HostRule]:
        """Give the rules that a host is asked under; a shared allowance is that of the host that it is shared with."""
        rules = self._rules.get(host.lower())
        if not rules:
            return [self._default]
        shared = rules[0].shared_with
        return self._rules.get(shared.lower(), rules) if shared else rules

    def _state(self, host: str) -> _HostState:
        host = host.lower()
        rules = self._rules.get(host)
        key = (rules[0].shared_with or host).lower() if rules else host
        state = self._states.get(key)
        if state is None:
            rules = self.rules_of(host)
            state = self._states[key] = _HostState(
                key=key,
                windows=[(rule.n_requests, rule.per_s) for rule in rules],
                slots=asyncio.Semaphore(min(rule.concurrency for rule in rules)),
            )
        return state

    async def acquire(self, host: str) -> None:
        """Wait for a turn to ask the host; `release` gives the place back.

        Raises SourceThrottled when the wait would be too long, and SourceDown while the breaker is open.
        """
        state = self._state(host)
        await state.slots.acquire()
        try:
            await self._wait_for_turn(host, state)
        except BaseException:
            state.slots.release()
            raise

    def release(self, host: str) -> None:
        """Give the place back: the answer has been read to its end, or given up."""
        self._state(host).slots.release()

    async def _wait_for_turn(self, host: str, state: _HostState) -> None:
        while True:
            now = self._clock.now()
            if state.open_until > now:
                wait = state.open_until - now
                raise SourceDown(
                    f"{host} has failed {state.n_failures} times in a row and is left alone for {math.ceil(wait)} s.",
                    retry_after_s=wait,
                )
            paused_until = self._ledger.paused_until(state.key)
            if paused_until - now > self._patience_s:
                wait = paused_until - now
                raise SourceThrottled(f"{host} asks to wait {math.ceil(wait)} s.", retry_after_s=wait)
            latest = now + max(self._turn_patience_s, self._patience_s)
            start = self._ledger.reserve(state.key, state.windows, max(now, paused_until), latest)
            if start > latest:
                raise SourceThrottled(f"The limit of {host} is used up.", retry_after_s=start - now)
            if start > now:
                await self._clock.sleep(start - now)
            # While we waited, an answer to somebody else may have asked everybody for a pause.
            if max(self._ledger.paused_until(state.key), state.open_until) <= max(start, self._clock.now()):
                return

    def note_success(self, host: str) -> None:
        """Record that the host works and lets us in."""
        state = self._state(host)
        state.n_failures = state.n_throttled = state.n_opened = 0

    def note_throttled(self, host: str, retry_after_s: float | None) -> float:
        """Record that the host asks for a pause, and give its length: as asked for, else growing each time."""
        state = self._state(host)
        state.n_failures = 0
        state.n_throttled += 1
        if retry_after_s is None:
            growing = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (state.n_throttled - 1))
            retry_after_s = growing * (1 + self._random.random() / 4)
        self._ledger.pause(state.key, self._clock.now() + max(0.0, retry_after_s))
        return retry_after_s

    def note_down(self, host: str) -> None:
        """Record that the host failed; after six times in a row it is left alone for a minute, then ever longer."""
        state = self._state(host)
        state.n_failures += 1
        if state.n_failures >= _N_FAILURES_TO_OPEN:
            pause = min(_LONGEST_OPEN_S, _FIRST_OPEN_S * 2**state.n_opened)
            state.n_opened += 1
            state.open_until = self._clock.now() + pause
            state.n_failures = _N_FAILURES_TO_OPEN - 1  # after the pause one request tries; it decides

    def learn(self, host: str, headers: Mapping[str, str]) -> None:
        """Tighten the host's limit to what an answer states; nothing is ever loosened.

        Crossref sends `x-rate-limit-limit` and `-interval`, others `x-ratelimit-remaining` and `-reset`.
        """
        state = self._state(host)
        limit, interval = _number(headers.get("x-rate-limit-limit")), _number(headers.get("x-rate-limit-interval"))
        if limit and interval and limit >= 1 and not any(n / per_s <= limit / interval for n, per_s in state.windows):
            state.windows.append((int(limit), interval))
        remaining, reset = _number(headers.get("x-ratelimit-remaining")), _number(headers.get("x-ratelimit-reset"))
        # A large reset is a moment of the calendar, not a number of seconds; then the next 429 says how long.
        if remaining == 0 and reset is not None and reset <= 86_400:
            self._ledger.pause(state.key, self._clock.now() + reset)


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Give the seconds that the Retry-After header asks for, or None."""
    return Answer(b"", headers=headers).retry_after_s


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").strip().removesuffix("s"))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
