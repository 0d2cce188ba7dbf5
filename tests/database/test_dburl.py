"""Addresses of databases: every usual form is read, passwords never shown."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import conninfo

from corpus.database import Database
from corpus.dburl import mask, parse_database_url
from corpus.errors import DatabaseUrlError


def test_embedded_addresses(tmp_path):
    assert parse_database_url("embedded:", tmp_path).embedded_dir == tmp_path / "db"
    assert parse_database_url(f"embedded:{tmp_path}/x y", tmp_path).embedded_dir == tmp_path / "x y"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:p%40w@h:1/d",
        "postgres://h/d",
        "host=h dbname=d",
        "postgresql:///d?host=/run/x",
        "postgresql://a:1,b:2/d",
    ],
)
def test_libpq_addresses_pass_as_they_are(text, tmp_path):
    assert parse_database_url(text, tmp_path).conninfo == text


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("postgresql://u:Se@cret@h/d", "%40"), ("postgresql://u:Se%cret@h/d", "%25"), ("postgres+psycopg://u:Secret@h/d", "postgresql://"),
        ("mysql://u:Secret@h/d", "postgresql://"), ("just words", "postgresql://"), ("  ", "--db"), ("postgresql://h:port/d?nonsense=1", "ercent"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_the_mend_and_not_the_password(text, mend, tmp_path):
    with pytest.raises(DatabaseUrlError) as caught:
        parse_database_url(text, tmp_path)
    assert mend in str(caught.value)
    assert "cret" not in str(caught.value)


@given(
    st.text(st.characters(codec="ascii", exclude_characters="\x00"), min_size=4, max_size=12).filter(
        lambda t: t not in "postgresql://user@host:5432/nameX***"
    )
)
def test_no_part_of_a_password_is_shown(secret):
    secret = f"Zq{secret}qZ"
    for text in (
        f"postgresql://user:{quote(secret, safe='')}@host:5432/name",
        f"postgresql://user@host/name?password={quote(secret, safe='')}",
    ):
        shown = mask(text)
        assert secret not in shown
        assert quote(secret, safe="") not in shown


def test_key_value_passwords_are_masked():
    assert "tops" not in mask("host=h password=tops3cret dbname=d")
    assert "tops" not in mask(r"host=h password='tops \' 3cret' dbname=d")


def test_our_name_and_patience_are_added_and_given_ones_kept(tmp_path):
    text = Database.at("postgresql://h/d?connect_timeout=9", tmp_path, application_name="me").conninfo
    assert "connect_timeout=9" in text
    assert "application_name=me" in text


def test_where_several_hosts_are_named_a_silent_one_is_left_within_seconds(tmp_path):
    one = conninfo.conninfo_to_dict(Database.at("postgresql://one/d", tmp_path).conninfo)
    several = Database.at("postgresql://one,two/d?target_session_attrs=any", tmp_path)
    chosen = conninfo.conninfo_to_dict(several.conninfo)
    assert (int(one["tcp_user_timeout"]), int(chosen["tcp_user_timeout"])) == (45000, 2500)
    assert int(chosen["connect_timeout"]) == 2
    assert "target_session_attrs=read-write" in several.write_conninfo
    kept = Database.at("postgresql://one,two/d?tcp_user_timeout=9000", tmp_path).conninfo
    assert "tcp_user_timeout=9000" in kept
