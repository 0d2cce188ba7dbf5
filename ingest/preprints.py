"""Which DOIs name preprints: by the registrants that hold nothing else."""

from __future__ import annotations

from typing import Final

PREPRINT_PREFIXES: Final = (
    "10.1101/", "10.64898/",  # bioRxiv, medRxiv
    "10.48550/",  # arXiv
    "10.21203/",  # Research Square
    "10.31219/", "10.31222/", "10.31223/", "10.31234/", "10.31235/", "10.31730/", "10.35542/", "10.31124/",  # OSF's servers
    "10.20944/",  # Preprints.org
    "10.26434/",  # ChemRxiv
    "10.2139/",  # SSRN
    "10.22541/", "10.36227/", "10.1002/essoar.",  # Authorea, TechRxiv, ESSOAr
    "10.32942/", "10.5281/zenodo.", "10.14293/s2199-1006.1.sor-",  # EcoEvoRxiv, Zenodo, ScienceOpen
)  # fmt: skip


def is_preprint_doi(doi: str) -> bool:
    """Whether a DOI (bare, lower case) is one of a preprint server or a self-archive."""
    return doi.startswith(PREPRINT_PREFIXES)
