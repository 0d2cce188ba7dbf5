from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.errors import InputError
from corpus.ids import (
    KINDS,
    Identifier,
    arxiv_version,
    find_identifier_in_question,
    implied_identifiers,
    normalize,
    paper_key,
    parse_identifier,
)

SICI = "10.5555/0000-0000(199901)1:1<1::aid-x1>3.0.co;2-#"
DRESSES = {
    ("doi", "10.5555/abc.2020.007"): [
        "10.5555/AbC.2020.007",
        "10.5555/abc.2020.007",
        "10.5555/ABC.2020.007",
        "doi:10.5555/AbC.2020.007",
        "DOI: 10.5555/AbC.2020.007",
        "doi 10.5555/abc.2020.007",
        "https://doi.org/10.5555/AbC.2020.007",
        "http://dx.doi.org/10.5555/abc.2020.007",
        "https://www.doi.org/10.5555/abc.2020.007",
        "doi.org/10.5555/abc.2020.007",
        "https://doi.org/10.5555%2FAbC.2020.007",
        "10.5555%2Fabc.2020.007",
        "info:doi/10.5555/abc.2020.007",
        "https://doi.org/doi:10.5555/abc.2020.007",
        "<https://doi.org/10.5555/abc.2020.007>",
        "10.5555/abc.2020.007.",
        "DOI:https://doi.org/10.5555/abc.2020.007",
        "https://doi.org/10.5555/abc.2020.007?utm_source=x",
        " \u200b10.5555/abc.2020.007 ",
        "https://dl.acm.org/doi/pdf/10.5555/AbC.2020.007",
    ],
    ("doi", SICI): [
        SICI,
        SICI.upper(),
        "https://doi.org/" + SICI,
        "doi:" + SICI,
        "https://doi.org/" + quote(SICI, safe=""),
        "https://doi.org/" + quote(SICI),
        SICI.replace("<", "&lt;").replace(">", "&gt;"),
    ],
    ("doi", "10.1101/2024.02.13.580051"): [
        "10.1101/2024.02.13.580051v1",
        "https://www.biorxiv.org/content/10.1101/2024.02.13.580051v1.full.pdf",
        "https://www.biorxiv.org/content/10.1101/2024.02.13.580051v2",
        "https://doi.org/10.1101/2024.02.13.580051",
    ],
    ("doi", "10.1371/journal.pone.0197919"): [
        "https://journals.plos.org/plosone/article?id=10.1371/journal.pone.0197919",
        "https://journals.plos.org/plosone/article/file?id=10.1371/journal.pone.0197919&type=printable",
    ],
    ("arxiv", "hep-th/9901001"): [
        "hep-th/9901001",
        "hep-th/9901001v3",
        "arXiv:hep-th/9901001",
        "https://arxiv.org/abs/hep-th/9901001v1",
        "arxiv:hep-th/9901001",
        "HEP-TH/9901001",
        "https://arxiv.org/pdf/hep-th/9901001v1.pdf",
        "oai:arXiv.org:hep-th/9901001",
        "https://arxiv.org/abs/hep-th%2F9901001",
        "10.48550/arXiv.hep-th/9901001",
    ],
    ("arxiv", "math/0309136"): ["math.GT/0309136", "arXiv:math.GT/0309136v1", "math/0309136"],
    ("arxiv", "2401.00042"): [
        "2401.00042",
        "2401.00042v1",
        "arXiv:2401.00042v9",
        "ARXIV: 2401.00042",
        "http://arxiv.org/pdf/2401.00042v2.pdf",
        "https://arxiv.org/abs/2401.00042",
        "https://arxiv.org/html/2401.00042v2",
        "https://www.arxiv.org/abs/2401.00042/",
        "arxiv.org/abs/2401.00042",
        "https://export.arxiv.org/abs/2401.00042",
        "https://arxiv.org/abs/2401.00042?context=cs",
        "arXiv:2401.00042v1 [cs.CL]",
        "10.48550/arXiv.2401.00042",
        "https://doi.org/10.48550/arXiv.2401.00042",
        "doi:10.48550/ARXIV.2401.00042v2",
        "https://ar5iv.labs.arxiv.org/html/2401.00042",
        "https://huggingface.co/papers/2401.00042",
        "https://arxiv.org/abs/2401.00042#comments",
        "arXiv 2401.00042",
    ],
    ("arxiv", "0704.0001"): ["0704.0001", "arXiv:0704.0001v2"],
    ("pmid", "12345678"): [
        "PMID:12345678",
        "pmid: 12345678",
        "PMID 12345678",
        "https://pubmed.ncbi.nlm.nih.gov/12345678/",
        "https://www.ncbi.nlm.nih.gov/pubmed/12345678",
        "https://europepmc.org/article/MED/12345678",
    ],
    ("pmcid", "PMC1234567"): [
        "PMC1234567",
        "pmc1234567",
        "pmcid:PMC1234567",
        "PMCID: PMC1234567",
        "PMC1234567.1",
        "pmcid:1234567",
        "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC1234567/",
        "https://pmc.ncbi.nlm.nih.gov/articles/PMC1234567/pdf/a.pdf",
        "https://europepmc.org/articles/PMC1234567",
        "https://europepmc.org/article/PMC/PMC1234567",
    ],
    ("acl", "2020.acl-main.447"): [
        "2020.acl-main.447",
        "acl:2020.acl-main.447",
        "https://aclanthology.org/2020.acl-main.447/",
        "https://aclanthology.org/2020.acl-main.447.pdf",
        "https://www.aclweb.org/anthology/2020.acl-main.447",
    ],
    ("acl", "N18-3011"): [
        "N18-3011",
        "n18-3011",
        "https://aclanthology.org/N18-3011.pdf",
        "https://aclanthology.org/N18-3011v2.pdf",
        "http://aclweb.org/anthology/N/N18/N18-3011.pdf",
    ],
    ("openreview", "rJXMpikCZ"): [
        "openreview:rJXMpikCZ",
        "https://openreview.net/forum?id=rJXMpikCZ",
        "https://openreview.net/pdf?id=rJXMpikCZ",
        "https://openreview.net/forum?noteId=x&id=rJXMpikCZ&referrer=y",
    ],
    ("openalex", "W2741809807"): [
        "W2741809807",
        "w2741809807",
        "openalex:W2741809807",
        "https://openalex.org/W2741809807",
        "https://api.openalex.org/works/W2741809807",
    ],
    ("s2", "649def34f8be52c8b66281af98ae884c09aef38b"): [
        "649def34f8be52c8b66281af98ae884c09aef38b",
        "s2:649DEF34F8BE52C8B66281AF98AE884C09AEF38B",
        "https://www.semanticscholar.org/paper/Some-Title-X/649def34f8be52c8b66281af98ae884c09aef38b",
        "https://www.semanticscholar.org/paper/649def34f8be52c8b66281af98ae884c09aef38b",
    ],
    ("file", "ab" * 32): ["file:" + "ab" * 32, "AB" * 32, "sha256:" + "ab" * 32],
}
NOT_ONE = [
    "", " ", "9901001", "2401.0004", "2413.00001", "1412.69800", "0703.0001", "hep-xx/9901001", "hep-th/99010011", "hep-th/9913001",
    "10.5555/", "10.5555", "10.5555/a b", "10.1/2", "12345678", "https://example.org/2401.00042", "https://arxiv.org/list/cs.CL/recent",
    "see arXiv:2401.00042", "arXiv:2401.00042 and more", "doi:", "arxiv:", "pmid:", "pmid:abc", "attention is all you need",
    "arxivorum", "openreview:a b", "file.pdf", "file:///etc/passwd", "ckid:doi", "PMC", "W18-123", "W12", "acl 2020", "doi:10.5555/a\x00b",
    "doi:10.5555/a%00b", "https://doi.org/", "0", "x" * 3000, "2401.00042v0", "10.5555/a\nb",
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "text"), [(k, t) for k, forms in DRESSES.items() for t in forms])
def test_every_dress_names_the_same_paper(wanted, text):
    assert parse_identifier(text) == Identifier(*wanted)


