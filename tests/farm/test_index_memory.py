"""A graph is built within the memory there is: more than the setting where it needs more, never more than its share."""

from hypothesis import given
from hypothesis import strategies as st

from corpus import vector_index
from corpus.embedded_host import memory_bytes
from corpus.vector_index import ROW_BYTES, build_memory_kb

MB = 1 << 20


def test_a_large_graph_gets_its_memory_and_a_small_one_keeps_the_setting():
    plenty = {"setting": 64 * MB, "shared_buffers": 8192 * MB, "memory": 48_000 * MB}
    assert build_memory_kb(n_rows=1_000, **plenty) is None
    assert build_memory_kb(n_rows=1_000_000, **plenty) == 1_000_000 * ROW_BYTES // 1024
    assert build_memory_kb(n_rows=1_000_000, setting=170 * MB, shared_buffers=341 * MB, memory=2048 * MB) == 341 * 1024


@given(
    n_rows=st.integers(0, 10**9), setting=st.integers(64 << 10, 1 << 40), shared_buffers=st.integers(128 << 10, 1 << 40),
    memory=st.integers(MB, 1 << 42),
)  # fmt: skip
def test_it_is_never_less_than_the_setting_nor_more_than_a_quarter_of_the_memory(
    n_rows, setting, shared_buffers, memory
):
    given_kb = build_memory_kb(n_rows=n_rows, setting=setting, shared_buffers=shared_buffers, memory=memory)
    if given_kb is not None:
        assert setting // 1024 <= given_kb <= memory // 4 // 1024
        assert given_kb <= n_rows * ROW_BYTES // 1024


def test_settings_of_the_session_are_as_before_after_a_build(database):
    with database.connect(autocommit=True) as connection:
        names = ("maintenance_work_mem", "max_parallel_maintenance_workers")
        before = [connection.execute("SELECT current_setting(%s)", [name]).fetchone() for name in names]
        with vector_index._settings(connection, 0, 70_000):
            assert connection.execute("SELECT current_setting('maintenance_work_mem')").fetchone() == ("70000kB",)
        assert [connection.execute("SELECT current_setting(%s)", [name]).fetchone() for name in names] == before
        vector_index.drop(connection, 1, "passage")
        assert vector_index.ensure(connection, 1) == ["passage"]


def test_the_limit_of_a_unit_or_a_container_counts(tmp_path):
    """Version 1 and 2 of cgroups, and limits that stand above our own."""
    own = tmp_path / "cgroup"
    for text, limited in (
        ("0::/system.slice/brain.service\n", "system.slice/brain.service/memory.max"),
        ("0::/system.slice/brain.service\n", "system.slice/memory.max"),
        ("9:name=systemd:/x\n4:cpu,memory:/unit\n0::/\n", "memory/unit/memory.limit_in_bytes"),
        ("0::/\n", "memory.max"),
    ):
        root = tmp_path / text.replace("/", "_").replace("\n", "") / limited.replace("/", "_")
        (root / limited).parent.mkdir(parents=True)
        (root / limited).write_text(str(7 * MB))
        (root / "memory.max").write_text("max\n") if limited != "memory.max" else None
        own.write_text(text)
        assert memory_bytes(root, own) == 7 * MB, limited
    assert memory_bytes(tmp_path / "nothing", tmp_path / "nobody") > 64 * MB
