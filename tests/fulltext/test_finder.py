import httpx2
import pytest

from corpus.passages import Section
from ingest.fulltext import FullTextFinder, known_locations
from ingest.fulltext.complete import find_fragment
from ingest.store import Store
from ingest.text.extract import ExtractorPool
from ingest.text.result import Extraction
from ingest.work import Location
from tests.fulltext.papers import PAPERS, cut
from tests.http.support import stack

FID, GRAPH, QUANTUM = PAPERS["fid"], PAPERS["graph"], PAPERS["quantum"]


@pytest.fixture(scope="module")
def extract():
    with ExtractorPool(1) as pool:
        yield pool.extract


def page(*tags):
    return httpx2.Response(
        200,
        headers={"content-type": "text/html"},
        content=("<!DOCTYPE html><html><head>" + "".join(tags) + "</head><body>A page</body></html>").encode(),
    )


class Bench:
    def __init__(self, answers, extract, tmp_path):
        self.fetcher, self.network, self.clock = stack(answers)
        self.store, self.quarantine = Store(tmp_path / "store"), Store(tmp_path / "quarantine")
        self.folder = tmp_path / "downloads"
        self.finder = FullTextFinder(self.fetcher, self.store, extract, self.folder, quarantine=self.quarantine)

    async def find(self, wanted, *places, **options):
        async with self.fetcher:
            search = await self.finder.find(wanted, places, **options)
        assert not self.folder.exists() or list(self.folder.iterdir()) == []
        return search


def pdf(url, version="submitted"):
    return Location(url, "pdf", version, "cc-by")


@pytest.mark.shared
async def test_places_are_tried_until_one_is_right(extract, tmp_path):
    bench = Bench(
        {
            "https://a.org/1": httpx2.Response(403),
            "https://a.org/2": QUANTUM.path.read_bytes(),
            "https://a.org/3": cut(tmp_path, FID, 0.5).read_bytes(),
            "https://a.org/4": FID.path.read_bytes(),
            "https://a.org/5": b"never asked for",
        },
        extract,
        tmp_path,
    )
    search = await bench.find(FID.wanted(), *(pdf(f"https://a.org/{n}") for n in (5, 4, 3, 2, 1)))
    assert [a.outcome for a in search.attempts] == ["refused", "quarantined", "quarantined", "stored"]
    assert "wrong paper" in search.attempts[1].reason
    assert "incomplete" in search.attempts[2].reason
    assert list(bench.store.iter_sha256()) == [search.found.sha256]
    assert bench.store.read(search.found.sha256) == FID.path.read_bytes()
    assert search.found.extraction.n_pages == 6
    assert search.found.location.licence == "cc-by"
    assert set(bench.quarantine.iter_sha256()) == {search.attempts[1].sha256, search.attempts[2].sha256}
    assert len(bench.network.asked) == 4
    assert not search.is_later


@pytest.mark.shared
async def test_a_landing_page_leads_to_its_file(extract, tmp_path):
    bench = Bench(
        {
            "https://a.org/landing": page('<meta content="/files/x.pdf" name="citation_pdf_url">'),
            "https://a.org/files/x.pdf": GRAPH.path.read_bytes(),
        },
        extract,
        tmp_path,
    )
    search = await bench.find(GRAPH.wanted(), Location("https://a.org/landing", "landing", "published"))
    assert [a.outcome for a in search.attempts] == ["led_on", "stored"]
    assert search.found.location.version == "published"
    assert search.found.final_url == "https://a.org/files/x.pdf"


async def test_a_page_in_place_of_a_pdf_and_an_inner_address_in_its_tags(extract, tmp_path):
    inner = '<meta name="citation_pdf_url" content="http://169.254.169.254/latest/meta-data">'
    bench = Bench({"https://a.org/x.pdf": page(inner), "*": b"secret"}, extract, tmp_path)
    search = await bench.find(GRAPH.wanted(), pdf("https://a.org/x.pdf"))
    assert search.found is None
    assert search.attempts[0].outcome == "quarantined"
    assert bench.network.urls == ["https://a.org/x.pdf"]


