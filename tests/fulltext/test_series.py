"""Papers of the same people whose titles are nearly the wanted one, and the many ways in which a title is printed."""

from __future__ import annotations

import dataclasses

import pytest

from ingest.fulltext.front import Front, read_front
from ingest.fulltext.letters import letters
from ingest.fulltext.shape import find_shape
from ingest.fulltext.verify import verify_identity
from ingest.fulltext.wanted import Wanted
from ingest.fulltext.wording import is_same_wording
from ingest.text.result import Extraction
from tests.fulltext.papers import sheets, written

TITLE = "Adaptive Sampling of Rare Events in Noisy Sensor Networks"
AUTHORS = ("Maria Keller", "Tomas Novak")
PROSE = "The model learns a representation of each sentence and is compared with earlier work."
DOI = "10.5555/asre.2021.17"


def front(*head: str, authors="Maria Keller and Tomas Novak", title: str | None = None, more=()) -> Front:
    """A first page as it is read: what stands above, title, authors, abstract, text; `title` is what extraction gives."""
    page = (*head, authors, "Department of Things", "Abstract", PROSE, "1 Introduction", PROSE)
    return Front((page, *more), (title,) if title else ())


def judged(read: Front, title=TITLE, authors=AUTHORS, **ids):
    return verify_identity(read, Wanted.of(ids, title=title, authors=authors))


ONE_SERIES = [  # wanted, found: the authors are the same
    (f"{TITLE}. Part I: Theory", f"{TITLE}. Part II: Experiments"), (TITLE, f"{TITLE} II"), (TITLE, f"{TITLE} Revisited"),
    (f"{TITLE}, Revisited", TITLE), (TITLE, f"{TITLE}: Supplementary Materials"), (TITLE, TITLE.replace("Rare", "Common")),
    (TITLE, TITLE.replace("in Noisy", "without Noisy")), (TITLE, f"Editorial: {TITLE}"), (TITLE, f"Data from: {TITLE}"),
    (TITLE, f"Review of {TITLE}"), (TITLE, f"Towards {TITLE}"), (TITLE, f"{TITLE} in Python"),
    ("Supervised Learning of Rare Events in Networks", "Unsupervised Learning of Rare Events in Networks"),
    ("Effects of Sleep on Memory in Male Rats", "Effects of Sleep on Memory in Female Rats"),
    ("Effects of Hypothermia on Memory in Older Patients", "Effects of Hyperthermia on Memory in Older Patients"),
    ("Intercellular Transport of Calcium in Muscle Tissue", "Intracellular Transport of Calcium in Muscle Tissue"),
    ("Adsorption of Water on Small Silver Particles", "Absorption of Water on Small Silver Particles"),
    ("Income Inequality and Health: Evidence from Norway", "Income Inequality and Health: Evidence from Sweden"),
    ("Rare Events Are Sampled Well by Noisy Sensors", "Rare Events Are Not Sampled Well by Noisy Sensors"),
    ("Sampling of Rare Events in 3D Sensor Networks", "Sampling of Rare Events in 2D Sensor Networks"),
    ("From Sensors to Networks in Noisy Water", "From Networks to Sensors in Noisy Water"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "found"), ONE_SERIES)
def test_another_paper_of_a_series_does_not_pass(wanted, found):
    assert not judged(front(found, title=found), wanted).is_right
    assert not judged(front(found), wanted).is_right
    words = found.split()
    for n in range(1, len(words)):  # wherever the line breaks
        broken = front(" ".join(words[:n]), " ".join(words[n:]), title=found)
        assert not judged(broken, wanted).is_right, words[n]


ABOVE = ["Commentary on", "Commentary:", "A Replication Study of", "Article reviewed:", "A Critical Look at the Methods behind", "Journal Club",
         "Table of Contents", "CS 512 Reading List", "Book of Abstracts", "Author Response", "Appendix", "Online Appendix to"]  # fmt: skip
