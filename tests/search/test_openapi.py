"""Any request that the documentation allows, and many that it does not, get an answer of its forms; never a 500."""

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from tests.search.corpus import load
from tests.search.test_trouble import ROWS, _start


@pytest.fixture
def address(database, home):
    load(database, [{**ROWS[0], "metadata": {"topics": ["one"], "doi": "10.5555/x/text"}}])
    process = _start(database, home, "--port", "0")
    port = re.search(r":(\d+)$", process.stdout.readline().strip())[1]
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.communicate(timeout=20)


def test_the_server_keeps_what_its_documentation_says(address):
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    seen = []
    for found in schema.get_all_operations():
        operation = found.ok()
        seen.append(operation.path)

        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def ask(case):
            response = case.call()
            assert response.status_code < 500
            if response.status_code >= 400:
                assert response.headers["content-type"][0].startswith("application/problem+json")
            case.validate_response(response, excluded_checks=_STRICT)

        ask()
    assert {"/brain_search", "/papers", "/papers/{paper_id}", "/health"} <= {re.sub(":path", "", path) for path in seen}


# The parameters are read leniently where HTTP allows it (an unknown paper for any text), so these two do not apply.
_STRICT = [
    check
    for name in ("negative_data_rejection", "positive_data_acceptance", "unsupported_method", "missing_required_header")
    if (check := getattr(schemathesis.checks, name, None)) is not None
]
