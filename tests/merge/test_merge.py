from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.merge import merge
from ingest.work import Location, Related, Work

TITLE = "Retrieval of passages for questions that nobody has asked before"


def work(
    source="crossref", source_id=None, title=TITLE, authors=("Ada Lovelace", "Alan Turing"), year=2020, ids=None, **more
):
    ids = ids or {}
    return Work(
        source,
        source_id or "/".join(f"{k}{v}" for k, v in ids.items()) or None,
        ids,
        title,
        authors=list(authors),
        year=year,
        **more,
    )


def keys(*works, **options):
    return [paper.key for paper in merge(works, **options)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"doi": "10.5555/AbC"}, {"doi": "https://doi.org/10.5555/abc"}),
        ({"arxiv": "2401.00042v1"}, {"arxiv": "arXiv:2401.00042"}),
        ({"arxiv": "2401.00042"}, {"doi": "10.48550/arXiv.2401.00042"}),
        ({"pmid": "12", "doi": "10.5555/x"}, {"pmid": "12"}),
        ({"pmcid": "PMC12"}, {"pmcid": "12"}),
        ({"openalex": "W12345"}, {"openalex": "https://openalex.org/W12345"}),
        ({"s2": "a" * 40}, {"s2": "A" * 40}),
        ({"acl": "N18-3011"}, {"doi": "10.18653/v1/N18-3011"}),
        ({"openreview": "rJXMpikCZ"}, {"openreview": "rJXMpikCZ"}),
    ],
)
def test_a_shared_identifier_unites_whatever_the_titles(one, other):
    assert len(merge([work("a", ids=one, title="One"), work("b", ids=other, title="Other", authors=[])])) == 1


def test_identifiers_unite_through_a_third_work():
    a, b = work("a", ids={"doi": "10.5555/x"}, title="A"), work("b", ids={"pmid": "12"}, title="B")
    assert len(merge([a, b])) == 2
    paper = merge([a, work("c", ids={"doi": "10.5555/x", "pmid": "12"}, title="C"), b])[0]
    assert paper.key == "doi:10.5555/x"
    assert paper.aliases == ("doi:10.5555/x", "pmid:12")
    assert len(paper.works) == 3


def test_a_stated_link_unites_preprint_and_article():
    preprint = work(
        "biorxiv",
        ids={"doi": "10.1101/2024.01.01.000001"},
        title="A first title of it",
        related=[Related("is-preprint-of", "doi:10.1093/x")],
    )
    article = work("crossref", ids={"doi": "10.1093/x"}, title="The final title of it", year=2025)
    paper = merge([preprint, article])[0]
    assert paper.identifiers["doi"] == "10.1093/x"
    assert set(paper.aliases) == {"doi:10.1093/x", "doi:10.1101/2024.01.01.000001"}
    assert (paper.best.title, paper.best.year) == ("The final title of it", 2025)
    alone = merge([preprint])[0]
    assert set(alone.aliases) == {"doi:10.1093/x", "doi:10.1101/2024.01.01.000001"}


def test_other_links_do_not_unite():
    erratum = work(ids={"doi": "10.5555/e"}, title="Erratum: " + TITLE, related=[Related("corrects", "doi:10.5555/x")])
    assert len(merge([erratum, work(ids={"doi": "10.5555/x"})])) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            work("arxiv", ids={"arxiv": "2001.00001"}),
            work("crossref", ids={"doi": "10.5555/x"}, title=TITLE.upper() + ".", year=2021),
        ),
        (
            work("arxiv", ids={"arxiv": "2001.00001"}),
            work("openalex", ids={"openalex": "W12345"}, authors=["LOVELACE, A."], year=2022),
        ),
        (
            work("dblp", ids={"dblp": "a/b"}),
            work("hal", ids={"hal": "hal-1"}, title=TITLE.replace("passages", "pass&#97;ges")),
        ),
        (work("biorxiv", ids={"doi": "10.1101/2024.01.01.000001"}), work("crossref", ids={"doi": "10.1093/x"})),
        (work("hal", ids={"hal": "hal-1"}, year=None), work("crossref", ids={"doi": "10.5555/x"})),
        (
            work("crossref", ids={"doi": "10.5555/x"}, title="RETRACTED: " + TITLE),
            work("arxiv", ids={"arxiv": "2001.00001"}),
        ),
    ],
)
def test_title_year_and_first_author_unite(one, other):
    assert len(merge([one, other])) == 1


