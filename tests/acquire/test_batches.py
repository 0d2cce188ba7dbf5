"""Look-ups of many papers at once: each is asked for, and one that a source refuses does not stand for the others."""

import json

import pytest

from tests.acquire.internet import ARXIV, Internet, serving
from tests.acquire.support import ingest, write_topic

pytestmark = pytest.mark.shared
BATCH = "api.semanticscholar.org/graph/v1/paper/batch"


@pytest.mark.parametrize("is_key_bad", [False, True])
def test_a_paper_that_is_refused_stands_alone(database, tmp_path, is_key_bad):
    ids = sorted(ARXIV)[:7]
    write_topic(tmp_path, ids=ids, queries=())
    internet = Internet()
    answer = internet.answer

    def refusing(method, url, body):
        if url.startswith("api.semanticscholar.org/") and (is_key_bad or ids[3] in url or ids[3] in body.decode()):
            return 400, "application/json", json.dumps({"error": "No valid paper ids given"}).encode()
        return answer(method, url, body)

    internet.answer = refusing
    with serving(internet):
        ingest(database, tmp_path, internet, has_full_texts=False)
    with database.connect() as connection:
        said = dict(
            connection.execute(
                "SELECT p.paper_id, k.outcome FROM lookup k JOIN paper p USING (paper_pk) WHERE k.source = 'semantic-scholar'"
            ).fetchall()
        )
    n_asked = sum(url.startswith("api.semanticscholar.org/") for _, url in internet.asked)
    if is_key_bad:
        assert set(said.values()) == {"refused"}
        assert n_asked == 3
    else:
        assert {own for own, outcome in said.items() if outcome == "refused"} == {f"arxiv:{ids[3]}"}
        assert sorted(set(said.values())) == ["ok", "refused"]
    assert len(said) == len(ids)
