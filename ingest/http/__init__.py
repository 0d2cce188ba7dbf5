"""Safe, polite fetching: one stack for every source and every download."""

from ingest.http.body import BodyLimits, Downloaded
from ingest.http.clock import Clock, SystemClock, VirtualClock
from ingest.http.fetcher import Fetcher
from ingest.http.settings import HttpSettings

__all__ = ["BodyLimits", "Clock", "Downloaded", "Fetcher", "HttpSettings", "SystemClock", "VirtualClock"]
