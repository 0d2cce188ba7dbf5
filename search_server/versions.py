"""Versions of one paper by their identifiers: preprint servers that write the version into the key.

arXiv ids are kept without a version, and bioRxiv's and medRxiv's DOIs too, so that their versions are one paper from the
start. These servers register a DOI for each version, so each version is a paper of its own until an answer shows it.
"""

from __future__ import annotations

import re

# Registrant and form of the version: F1000 and its platforms, Research Square, preprints.org, ChemRxiv, OSF, PeerJ, eLife,
# Zenodo-like numbers are left alone: their consecutive numbers name different things.
_VERSIONED = re.compile(
    r"^doi:(10\.(?:12688|21203|20944|26434|31234|31219|31222|31235|7287|7554|5281)/.+?)"
    r"(?:/v\d{1,2}|[._-]v\d{1,2}|(?<=\d)v\d{1,2}|(?<=\d)\.\d{1,2})$",
    re.IGNORECASE | re.ASCII,
)
_DOTTED = ("10.12688/", "10.7554/")


def family(paper_id: str) -> str:
    """Return what all versions of a paper share; a key that names no version is its own family."""
    found = _VERSIONED.match(paper_id)
    if found is None:
        return paper_id
    tail = paper_id[len("doi:") + len(found[1]) :]
    if tail.startswith(".") and "v" not in tail.lower() and not found[1].startswith(_DOTTED):
        return paper_id
    return f"doi:{found[1]}"