BELOW = ["Part 2: Experiments", "Revisited", "Ten Years Later", "and Its Applications", "using Copulas", "Online Appendix", "Supplementary Material",
         "A Reply to Our Critics"]  # fmt: skip


@pytest.mark.parametrize("line", ABOVE)
def test_a_title_below_words_that_make_it_anothers_does_not_pass(line):
    assert not judged(front(line, TITLE)).is_right


@pytest.mark.parametrize("line", BELOW)
def test_a_title_that_goes_on_below_does_not_pass(line):
    assert not judged(front(TITLE, line)).is_right


KICKERS = ["REVIEW", "Review:", "Letter to the Editor", "EDITORIAL", "RESEARCH ARTICLE", "Journal of", "Transactions of the Society for", "Topic:",
           "Published as a conference paper at ICLR 2021", "Vol. 12, No. 3, 2021, pp. 100-115", "Highlights"]  # fmt: skip
NOTES = ["Received 12 March 2020; accepted 1 May 2021", "Comments welcome", "Updated: May 2021", "Extended Abstract", "Volume 12", "12 May 2021",
         "In memory of Olga Third", "On behalf of the ASRE group", ": A Case Study", "1 Department of Things"]  # fmt: skip


@pytest.mark.parametrize("line", KICKERS)
def test_labels_and_mastheads_above_a_title_do_no_harm(line):
    assert judged(front(line, TITLE)).is_right


@pytest.mark.parametrize("line", NOTES)
def test_notes_below_a_title_do_no_harm(line):
    assert judged(front(TITLE, line)).is_right


SPELLED = [
    ("Modelling the Behaviour of Rare Events in Noisy Networks", "Modeling the Behavior of Rare Events in Noisy Networks"),
    (TITLE, TITLE.replace("Adaptive", "Adpative")), (TITLE, TITLE.replace("Networks", "Network")), (TITLE, f"The {TITLE}"),
    ("On $\\alpha$-stable processes with $H > 1/2$", "On α-stable Processes with H > 1/2"),
    ("Decay of $B^0 \\to K^* \\mu^+ \\mu^-$ at 13 TeV", "Decay of B0 → K∗µ+µ− at 13 TeV"),
    ("Oxidation of H<sub>2</sub>O<sub>2</sub> on TiO<sub>2</sub>", "Oxidation of H2O2 on TiO2"),
    ("Efficient Classification of Shuffled Flow Fields", "Eﬃcient Classiﬁcation of Shuﬄed Flow Fields"),
    ("Seeing Through Fog at Night: A Study of Sensors", "Seeing Through Fog at Night"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "found"), SPELLED)
def test_one_title_spelled_twice_passes(wanted, found):
    assert judged(front(found), wanted).is_right


def test_another_subtitle_is_another_paper():
    wanted = "Measurements of Rare Events: Methods for Water"
    for head in (
        ("Measurements of Rare Events:", "Results for Air"),
        ("Measurements of Rare Events", "Results for Air"),
        ("Measurements of Rare Events: Results for Air",),
    ):
        assert not judged(front(*head), wanted).is_right, head


def test_a_list_of_a_thesis_is_no_title_and_a_cover_may_stand_before_one():
    sheet = ("Sampling in Networks", "Maria Keller", "A thesis")
    text = ("Declaration", *[PROSE] * 12)
    listed = ("List of Publications", TITLE, "Maria Keller and Tomas Novak. Journal of Sensors, 2021.")
    assert not judged(Front((sheet, text, listed))).is_right
    assert not judged(Front((sheet, listed))).is_right
    assert judged(Front((("Technical Report 4", "University of Somewhere"), front(TITLE).pages[0]))).is_right


def test_a_stamp_on_every_page_that_speaks_of_terms_makes_no_cover():
    stamp = "See the Terms and Conditions of the library for rules of use, 2022"
    pages = [(stamp, *front(TITLE).pages[0]), *[(stamp, f"{n} Methods", PROSE) for n in range(2, 5)]]
    assert judged(Front(tuple(pages))).is_right


