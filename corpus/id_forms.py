"""The written forms of paper identifiers, as patterns. No function lives here."""

from __future__ import annotations

import re
from typing import Final, Literal

Kind = Literal["arxiv", "doi", "pmcid", "pmid", "acl", "openreview", "openalex", "s2", "file"]

# Archives of the numbering that ended in March 2007 (https://info.arxiv.org/help/arxiv_identifier.html).
_ARCHIVES = (
    "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|"
    "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|"
    "q-alg|q-bio|quant-ph|solv-int|stat|supr-con"
)
# Since April 2007: YYMM.NNNN, and YYMM.NNNNN since January 2015. The subject class of old ids (math.GT/…) is dropped,
# as arXiv drops it.
_NEW = (
    r"(?P<new>(?:07(?:0[4-9]|1[0-2])|(?:0[89]|1[0-4])(?:0[1-9]|1[0-2]))\.\d{4}"
    r"|(?:1[5-9]|[2-9]\d)(?:0[1-9]|1[0-2])\.\d{5})"
)
_OLD = rf"(?P<archive>{_ARCHIVES})(?:\.[a-z-]{{2,12}})?/(?P<number>(?:9[1-9]|0[0-7])(?:0[1-9]|1[0-2])\d{{3}})"
ARXIV: Final = re.compile(rf"(?:{_NEW}|{_OLD})(?:v[1-9]\d{{0,2}})?", re.IGNORECASE | re.ASCII)

# https://www.doi.org/doi-handbook: "10." registrant "/" suffix of any printable signs, compared without ASCII case.
DOI: Final = re.compile(r"10\.\d{1,9}(?:\.\d{1,9})*/\S+", re.ASCII)
# Without a prefix or an address only registrants that can exist are believed ("10.1/2" is a fraction of something).
DOI_STRICT: Final = re.compile(r"10\.\d{4,9}(?:\.\d{1,9})*/\S+", re.ASCII)
ARXIV_DOI: Final = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
VERSIONED_PREPRINT_DOI: Final = re.compile(
    r"^(10\.(?:1101|64898)/(?:\d{4}\.\d\d\.\d\d\.)?\d{6,8})v\d+(?:\.full(?:-text)?|\.abstract|\.pdf)*$", re.ASCII
)

# https://aclanthology.org/info/ids/
ACL: Final = re.compile(
    r"(?P<old>[A-Z]\d\d-\d{4})(?:v\d+)?|(?P<new>(?:19|20)\d\d\.[a-z0-9_]+-[a-z0-9_]+\.\d+)(?:v\d+)?",
    re.IGNORECASE | re.ASCII,
)

_TAIL = r"/?(?:[?#].*)?"
_NCBI = r"(?:www\.)?ncbi\.nlm\.nih\.gov"


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


URL_FORMS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    (
        "arxiv",
        _form(
            r"(?:www\.|export\.|browse\.|[a-z]{2}\.)?arxiv\.org/(?:abs|pdf|html|format|ps|e-print|src)/([^?#]+?)"
            + _TAIL
        ),
    ),
    ("arxiv", _form(r"ar5iv(?:\.labs\.arxiv)?\.org/(?:abs|html|pdf)/([^?#]+?)" + _TAIL)),
    ("arxiv", _form(r"(?:www\.)?(?:alphaxiv\.org/(?:abs|pdf)|huggingface\.co/papers)/([^?#]+?)" + _TAIL)),
    # A DOI may hold # and ?; only what is plainly a query of name=value is cut off.
    ("doi", _form(r"(?:dx\.|www\.)?doi\.org/((?:doi:\s*)?10\..+?)(?:\?[a-z_]+=[^/]*)?")),
    ("doi", _form(r"(?:www\.)?(?:bio|med)rxiv\.org/content/(10\.[^?#]+?)(?:v\d+)?(?:\.[a-z-]+)*" + _TAIL)),
    ("doi", _form(r"journals\.plos\.org/[a-z]+/article(?:/[a-z]+)?\?(?:.*&)?id=(10\.[^&#]+).*")),
    ("doi", _form(r"link\.springer\.com/(?:article|chapter|book|content/pdf)/(10\.[^?#]+?)(?:\.pdf)?" + _TAIL)),
    ("doi", _form(r"[a-z0-9.-]+/doi/(?:(?:abs|full|pdf|epdf|pdfdirect|epub|book)/)?(10\.\d{4,9}/[^?#]+?)" + _TAIL)),
    ("pmcid", _form(rf"(?:{_NCBI}/pmc|pmc\.ncbi\.nlm\.nih\.gov)/articles/(PMC\d+)(?:\.\d+)?(?:/.*|{_TAIL})")),
    ("pmcid", _form(r"(?:www\.)?europepmc\.org/(?:articles?|abstract)/(?:PMC/)?(PMC\d+)(?:/.*|" + _TAIL + ")")),
    ("pmid", _form(rf"(?:pubmed\.ncbi\.nlm\.nih\.gov|{_NCBI}/pubmed)/(\d+){_TAIL}")),
    ("pmid", _form(r"(?:www\.)?europepmc\.org/(?:article|abstract)/MED/(\d+)" + _TAIL)),
    (
        "acl",
        _form(
            r"(?:www\.)?aclanthology\.(?:org|info)/(?:papers/)?(?:[A-Z]/[A-Z]\d\d/)?([^/?#]+?)(?:\.pdf|\.bib|\.xml)?"
            + _TAIL
        ),
    ),
    (
        "acl",
        _form(r"(?:www\.)?aclweb\.org/anthology/(?:papers/)?(?:[A-Z]/[A-Z]\d\d/)?([^/?#]+?)(?:\.pdf|\.bib)?" + _TAIL),
    ),
    (
        "openreview",
        _form(
            r"(?:www\.)?openreview\.net/(?:forum|pdf|attachment|references/pdf)\?(?:.*&)?id=([\w-]{4,24})(?:[&#].*)?"
        ),
    ),
    ("openreview", _form(r"(?:www\.)?openreview\.net/pdf/([\w-]{4,24})\.pdf")),
    ("openalex", _form(r"(?:www\.|explore\.)?openalex\.org/(?:works/)?(W\d+)" + _TAIL)),
    ("openalex", _form(r"api\.openalex\.org/(?:works/)?(W\d+)" + _TAIL)),
    ("s2", _form(r"(?:www\.)?semanticscholar\.org/(?:reader|paper(?:/[^/?#]+)?)/([0-9a-f]{40})" + _TAIL)),
    ("s2", _form(r"api\.semanticscholar\.org/(?:graph/v1/|v1/)?paper/([0-9a-f]{40})" + _TAIL)),
)