@pytest.mark.parametrize("text", NOT_ONE)
def test_what_is_not_certainly_an_identifier_is_none(text):
    assert parse_identifier(text) is None
    assert find_identifier_in_question(text) is None


@pytest.mark.parametrize("wanted", DRESSES)
def test_keys_read_back(wanted):
    identifier = Identifier(*wanted)
    assert parse_identifier(identifier.key) == identifier
    assert paper_key({identifier.kind: identifier.value}) == identifier.key


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2401.00042v3", 3),
        ("2401.00042", None),
        ("https://arxiv.org/pdf/hep-th/9901001v12.pdf", 12),
        ("arXiv:2401.00042v1 [cs.CL]", 1),
        ("10.5555/abcv2", None),
        ("10.48550/arXiv.2401.00042v2", 2),
    ],
)
def test_the_version_of_an_arxiv_id_is_kept_apart(text, version):
    assert arxiv_version(text) == version


def test_a_key_is_the_first_known_kind():
    every = {"s2": "a" * 40, "pmid": "5", "doi": "10.5555/X", "arxiv": "2401.00042v2"}
    assert paper_key(every) == "arxiv:2401.00042"
    del every["arxiv"]
    assert paper_key(every, "ab" * 32) == "doi:10.5555/x"
    assert paper_key({"doi": "10.48550/arXiv.2401.00042"}) == "arxiv:2401.00042"
    assert paper_key({}, "AB" * 32) == "file:" + "ab" * 32
    assert paper_key({"doi": "not one"}, "ab" * 32) == "file:" + "ab" * 32
    with pytest.raises(InputError):
        paper_key({})


