"""The real papers as downloads, and what is done to them to make traps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest.fulltext.wanted import Wanted
from tests.support import shared


@dataclass(frozen=True)
class Paper:
    file: str
    title: str
    authors: tuple[str, ...]
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return shared("papers", self.file)

    def wanted(self, **changes: Any) -> Wanted:
        known = {"title": self.title, "authors": self.authors, **changes}
        return Wanted.of(known.pop("ids", self.ids), **known)


PAPERS = {
    "attention": Paper("attention-is-all-you-need_1706.03762v7.pdf", "Attention Is All You Need", ("Ashish Vaswani", "Noam Shazeer"), {"arxiv": "1706.03762"}),
    "rag": Paper("retrieval-augmented-generation_2005.11401v4.pdf", "Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks", ("Patrick Lewis", "Ethan Perez"), {"arxiv": "2005.11401"}),
    "dpr": Paper("dense-passage-retrieval_2004.04906v3_highlighted.pdf", "Dense Passage Retrieval for Open-Domain Question Answering", ("Vladimir Karpukhin", "Barlas Oğuz"), {"arxiv": "2004.04906", "doi": "10.18653/v1/2020.emnlp-main.550"}),
    "fid": Paper("fusion-in-decoder_2007.01282v2.pdf", "Leveraging Passage Retrieval with Generative Models for Open Domain Question Answering", ("Gautier Izacard", "Edouard Grave"), {"arxiv": "2007.01282"}),
    "beir": Paper("beir_2104.08663v4.pdf", "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models", ("Nandan Thakur", "Nils Reimers"), {"arxiv": "2104.08663"}),
    "batchnorm": Paper("batch-normalization_1502.03167v3.pdf", "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift", ("Sergey Ioffe", "Christian Szegedy"), {"arxiv": "1502.03167"}),
    "retro": Paper("retro_2112.04426v1.pdf", "Improving language models by retrieving from trillions of tokens", ("Sebastian Borgeaud", "Arthur Mensch"), {"arxiv": "2112.04426"}),
    "star": Paper("star_2203.14465v1.pdf", "STaR: Self-Taught Reasoner Bootstrapping Reasoning With Reasoning", ("Eric Zelikman", "Yuhuai Wu"), {"arxiv": "2203.14465"}),
    "adam": Paper("adam_1412.6980v9.pdf", "Adam: A Method for Stochastic Optimization", ("Diederik P. Kingma", "Jimmy Ba"), {"arxiv": "1412.6980"}),
    "pasa": Paper("pasa_2501.10120v1.pdf", "PaSa: An LLM Agent for Comprehensive Academic Paper Search", ("Yichen He", "Guanhua Huang"), {"arxiv": "2501.10120"}),
    "qwen2": Paper("qwen2-technical-report_2407.10671v4.pdf", "Qwen2 Technical Report", ("An Yang", "Baosong Yang"), {"arxiv": "2407.10671"}),
    "graph": Paper("construction-of-the-literature-graph_N18-3011.pdf", "Construction of the Literature Graph in Semantic Scholar", ("Waleed Ammar", "Dirk Groeneveld"), {"acl": "N18-3011", "doi": "10.18653/v1/N18-3011"}),
    "specter": Paper("specter_2020.acl-main.207.pdf", "SPECTER: Document-level Representation Learning using Citation-informed Transformers", ("Arman Cohan", "Sergey Feldman"), {"acl": "2020.acl-main.207", "doi": "10.18653/v1/2020.acl-main.207"}),
    "s2orc": Paper("s2orc_2020.acl-main.447.pdf", "S2ORC: The Semantic Scholar Open Research Corpus", ("Kyle Lo", "Lucy Lu Wang"), {"acl": "2020.acl-main.447"}),
    "papermage": Paper("papermage_2023.emnlp-demo.45.pdf", "PaperMage: A Unified Toolkit for Processing, Representing, and Manipulating Visually-Rich Scientific Documents", ("Kyle Lo", "Zejiang Shen"), {"acl": "2023.emnlp-demo.45"}),
    "openie": Paper("identifying-relations-open-ie_D11-1142.pdf", "Identifying Relations for Open Information Extraction", ("Anthony Fader", "Stephen Soderland"), {"acl": "D11-1142"}),
    "asgard": Paper("asgard-ef1a-growth-temperature_s41467-024-44806-1.pdf", "Evolution of optimal growth temperature in Asgard archaea inferred from the temperature dependence of GDP binding to EF-1A", ("Zhongyi Lu", "Runyue Xia"), {"doi": "10.1038/s41467-024-44806-1"}),
    "rev1": Paper("rev1-dna-alkylation-drosophila_biorxiv-2024.02.13.580051.pdf", "REV1 Coordinates a Multi-Faceted Tolerance Response to DNA Alkylation Damage and Prevents Chromosome Shattering in Drosophila melanogaster", ("Varandt Khodaverdian", "Tokio Sano"), {"doi": "10.1101/2024.02.13.580051"}),
    "wheat": Paper("wheat-heat-stress-metabolomics_pone.0197919.pdf", "Comparative physiological and metabolomics analysis of wheat (Triticum aestivum L.) following post-anthesis heat stress", ("Kayla Thomason", "Md Ali Babar"), {"doi": "10.1371/journal.pone.0197919"}),
    "glucokinase": Paper("glucokinase-variant-map_s13059-023-02935-8.pdf", "A comprehensive map of human glucokinase variant activity", ("Sarah Gersing", "Kresten Lindorff-Larsen"), {"doi": "10.1186/s13059-023-02935-8"}),
    "quantum": Paper("quantum-computation-micromotion_srep08555.pdf", "Quantum Computation under Micromotion in a Planar Ion Crystal", ("S.-T. Wang", "C. Shen", "L.-M. Duan"), {"doi": "10.1038/srep08555"}),
    "olap": Paper("resumes-logs-requetes-olap_fr.pdf", "Résumés et interrogations de logs de requêtes OLAP", ("Julien Aligon", "Patrick Marcel"), {}),
    "tracing": Paper("h01-two-columns-footnotes.pdf", "Trace-based Just-in-Time Type Specialization for Dynamic Languages", ("Andreas Gal", "Brendan Eich"), {}),
    "semeagat": Paper("h20-missing-tounicode-in-tables.pdf", "SemEAGAT: A Novel Approach by Incorporating Semantic Dependency Graph in Event Detection", ("Yuqi Xi", "Jiamin Lu"), {"doi": "10.1088/1742-6596/2188/1/012011"}),
}  # fmt: skip

Change = Callable[[Any], None]


def page_in_front(*texts: str) -> Change:
    """Put a sheet before the first page; the first text is large."""

    def change(document: Any) -> None:
        first = document[0].rect
        page = document.new_page(0, width=first.width, height=first.height)
        at = 90
        for n, text in enumerate(texts):
            size = 18 if n == 0 else 10
            import pymupdf

            left = page.insert_textbox(pymupdf.Rect(60, at, first.width - 60, at + 160), text, fontsize=size)
            at += 160 - max(left, 0) + 14

    return change


def watermark(text: str, *, is_large: bool = False) -> Change:
    """Print a line on every page, at the foot or across."""

    def change(document: Any) -> None:
        import pymupdf

        for page in document:
            if is_large:
                middle = pymupdf.Point(80, page.rect.height / 2)
                page.insert_text(middle, text, fontsize=60, color=(0.8, 0.8, 0.8), morph=(middle, pymupdf.Matrix(40)))
            else:
                page.insert_text((40, 20), text, fontsize=7)
                page.insert_text((40, page.rect.height - 12), text, fontsize=7)

    return change


def first_pages(n: int) -> Change:
    return lambda document: document.select(range(min(n, document.page_count)))


def last_pages(n: int) -> Change:
    return lambda document: document.select(range(max(0, document.page_count - n), document.page_count))


def without_page(n: int) -> Change:
    return lambda document: document.delete_page(n)


def pages_of(other: Paper) -> Change:
    """Replace all pages but the first by another paper's."""

    def change(document: Any) -> None:
        import pymupdf

        with pymupdf.open(other.path) as source:
            document.delete_pages(1, document.page_count - 1)
            document.insert_pdf(source)

    return change


def made(folder: Path, paper: Paper, *changes: Change) -> Path:
    """A changed copy of a paper."""
    import pymupdf

    with pymupdf.open(paper.path) as document:
        for change in changes:
            change(document)
        content = document.tobytes(garbage=1, deflate=True)
    return written(folder, content)


def cut(folder: Path, paper: Paper, share: float) -> Path:
    """The first bytes of a paper."""
    content = paper.path.read_bytes()
    return written(folder, content[: int(len(content) * share)])


def sheets(folder: Path, *pages: str) -> Path:
    """A PDF of plain pages of text."""
    import pymupdf

    document = pymupdf.open()
    for text in pages:
        document.new_page().insert_textbox(pymupdf.Rect(60, 60, 540, 780), text, fontsize=10)
    return written(folder, document.tobytes())


def written(folder: Path, content: bytes, suffix: str = ".pdf") -> Path:
    path = folder / (hashlib.sha256(content).hexdigest() + suffix)
    path.write_bytes(content)
    return path
