"""What the HTTP stack is built from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from ingest.http.body import BodyLimits
from ingest.http.limits import COURTESY
from ingest.sources.base import HostRule

_VERSION = "0.1"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Whom we are, how long we wait, how much we take. `base_url` replays recordings; `cache_dir` None keeps nothing.

    `rules` are the published limits of hosts; `default_rule` is for all others.
    """

    contact_email: str | None = None
    base_url: str | None = None
    cache_dir: Path | None = None
    cache_for: timedelta = timedelta(days=1)
    rules: tuple[HostRule, ...] = ()
    default_rule: HostRule = COURTESY
    n_attempts: int = 4
    patience: timedelta = timedelta(seconds=60)
    max_redirects: int = 8
    connect_timeout: timedelta = timedelta(seconds=10)
    read_timeout: timedelta = timedelta(seconds=30)
    head_timeout: timedelta = timedelta(seconds=60)
    answer: BodyLimits = field(default_factory=lambda: BodyLimits(64 << 20, timedelta(seconds=90)))
    file: BodyLimits = field(default_factory=lambda: BodyLimits(200 << 20, timedelta(seconds=600)))

    @property
    def state_dir(self) -> Path | None:
        """The folder of cached answers and of the ledger; each replay has its own, so that recordings stay recordings."""
        if self.cache_dir is None or not self.base_url:
            return self.cache_dir
        return self.cache_dir / ("replay-" + hashlib.sha256(self.base_url.encode()).hexdigest()[:12])

    @property
    def user_agent(self) -> str:
        """Who we are and how to reach the user, as arXiv, Crossref, NCBI and others ask of every program."""
        contact = f"mailto:{self.contact_email}" if self.contact_email else "no contact address set"
        return f"research-brain/{_VERSION} ({contact})"
