"""JSONL files as people have them: compressed in pieces, cut off, with odd line ends."""

import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import InputError
from ingest.jsonl import iter_lines


def write(path, content):
    path.write_bytes(content)
    return path


def rows(n, start=0):
    return b"".join(json.dumps({"_id": str(i), "text": "word " * 50}).encode() + b"\n" for i in range(start, start + n))


def test_joined_gzip_members_are_one_file(tmp_path):
    joined = gzip.compress(rows(3)) + gzip.compress(b"") + gzip.compress(rows(2, 3)) + bytes(512)
    found = list(iter_lines(write(tmp_path / "joined.jsonl.gz", joined)))
    assert [line.value["_id"] for line in found] == ["0", "1", "2", "3", "4"]


def test_a_member_that_ends_within_a_line_goes_on_in_the_next(tmp_path):
    whole = rows(4)
    joined = gzip.compress(whole[:100]) + gzip.compress(whole[100:])
    assert len(list(iter_lines(write(tmp_path / "a.gz", joined)))) == 4


@pytest.mark.parametrize("cut", [1, 8, 40, 200])
def test_a_cut_off_gzip_file_is_said_to_be_one_and_gives_whole_rows_only(tmp_path, cut):
    packed = gzip.compress(rows(2000))
    path = write(tmp_path / "cut.jsonl.gz", packed[: len(packed) - cut])
    found = []
    with pytest.raises(InputError, match="cut.jsonl.gz"):
        for line in iter_lines(path):
            found.append(line)  # noqa: PERF402 - what came before the error counts
    assert all(line.error is None for line in found)


def test_damaged_gzip_is_named(tmp_path):
    packed = bytearray(gzip.compress(rows(3000)))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InputError, match="bad.gz"):
        list(iter_lines(write(tmp_path / "bad.gz", bytes(packed))))


def test_a_bomb_is_read_in_small_pieces(tmp_path):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b"\n" * (1 << 20)) for _ in range(64)) + packer.flush()
    assert list(iter_lines(write(tmp_path / "blank.gz", packed))) == []


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=8))
def test_only_lf_ends_a_line(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    body = "\n".join(json.dumps({"t": text}, ensure_ascii=False) for text in texts)
    path.write_bytes(b"\xef\xbb\xbf" + body.encode())
    assert [line.value["t"] for line in iter_lines(path)] == texts


def test_bad_lines_are_named_by_number_and_the_rest_is_read(tmp_path):
    content = b'{"_id": "1"}\n\nnot json\n{"_id": "\xff"}\n[1]\n{"_id": NaN}\r\n{"_id": "2"}'
    found = list(iter_lines(write(tmp_path / "x.jsonl", content)))
    assert [(line.number, line.error is None) for line in found] == [
        (1, True), (3, False), (4, False), (5, True), (6, False), (7, True),
    ]  # fmt: skip


def test_deep_nesting_is_an_error_of_its_line(tmp_path):
    found = list(iter_lines(write(tmp_path / "x.jsonl", b"[" * 200_000 + b'\n{"_id": "1"}\n')))
    assert found[0].error is not None
    assert found[1].value == {"_id": "1"}
