from hypothesis import given
from hypothesis import strategies as st

from ingest.fulltext.rank import known_locations, ranked
from ingest.work import Location


def urls(*places, **options):
    return [place.url for place in ranked(places, **options)]


def test_published_comes_before_accepted_unknown_and_submitted():
    places = [Location(f"https://{v or 'x'}.org/a.pdf", "pdf", v) for v in ("submitted", None, "published", "accepted")]
    assert [p.version for p in ranked(places)] == ["published", "accepted", None, "submitted"]


def test_files_come_before_pages_and_html_is_the_last_of_files():
    places = [
        Location("https://a.org/landing", "landing", "published"),
        Location("https://arxiv.org/html/2401.00042", "html", "submitted"),
        Location("https://arxiv.org/pdf/2401.00042", "pdf", "submitted"),
        Location("https://b.org/x.xml", "xml", "submitted"),
    ]
    assert [p.kind for p in ranked(places)] == ["pdf", "xml", "html", "landing"]


def test_a_licence_and_a_good_record_count():
    free, plain = Location("https://b.org/x.pdf", "pdf", None, "cc-by"), Location("https://a.org/x.pdf", "pdf")
    assert urls(plain, free) == [free.url, plain.url]
    record = {"b.org": (0, 9)}
    assert urls(plain, free, record=record) == [plain.url, free.url]
    published = Location("https://wall.org/x.pdf", "pdf", "published", "cc-by")
    assert urls(plain, published, record={"wall.org": (0, 20)}) == [plain.url, published.url]
    assert urls(plain, published, record={"wall.org": (10, 20)}) == [published.url, plain.url]


def test_closed_places_and_supplements_are_left_out():
    assert not urls(
        Location("https://a.org/x.pdf", "pdf", is_open=False),
        Location("https://static-content.springer.com/esm/art/MediaObjects/1_2024_3_MOESM1_ESM.pdf", "pdf"),
        Location("https://a.org/article_supplement.pdf", "pdf"),
        Location("https://a.org/suppl/x.pdf", "pdf"),
        Location("https://pubs.org/doi/suppl/10.1021/abc_si_001.pdf", "pdf"),
    )
    assert urls(Location("https://a.org/supply-chains.pdf", "pdf"), Location("https://a.org/p/hessian.pdf", "pdf"))


def test_one_file_is_tried_once():
    assert urls(
        Location("http://arxiv.org/pdf/2401.00042v1.pdf", "pdf", "submitted"),
        Location("https://arxiv.org/pdf/2401.00042", "pdf", "submitted"),
        Location("http://www.a.org/x", "pdf"),
        Location("https://a.org/x/", "pdf"),
    ) == ["http://www.a.org/x", "http://arxiv.org/pdf/2401.00042v1.pdf"]


def test_places_that_follow_from_identifiers():
    found = known_locations(
        {"doi": "10.18653/v1/N18-3011", "arxiv": "2401.00042v2", "pmcid": "PMC1", "openreview": "abcd"}, 3
    )
    assert [p.url for p in found] == [
        "https://arxiv.org/pdf/2401.00042v3",
        "https://arxiv.org/html/2401.00042v3",
        "https://aclanthology.org/N18-3011.pdf",
        "https://openreview.net/pdf?id=abcd",
        "https://www.ebi.ac.uk/europepmc/webservices/rest/PMC1/fullTextXML",
    ]
    assert known_locations({"pmid": "1"}) == []


places = st.builds(
    Location,
    url=st.sampled_from([f"https://h{i}.org/{j}" for i in range(3) for j in range(3)]),
    kind=st.sampled_from(["pdf", "xml", "html", "landing"]),
    version=st.sampled_from(["published", "accepted", "submitted", None]),
    licence=st.sampled_from([None, "cc-by"]),
)


@given(st.lists(places, max_size=8), st.randoms())
def test_the_order_does_not_depend_on_the_order_of_arrival(found, random):
    shuffled = list(found)
    random.shuffle(shuffled)
    assert [(p.url, p.kind, p.version) for p in ranked(found)] == [(p.url, p.kind, p.version) for p in ranked(shuffled)]