def test_identifiers_that_follow_from_others():
    assert implied_identifiers({"doi": "https://doi.org/10.18653/V1/N18-3011"}) == {
        "doi": "10.18653/v1/n18-3011",
        "acl": "N18-3011",
    }
    assert implied_identifiers({"doi": "10.48550/arXiv.2401.00042"}) == {"arxiv": "2401.00042"}
    assert implied_identifiers({"pmid": "x", "dblp": " a/b "}) == {"dblp": "a/b"}


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("pmid", "0012", "12"),
        ("pmid", "PMID: 12", "12"),
        ("pmcid", "12", "PMC12"),
        ("openalex", "https://openalex.org/W12", "W12"),
        ("openreview", "rJXMpikCZ", "rJXMpikCZ"),
        ("doi", "HTTPS://DOI.ORG/10.5555/X", "10.5555/x"),
        ("arxiv", "https://arxiv.org/abs/2401.00042v1", "2401.00042"),
        ("arxiv", "9901001", None),
        ("doi", "2401.00042", None),
    ],
)
def test_normalize_with_a_known_kind(kind, value, wanted):
    assert normalize(kind, value) == wanted


@pytest.mark.parametrize(
    "text", ["arXiv:2401.00042", '"2401.00042"', "2401.00042?", " 10.5555/AbC.2020.007 ", "“hep-th/9901001”"]
)
def test_a_question_that_is_an_identifier(text):
    assert find_identifier_in_question(text)


@pytest.mark.parametrize("text", ["what does 2401.00042 say", "is 10.5555/x right?", "BM25", "covid-19", "top-k 10/20"])
def test_a_question_of_words_is_none(text):
    assert find_identifier_in_question(text) is None


suffixes = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=("C", "Z")), min_size=1, max_size=30
)
months = st.sampled_from([f"{y:02}{m:02}" for y in range(15, 40) for m in range(1, 13)])


@given(suffixes)
@example("%2525253C")
@example("a&amp;lt;")
@example("x.).")
def test_normalising_a_doi_is_idempotent_and_its_dresses_agree(suffix):
    text = "10.5555/" + suffix
    once = normalize("doi", text)
    if once is None:
        return
    assert normalize("doi", once) == once
    assert (
        parse_identifier(text)
        == parse_identifier("doi:" + text)
        == parse_identifier("DOI: " + text)
        == parse_identifier(once)
    )
    assert parse_identifier("https://doi.org/" + quote(once, safe="/")) == parse_identifier(once)


@given(months, st.integers(0, 99999), st.integers(1, 99))
def test_dresses_of_a_new_arxiv_id_agree(month, number, version):
    bare = f"{month}.{number:05}"
    forms = [
        bare,
        f"{bare}v{version}",
        f"arXiv:{bare}",
        f"https://arxiv.org/pdf/{bare}v{version}.pdf",
        f"10.48550/arXiv.{bare}",
    ]
    assert {parse_identifier(form) for form in forms} == {Identifier("arxiv", bare)}


@given(st.sampled_from([*KINDS, "dblp"]), st.text(max_size=50))
def test_normalize_is_idempotent_on_anything(kind, text):
    once = normalize(kind, text)
    assert once is None or normalize(kind, once) == once


@given(st.text(max_size=80))
def test_no_text_makes_the_reader_fail(text):
    found = parse_identifier(text)
    find_identifier_in_question(text)
    arxiv_version(text)
    assert found is None or parse_identifier(found.key) == found
