import pytest

from corpus.errors import UsageError
from search_server.access import check_access, is_loopback


def test_loopback_is_open():
    assert check_access("127.0.0.1", None, []).allows("127.0.0.1", None)
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")


def test_an_open_address_needs_a_rule():
    with pytest.raises(UsageError, match="--token"):
        check_access("0.0.0.0", None, [])


def test_token_and_network():
    rules = check_access("0.0.0.0", "a-long-secret", ["192.168.1.0/24"])
    assert rules.allows("10.0.0.1", "Bearer a-long-secret")
    assert not rules.allows("10.0.0.1", "Bearer another-secret")
    assert not rules.allows("10.0.0.1", "a-long-secret")
    assert not rules.allows("10.0.0.1", None)
    assert rules.allows("192.168.1.77", None)
    assert rules.allows("::ffff:192.168.1.77", None)
    assert not rules.allows("192.168.2.1", None)
    assert not rules.allows(None, None)