LONG = "Effects of a treatment on the growth of plants in dry soil"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dict(title=LONG), dict(title="Erratum: " + LONG)),
        (dict(title=LONG), dict(title="Correction to: " + LONG)),
        (dict(title=LONG), dict(title="Comment on “" + LONG + "”")),
        (dict(title=LONG), dict(title=LONG + ": Part II")),
        (dict(title=LONG + " I"), dict(title=LONG + " II")),
        (dict(title=LONG + ". Part 1: Theory"), dict(title=LONG + ". Part 2: Theory")),
        (dict(title="Editorial"), dict(title="Editorial")),
        (
            dict(title="Introduction to the special issue on retrieval"),
            dict(title="Introduction to the special issue on retrieval"),
        ),
        (dict(title="Deep learning"), dict(title="Deep learning")),
        (dict(title=LONG), dict(title=LONG, authors=["Grace Hopper"])),
        (dict(title=LONG), dict(title=LONG, authors=[])),
        (dict(title=LONG), dict(title=LONG, year=2024)),
        (dict(title=LONG, year=None), dict(title=LONG, year=None)),
        (dict(title=LONG, ids={"doi": "10.5555/1"}), dict(title=LONG, ids={"doi": "10.5555/2"})),
        (dict(title=LONG, ids={"arxiv": "2001.00001"}), dict(title=LONG, ids={"arxiv": "2001.00002"})),
        (dict(title=LONG, ids={"pmid": "1"}), dict(title=LONG, ids={"pmid": "2"})),
        (dict(title=None, authors=[]), dict(title=None, authors=[])),
    ],
)
def test_what_is_not_certainly_one_paper_stays_apart(one, other):
    a = work("a", **{"ids": {"openalex": "W10001"}, **one})
    b = work("b", **{"ids": {"s2": "b" * 40}, **other})
    assert len(merge([a, b])) == 2


def test_a_title_does_not_bridge_what_identifiers_hold_apart():
    """The third has no identifier: it joins one of the two, and does not pull them together."""
    one, two = work("crossref", ids={"doi": "10.5555/1"}), work("crossref", ids={"doi": "10.5555/2"})
    papers = merge([one, work("dblp", ids={"dblp": "x"}), two])
    assert sorted(len(p.works) for p in papers) == [1, 2]


def test_a_merge_can_be_undone():
    a, b = work("a", ids={"arxiv": "2001.00001"}), work("b", ids={"doi": "10.5555/x"})
    assert len(merge([a, b])) == 1
    assert keys(a, b, apart=[frozenset({"arxiv:2001.00001", "doi:10.5555/x"})]) == ["arxiv:2001.00001", "doi:10.5555/x"]
    preprint = replace(a, related=[Related("is-preprint-of", "doi:10.5555/x")])
    papers = merge([preprint, b], apart=[frozenset({"arxiv:2001.00001", "doi:10.5555/x"})])
    assert [p.aliases for p in papers] == [("arxiv:2001.00001",), ("doi:10.5555/x",)]


def test_the_best_field_wins_and_its_source_is_kept():
    paper = merge(
        [
            work("openalex", ids={"doi": "10.5555/x", "openalex": "W12345"}, title=TITLE.upper(), n_citations=12, abstract="Short.", venue="J. Repr.", n_citations_by_year={"2021": 5}),
            work("arxiv", ids={"arxiv": "2001.00001", "doi": "10.5555/x"}, abstract="The whole abstract of it.", published_on="2019-12-30", year=2019, arxiv_version=3, authors=["A. Lovelace", "A. Turing"]),
            work("crossref", ids={"doi": "10.5555/x"}, authors=["Ada Lovelace"], venue="Journal", is_retracted=False, n_citations=3, locations=[Location("https://a.org/x", "landing")], abstract="The whole abst..."),
            work("semantic-scholar", ids={"doi": "10.5555/x", "s2": "a" * 40}, tldr="It works.", is_retracted=True, authors=["Ada Lovelace", "Alan Turing"], n_citations_by_year={"2021": 1},
                 locations=[Location("https://a.org/x", "landing", "published"), Location("https://b.org/y.pdf", "pdf")]),
        ]
    )[0]  # fmt: skip
    best = paper.best
    assert paper.key == "arxiv:2001.00001"
    assert best.title == TITLE
    assert (best.abstract, best.provenance["abstract"]) == ("The whole abstract of it.", "arxiv")
    assert (best.authors, best.provenance["authors"]) == (("Ada Lovelace", "Alan Turing"), "openalex")
    assert (best.year, best.venue) == (2020, "Journal")
    assert (best.n_citations, best.provenance["n_citations"]) == (12, "openalex")
    assert best.n_citations_by_year == {"2021": 5}
    assert (best.is_retracted, best.provenance["is_retracted"]) == (True, "semantic-scholar")
    assert (best.tldr, best.arxiv_version) == ("It works.", 3)
    assert [(p.url, p.version) for p in best.locations] == [
        ("https://a.org/x", "published"),
        ("https://b.org/y.pdf", None),
    ]


