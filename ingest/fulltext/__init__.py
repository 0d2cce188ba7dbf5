"""Finding, checking and choosing the full text of a paper."""