async def test_pages_that_name_each_other_end(extract, tmp_path):
    def named(n):
        return page(f'<meta name="citation_pdf_url" content="https://a.org/{n}">')

    bench = Bench({"https://a.org/1": named(2), "https://a.org/2": named(1)}, extract, tmp_path)
    search = await bench.find(GRAPH.wanted(), Location("https://a.org/1", "landing"))
    assert search.found is None
    assert len(bench.network.asked) == 2


async def test_throttled_and_down_places_are_asked_again_later_and_absence_is_not(extract, tmp_path):
    answers = {
        "https://a.org/1": httpx2.Response(429, headers={"retry-after": "7200"}),
        "https://b.org/2": httpx2.ConnectError("x"),
        "https://c.org/3": httpx2.Response(404),
    }
    bench = Bench(answers, extract, tmp_path)
    search = await bench.find(GRAPH.wanted(), *(pdf(url) for url in answers))
    assert [(a.outcome, a.is_transient) for a in search.attempts] == [
        ("throttled", True),
        ("down", True),
        ("absent", False),
    ]
    assert search.is_later
    assert search.retry_after_s == 7200
    bench = Bench({"*": httpx2.Response(404)}, extract, tmp_path)
    assert not (await bench.find(GRAPH.wanted(), pdf("https://c.org/3"))).is_later


@pytest.mark.shared
async def test_what_was_refused_before_is_not_judged_or_fetched_again(extract, tmp_path):
    bench = Bench({"https://a.org/2": QUANTUM.path.read_bytes()}, extract, tmp_path)
    first = await bench.find(FID.wanted(), pdf("https://a.org/2"))
    bench = Bench({"*": QUANTUM.path.read_bytes()}, extract, tmp_path)
    again = await bench.find(
        FID.wanted(),
        pdf("https://a.org/2"),
        pdf("https://a.org/3"),
        skip=["https://a.org/2"],
        refused=[first.attempts[0].sha256],
    )
    assert bench.network.urls == ["https://a.org/3"]
    assert again.attempts[0].reason == "the same file was put aside before"


async def test_no_places_no_attempts(extract, tmp_path):
    search = await Bench({}, extract, tmp_path).find(GRAPH.wanted())
    assert (search.found, search.attempts, search.is_later) == (None, [], False)


def read_html(path):
    """What extraction makes of an article in HTML: a title, sections, no pages."""
    assert path.suffix == ".html"
    part = "The model attends to all positions of the sequence at once, and it does so in parallel. " * 25
    text, sections = "Attention Is All You Need\nAshish Vaswani, Noam Shazeer\n", []
    for kind in ("abstract", "introduction", "method", "results", "references"):
        sections.append(Section(kind, kind.title(), len(text), len(text) + len(part)))
        text += part
    return Extraction("ok", kind="html", title="Attention Is All You Need", text=text, sections=tuple(sections))


async def test_html_is_a_full_text_where_there_is_no_better_one(tmp_path):
    answers = {
        "https://arxiv.org/html/1706.03762": "<!DOCTYPE html><html><body><article>…</article></body></html>",
        "https://arxiv.org/pdf/1706.03762": httpx2.Response(404),
    }
    bench = Bench(answers, read_html, tmp_path)
    search = await bench.find(PAPERS["attention"].wanted(), *known_locations({"arxiv": "1706.03762"}))
    assert [a.outcome for a in search.attempts] == ["absent", "stored"], search.attempts
    assert search.found.extraction.kind == "html"


@pytest.mark.parametrize(
    ("kind", "sections", "is_whole"),
    [
        ("html", ["abstract"], False),
        ("html", ["abstract", "references"], False),
        ("html", ["introduction", "method", "results"], True),
        ("jats", ["abstract", "references"], False),
        ("jats", ["introduction", "results"], True),
        ("text", ["introduction", "results"], False),
        ("markdown", ["introduction", "results"], False),
    ],
)
def test_a_page_about_a_paper_is_no_full_text(kind, sections, is_whole):
    part = "A sentence of the text. " * 150
    made = tuple(Section(k, k, n * len(part), (n + 1) * len(part)) for n, k in enumerate(sections))
    extraction = Extraction("ok", kind=kind, text=part * len(sections), sections=made)
    assert (find_fragment(extraction) is None) == is_whole
