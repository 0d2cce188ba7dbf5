"""Finding, checking and choosing the full text of a paper."""

from ingest.fulltext.finder import Attempt, FullText, FullTextFinder, Search
from ingest.fulltext.rank import known_locations, ranked
from ingest.fulltext.verify import Verification, verify, verify_identity
from ingest.fulltext.wanted import Wanted

__all__ = [
    "Attempt", "FullText", "FullTextFinder", "Search", "Verification", "Wanted", "known_locations", "ranked", "verify",
    "verify_identity",
]  # fmt: skip
