"""The trap set: downloads that are not the paper, and right ones in disguise. No wrong one passes; ≤ 2 right are lost."""

from __future__ import annotations

import pytest

from ingest.fulltext.front import read_front
from ingest.fulltext.verify import verify, verify_identity
from ingest.text.extract import ExtractorPool
from tests.fulltext.papers import (
    PAPERS,
    cut,
    first_pages,
    last_pages,
    made,
    page_in_front,
    sheets,
    watermark,
    without_page,
    written,
)
from tests.support import shared

P = PAPERS
HAL = "HAL is a multi-disciplinary open access archive for the deposit and dissemination of scientific research documents."
RESEARCHGATE = (
    "See discussions, stats, and author profiles for this publication at: https://www.researchgate.net/publication/1"
)
ACCEPTED = "This is the author's accepted manuscript of an article. Citation for published version: see below. General rights apply."
LOREM = (
    "The quick brown fox jumps over the lazy dog, and the experiment is repeated until the measured value is stable. "
    * 40
)


def cover(title, authors, words):
    return page_in_front(title, ", ".join(authors), words, "Downloaded from a repository on 1 January 2024.")


RIGHT = {
    **{f"{name}, as it is": (lambda d, p=p: p.path, lambda p=p: p.wanted()) for name, p in P.items()},
    **{f"{name}, known by title and authors alone": (lambda d, p=p: p.path, lambda p=p: p.wanted(ids={})) for name, p in P.items()},
    "title in capitals": (lambda d: P["dpr"].path, lambda: P["dpr"].wanted(title=P["dpr"].title.upper(), ids={})),
    "title in lower case, in small capitals on the page": (lambda d: P["adam"].path, lambda: P["adam"].wanted(title=P["adam"].title.lower(), ids={})),
    "title in lower case": (lambda d: P["wheat"].path, lambda: P["wheat"].wanted(title=P["wheat"].title.lower(), ids={})),
    "title with markup": (lambda d: P["wheat"].path, lambda: P["wheat"].wanted(title="Comparative physiological and metabolomics analysis of wheat (<i>Triticum aestivum</i> L.) following post&#8208;anthesis heat stress", ids={})),
    "title with a TeX command": (lambda d: P["batchnorm"].path, lambda: P["batchnorm"].wanted(title="{B}atch {N}ormalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift", ids={})),
    "title without its subtitle": (lambda d: P["batchnorm"].path, lambda: P["batchnorm"].wanted(title="Batch Normalization", ids={"arxiv": "1502.03167"})),
    "title with another subtitle, same stamp": (lambda d: P["batchnorm"].path, lambda: P["batchnorm"].wanted(title="Batch Normalization: A Way to Train Deep Networks Faster")),
    "title with a misprint": (lambda d: P["graph"].path, lambda: P["graph"].wanted(title="Contruction of the Literature Graph in Semantic Scholar", ids={})),
    "authors as Family, Given": (lambda d: P["attention"].path, lambda: P["attention"].wanted(authors=("VASWANI, A.", "Shazeer, N."), ids={})),
    "known by arXiv id alone": (lambda d: P["batchnorm"].path, lambda: P["batchnorm"].wanted(title=None, authors=())),
    "known by DOI alone": (lambda d: P["asgard"].path, lambda: P["asgard"].wanted(title=None, authors=())),
    "nothing known": (lambda d: P["rag"].path, lambda: P["rag"].wanted(title=None, authors=(), ids={})),
    "preprint where the article is asked for": (lambda d: P["rev1"].path, lambda: P["rev1"].wanted(ids={"doi": "10.1093/genetics/iyae070"})),
    "preprint of an article with a changed title": (lambda d: P["rev1"].path, lambda: P["rev1"].wanted(title="REV1 coordinates a multi-faceted tolerance response to DNA alkylation damage and prevents chromosome shattering in fruit flies", ids={"doi": "10.1093/genetics/iyae070"})),
    "stamped preprint where the article is asked for": (lambda d: P["dpr"].path, lambda: P["dpr"].wanted(ids={"doi": "10.18653/v1/2020.emnlp-main.550"})),
    "French": (lambda d: P["olap"].path, lambda: P["olap"].wanted(title="RESUMES ET INTERROGATIONS DE LOGS DE REQUETES OLAP")),
    "cover of HAL": (lambda d: made(d, P["olap"], cover(P["olap"].title, P["olap"].authors, HAL)), P["olap"].wanted),
    "cover of ResearchGate": (lambda d: made(d, P["quantum"], cover(P["quantum"].title, P["quantum"].authors, RESEARCHGATE)), P["quantum"].wanted),
    "cover with the title in capitals": (lambda d: made(d, P["openie"], cover(P["openie"].title.upper(), P["openie"].authors, ACCEPTED)), P["openie"].wanted),
    "cover that names no title": (lambda d: made(d, P["fid"], page_in_front("University Repository", ACCEPTED)), lambda: P["fid"].wanted(ids={})),
    "two covers": (lambda d: made(d, P["graph"], cover(P["graph"].title, P["graph"].authors, ACCEPTED), page_in_front("Library", HAL)), P["graph"].wanted),
    "publisher's cover with a DOI": (lambda d: made(d, P["glucokinase"], page_in_front(P["glucokinase"].title, "Link to publication", "https://doi.org/10.1186/s13059-023-02935-8")), P["glucokinase"].wanted),
    "empty page in front": (lambda d: made(d, P["star"], page_in_front(" ")), P["star"].wanted),
    "watermark across": (lambda d: made(d, P["rag"], watermark("DRAFT COPY", is_large=True)), lambda: P["rag"].wanted(ids={})),
    "watermark at the edge": (lambda d: made(d, P["specter"], watermark("Downloaded from https://academic.example.org by guest on 30 November 2026")), lambda: P["specter"].wanted(ids={})),
    "watermark and cover": (lambda d: made(d, P["beir"], watermark("Downloaded by 10.0.0.1"), cover(P["beir"].title, P["beir"].authors, ACCEPTED)), P["beir"].wanted),
    "marked by a reader": (lambda d: shared("papers", "h18-same-paper-other-bytes.pdf"), P["dpr"].wanted),
    "printed again by another program": (lambda d: made(d, P["papermage"]), P["papermage"].wanted),
}  # fmt: skip

