"""Text layers judged by statistics; languages told by their frequent words."""

import pytest

from ingest.text.quality import judge
from tests.text.pdfs import PROSE

SHIFTED = "".join(chr(ord(c) - 29) if c.isalpha() else c for c in PROSE)
SWAPPED = PROSE.encode("utf-16-le").decode("utf-16-be")
GERMAN = (
    "Die Ergebnisse zeigen, dass die Methode besser ist als die anderen, und dass sie auch bei kleinen Mengen von Daten "
    "gut arbeitet. Wir haben nicht gewusst, ob das für alle Sprachen gilt, aber es sieht so aus. "
)
FRENCH = (
    "Nous proposons une méthode qui permet de résumer les textes, et nous montrons que les résultats sont meilleurs que "
    "ceux des autres. Ce travail est une première étape pour la suite. "
)
POLISH = (
    "Wyniki pokazują, że metoda jest lepsza niż inne, a także że działa dobrze dla małych zbiorów danych. Nie wiemy jednak, "
    "czy to samo dotyczy wszystkich języków, ale tak to wygląda. "
)
CHINESE = (
    "我们提出了一种新的方法来解决这个问题，并且在多个数据集上进行了实验。结果表明，该方法优于以前的方法，而且可以用于其他任务。"
    * 2
)


@pytest.mark.parametrize(
    ("text", "language"), [(PROSE, "en"), (GERMAN, "de"), (FRENCH, "fr"), (POLISH, None), (CHINESE, "zh")]
)
def test_language_is_good(text, language):
    found = judge([text * 2])
    assert found.quality == "good"
    assert found.language == language


@pytest.mark.parametrize(
    "text",
    [
        SWAPPED,
        SHIFTED * 3,
        "\ufffd\ufffd\ufffdab\ufffd\ufffd " * 30,
        "\ue012\ue013\ue015 \ue020\ue021 " * 30,
        "Ðåçóëüòàòû ïîêàçûâàþò, ÷òî ìåòîä ëó÷øå äðóãèõ è ðàáîòàåò õîðîøî äëÿ âñåõ äàííûõ ýòîé çàäà÷è " * 4,
        "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(400)),
    ],
)
def test_garbage_is_told(text):
    assert judge([text]).quality == "garbage"


def test_noise_of_bad_recognition_is_low():
    noise = "tbe fr0m w!th Bfl. iseorty ttsr^oj saifii; s*r;tiiR» fc-ugsx «3E*»CM aom^bere enc*losing the kn^ot thei*r ch&ck "
    assert judge([(noise + PROSE[:100]) * 4]).quality == "low"


@pytest.mark.parametrize("text", ["", "x = 3", "1 2 3 4 5 " * 50, "Results"])
def test_little_or_no_text_gets_the_benefit_of_the_doubt(text):
    assert judge([text]).quality == "good"