def test_a_doi_that_an_editorial_names_is_not_its_own(tmp_path):
    own = "New Ways of Sensing"
    text = (
        f"{own}\nOlga Third\nIn this issue Maria Keller and Tomas Novak show\nhttps://doi.org/{DOI}\nthat much is so."
    )
    read = read_front(
        sheets(tmp_path, text), Extraction(kind="pdf", verdict="ok", title=own, text=text, n_pages=1, doi=DOI)
    )
    assert DOI not in read.own_dois
    assert DOI in read.named_dois
    assert not judged(read, doi=DOI).is_right
    quoting = dataclasses.replace(
        front(f"Maria Keller ({TITLE}) shows", authors="Olga Third", title=own), named_dois=frozenset({DOI})
    )
    assert not judged(quoting, doi=DOI).is_right


def test_a_servers_stamp_below_a_doi_is_no_sentence(tmp_path):
    text = f"{TITLE}\nMaria Keller\nhttps://doi.org/{DOI}\nbioRxiv preprint"
    read = read_front(sheets(tmp_path, text), Extraction(kind="pdf", verdict="ok", text=text, n_pages=1))
    assert read.own_dois == {DOI}


def test_a_title_in_another_language_passes_by_its_own_doi(tmp_path):
    own = "Echantillonnage adaptatif des evenements rares"
    text = f"Revue des capteurs\nhttps://doi.org/{DOI}\n{own}\nMaria Keller et Tomas Novak\nResume\n{PROSE}"
    read = read_front(
        sheets(tmp_path, text), Extraction(kind="pdf", verdict="ok", title=own, text=text, n_pages=1, doi=DOI)
    )
    assert judged(read, doi=DOI).is_right
    assert not judged(read).is_right


def test_wording_is_compared_both_ways():
    for one, other in ONE_SERIES:
        assert not is_same_wording(one, other)
        assert not is_same_wording(other, one)
    assert letters("\\varepsilon-nets") == letters("ε-nets")


def test_slides_posters_and_volumes_are_no_papers(tmp_path):
    import pymupdf

    document = pymupdf.open()
    for _ in range(6):
        document.new_page(width=720, height=405).insert_text((60, 60), TITLE, fontsize=24)
    slides = written(tmp_path, document.tobytes())
    document = pymupdf.open()
    document.new_page(width=2384, height=3370).insert_text((60, 160), TITLE, fontsize=80)
    poster = written(tmp_path, document.tobytes())
    sheet = sheets(tmp_path, TITLE)
    paper = "Abstract\n" + PROSE + "\n\nReferences\n[1] A. B. Things. 2001.\n\n"
    read = Extraction(kind="pdf", verdict="ok", text=paper, n_pages=6)
    assert find_shape(slides, read) == "slides"
    assert find_shape(poster, dataclasses.replace(read, n_pages=1)) == "a poster"
    assert find_shape(sheet, dataclasses.replace(read, n_pages=1)) is None
    assert find_shape(sheet, dataclasses.replace(read, text=paper * 2)) is None
    assert find_shape(sheet, dataclasses.replace(read, text=paper * 3)) == "several papers in one file"


def test_a_heading_that_runs_on_with_its_list_is_a_reference_list():
    from ingest.fulltext.complete import n_reference_lists

    run_on = "It is so.\n\nReferences [1] A. Author. Things, 2001. [2] B. Writer. More, 2002. [3] C. Third. Last, 2003."
    assert n_reference_lists(Extraction(kind="pdf", verdict="ok", text=run_on, n_pages=3)) == 1
    assert (
        n_reference_lists(Extraction(kind="pdf", verdict="ok", text="References to work of 2001 are rare.", n_pages=3))
        == 0
    )