WRONG = {
    "HTML page under a PDF's name": (lambda d: shared("papers", "h11-html-redirect-saved-as.pdf"), "attention"),
    "encrypted": (lambda d: shared("papers", "h07-encrypted-needs-password.pdf"), "attention"),
    "no pages": (lambda d: shared("papers", "h10-zero-pages.pdf"), "attention"),
    "scan without text": (lambda d: shared("papers", "h06-scanned-no-text.pdf"), "attention"),
    "cut off, as it came": (lambda d: shared("papers", "h22-truncated-download.pdf"), "graph"),
    **{f"{name} cut off at {share:.0%}": (lambda d, n=name, s=share: cut(d, P[n], s), name) for name, share in [("dpr", 0.3), ("rag", 0.5), ("attention", 0.9), ("papermage", 0.5), ("papermage", 0.95), ("quantum", 0.6), ("quantum", 0.99), ("fid", 0.999)]},
    "empty": (lambda d: written(d, b""), "attention"),
    "a few bytes": (lambda d: written(d, b"%PDF-1.4\n"), "attention"),
    "an image": (lambda d: written(d, b"\x89PNG\r\n\x1a\n" + b"\0" * 500), "attention"),
    "an archive": (lambda d: written(d, b"PK\x03\x04" + b"\0" * 500), "attention"),
    "JSON": (lambda d: written(d, b'{"error": "not found"}'), "attention"),
    "bot check": (lambda d: written(d, b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>" + b"Attention Is All You Need. Enable JavaScript. " * 300 + b"</body></html>", ".html"), "attention"),
    "landing page": (lambda d: written(d, ("<html><head><title>Attention Is All You Need</title></head><body><h1>Attention Is All You Need</h1><p>Ashish Vaswani</p><h2>Abstract</h2><p>" + LOREM[:1500] + "</p></body></html>").encode(), ".html"), "attention"),
    "XML cut off": (lambda d: written(d, b"<?xml version='1.0'?><article><front><article-meta><title-group><article-title>Attention Is All You Need</article-title></title-group></article-meta></front><body><sec><title>Introduction</title><p>" + LOREM.encode() * 3, ".xml"), "attention"),
    **{f"only the first {n} pages of {name}": (lambda d, n=n, p=name: made(d, P[p], first_pages(n)), name) for name, n in [("dpr", 1), ("rag", 2), ("graph", 1), ("wheat", 3), ("specter", 2), ("asgard", 1), ("quantum", 2), ("olap", 6), ("beir", 9)]},
    **{f"{name} without its first page": (lambda d, p=name: made(d, P[p], without_page(0)), name) for name in P},
    **{f"the last pages of {name}": (lambda d, p=name: made(d, P[p], last_pages(3)), name) for name in ("asgard", "wheat", "glucokinase", "rev1", "quantum", "graph")},
    "supplement, title in its line": (lambda d: sheets(d, f"Supplementary Material: {P['rag'].title}\nPatrick Lewis, Ethan Perez\n", LOREM), "rag"),
    "supplement with a number": (lambda d: sheets(d, f"S1 Appendix\nSupplementary Note 1\n{P['wheat'].title}\nKayla Thomason, Md Ali Babar", LOREM), "wheat"),
    "supplement under the same title": (lambda d: made(d, P["glucokinase"], without_page(0), page_in_front("Supplementary Information for", P["glucokinase"].title, "Sarah Gersing, Kresten Lindorff-Larsen")), "glucokinase"),
    "supplement, one line": (lambda d: sheets(d, f"Supporting Information\n{P['wheat'].title}\nKayla Thomason, Md Ali Babar\n\nTable S1. Values.", LOREM), "wheat"),
    "additional file": (lambda d: sheets(d, f"Additional file 1\n\n{P['asgard'].title}\nZhongyi Lu, Runyue Xia\n", LOREM), "asgard"),
    "online appendix": (lambda d: sheets(d, f"Online Appendix to\n{P['rag'].title}\nPatrick Lewis, Ethan Perez\n", LOREM), "rag"),
    "erratum": (lambda d: sheets(d, f"Erratum\n{P['quantum'].title}\nS.-T. Wang, C. Shen & L.-M. Duan\nThe original version of this Article contained an error.", LOREM), "quantum"),
    "correction with the title": (lambda d: sheets(d, f"Correction: {P['wheat'].title}\nKayla Thomason, Md Ali Babar\n", LOREM), "wheat"),
    "comment on it": (lambda d: sheets(d, f"Comment on “{P['retro'].title}”\nA. Critic\n", LOREM), "retro"),
    "peer review file": (lambda d: sheets(d, f"Peer Review File\n{P['asgard'].title}\nReviewer comments to Zhongyi Lu", LOREM), "asgard"),
    "second part": (lambda d: sheets(d, f"{P['openie'].title}\nPart II: Experiments\nAnthony Fader, Stephen Soderland\n", LOREM), "openie"),
    "another number in the title": (lambda d: sheets(d, "Qwen3 Technical Report\nAn Yang, Baosong Yang, Anfeng Li\n", LOREM), "qwen2"),
    "same title by others": (lambda d: sheets(d, "Attention Is All You Need\nJane Roe, Richard Miles\nDepartment of Psychology\n", LOREM), "attention"),
    "right cover before a wrong paper": (lambda d: made(d, P["graph"], cover(P["fid"].title, P["fid"].authors, ACCEPTED)), "fid"),
    "right cover of ResearchGate before a wrong paper": (lambda d: made(d, P["quantum"], cover(P["adam"].title, P["adam"].authors, RESEARCHGATE)), "adam"),
    "a list of papers": (lambda d: sheets(d, "Table of Contents\n" + "\n".join(f"{p.title} ........ {n}" for n, p in enumerate(P.values(), 1)), LOREM), "attention"),
    "a review that names it": (lambda d: sheets(d, f"A Survey of Sequence Models\nJane Roe\nAbstract\nWe discuss {P['attention'].title} by Ashish Vaswani and Noam Shazeer, and {P['adam'].title} by Diederik Kingma. {LOREM[:1000]}", LOREM), "attention"),
    "a paper that cites it at once": (lambda d: sheets(d, f"Longer Contexts\nJane Roe\n1 Introduction\nIn arXiv:1706.03762 (“{P['attention'].title}”) Vaswani et al. {LOREM}", LOREM), "attention"),
    "a reference list on its first page": (lambda d: sheets(d, "Notes on Retrieval\nJane Roe\n" + LOREM[:600] + f"\nReferences\n[1] Vladimir Karpukhin and Barlas Oguz.\n{P['dpr'].title}\n", LOREM), "dpr"),
    "labour economics for football": (lambda d: sheets(d, "Wages and Mobility in Regional Labour Markets\nJ. Doe\nAbstract\n" + LOREM[:900], LOREM), "tracing"),
}  # fmt: skip


@pytest.fixture(scope="module")
def pool():
    with ExtractorPool(2) as made_pool:
        yield made_pool


@pytest.fixture(scope="module")
def extract(pool):
    """Each file is read once, however often it is judged."""
    known = {}

    def once(path):
        if path.name not in known:
            known[path.name] = pool.extract(path)
        return known[path.name]

    return once


def test_the_set_is_large_enough():
    assert len(RIGHT) + len(WRONG) >= 50
    assert len(WRONG) >= 30


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_no_wrong_file_passes(name, extract, tmp_path):
    make, asked_for = WRONG[name]
    path = make(tmp_path)
    for wanted in (P[asked_for].wanted(), P[asked_for].wanted(ids={}), P[asked_for].wanted(authors=())):
        found = verify(path, extract(path), wanted)
        if name == "same title by others" and not wanted.authors:
            continue  # nothing tells them apart then
        assert not found.is_right, f"{name}: {found.reason}"
        assert found.reason


@pytest.mark.shared
@pytest.mark.slow
def test_hardly_any_right_file_is_refused(extract, tmp_path):
    refused = {}
    for name, (make, wanted) in RIGHT.items():
        path = make(tmp_path)
        found = verify(path, extract(path), wanted())
        if not found.is_right:
            refused[name] = found.reason
    print(
        f"{len(RIGHT) - len(refused)} of {len(RIGHT)} right files pass, {len(WRONG)} wrong ones do not; refused: {refused}"
    )
    assert len(refused) <= 2, refused


@pytest.mark.shared
@pytest.mark.slow
def test_no_paper_passes_for_another(extract):
    """Each of the real papers against what is known of each other one: they cite one another."""
    fronts = {name: read_front(p.path, extract(p.path)) for name, p in P.items()}
    for name, front in fronts.items():
        for other, paper in P.items():
            if other == name:
                continue
            for wanted in (paper.wanted(), paper.wanted(ids={}), paper.wanted(authors=())):
                found = verify_identity(front, wanted)
                assert not found.is_right, f"{name} for {other}: {found.reason}"