def test_references_are_those_of_the_fullest_list_and_more_identifiers():
    a = work("crossref", ids={"doi": "10.5555/x"}, references=["doi:10.5555/b", "doi:10.5555/a", "Some book, 1999"])
    b = work("openalex", ids={"doi": "10.5555/x"}, references=["openalex:W12345", "A text"])
    assert merge([a, b])[0].best.references == ("doi:10.5555/b", "doi:10.5555/a", "Some book, 1999", "openalex:W12345")


def test_a_work_without_a_keyed_identifier_has_no_key():
    paper = merge([work("hal", ids={"hal": "hal-1"})])[0]
    assert paper.key is None
    assert paper.identifiers == {"hal": "hal-1"}


def test_nothing_from_nothing():
    assert merge([]) == []


ids = st.fixed_dictionaries(
    {},
    optional={
        "doi": st.sampled_from(
            ["10.5555/1", "10.5555/2", "10.5555/3", "10.1101/2024.01.01.000001", "10.48550/arxiv.2001.00001"]
        ),
        "arxiv": st.sampled_from(["2001.00001", "2001.00002v2"]),
        "pmid": st.sampled_from(["1", "2"]),
        "s2": st.sampled_from(["a" * 40, "b" * 40]),
        "hal": st.sampled_from(["h1", "h2"]),
    },
)
works = st.lists(
    st.builds(
        Work,
        source=st.sampled_from(["crossref", "arxiv", "openalex", "hal", "elsewhere"]),
        source_id=st.sampled_from([None, "1", "2"]),
        identifiers=ids,
        title=st.sampled_from([None, TITLE, TITLE.upper(), LONG, "Erratum: " + LONG, "Editorial"]),
        authors=st.sampled_from([[], ["Ada Lovelace"], ["Lovelace, A.", "Turing, A."], ["Grace Hopper"]]),
        year=st.sampled_from([None, 2019, 2020, 2021, 2024]),
        abstract=st.sampled_from([None, "Some text.", "Some other text that is longer."]),
        n_citations=st.sampled_from([None, 0, 7]),
        related=st.sampled_from(
            [[], [Related("is-preprint-of", "doi:10.5555/1")], [Related("has-version", "doi:10.5555/2")]]
        ),
        locations=st.sampled_from(
            [[], [Location("https://a.org/1", "pdf")], [Location("https://a.org/1", "pdf", "published")]]
        ),
    ),
    max_size=9,
)
aparts = st.lists(
    st.frozensets(
        st.sampled_from(["doi:10.5555/1", "doi:10.5555/2", "arxiv:2001.00001", "pmid:1"]), min_size=2, max_size=2
    ),
    max_size=2,
)


@settings(max_examples=300, deadline=None)
@given(works, aparts, st.randoms())
def test_the_outcome_does_not_depend_on_the_order_of_arrival(found, apart, random):
    shuffled = [*found, *random.sample(found, k=len(found) // 2)]
    random.shuffle(shuffled)
    assert merge(shuffled, apart=apart) == merge(found, apart=apart)


@settings(max_examples=200, deadline=None)
@given(works)
def test_every_work_is_in_one_paper_and_merging_again_changes_nothing(found):
    papers = merge(found)
    inside = [repr(w) for paper in papers for w in paper.works]
    assert sorted(inside) == sorted({repr(w) for w in found})
    again = merge([w for paper in papers for w in paper.works])
    assert again == papers


@settings(max_examples=200, deadline=None)
@given(works)
def test_two_papers_never_share_an_identifier_of_their_works(found):
    from ingest.merge import identifiers_of

    seen = {}
    for n, paper in enumerate(merge(found)):
        for w in paper.works:
            for node in identifiers_of(w):
                if not node.startswith(("s2:", "openalex:")):
                    assert seen.setdefault(node, n) == n


def test_many_works_are_merged_in_no_time():
    many = [
        work(s, ids={"doi": f"10.5555/{n}"}, title=f"{LONG} number {n}")
        for n in range(2000)
        for s in ("crossref", "openalex", "arxiv")
    ]
    assert len(merge(many)) == 2000
