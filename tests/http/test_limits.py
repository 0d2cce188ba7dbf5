import asyncio
import itertools
import random

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.errors import SourceDown, SourceThrottled
from ingest.http import VirtualClock
from ingest.http.limits import HostLimits
from ingest.sources.base import HostRule, Request
from tests.http.support import stack

ARXIV = (
    HostRule("export.arxiv.org", 1, 3.0, 1, "one request every three seconds, one connection"),
    HostRule("oaipmh.arxiv.org", 1, 3.0, 1, "the same allowance", shared_with="export.arxiv.org"),
)


def times_of(network, host):
    return [at for at, url in network.asked if httpx2.URL(url).host == host]


async def test_a_published_limit_is_kept_and_another_host_does_not_wait():
    fetcher, network, _ = stack({"*": b"x"}, rules=ARXIV)
    async with fetcher:
        urls = [f"https://export.arxiv.org/{i}" for i in range(4)] + [f"https://other.org/{i}" for i in range(4)]
        await asyncio.gather(*(fetcher.get(url) for url in urls))
    times = times_of(network, "export.arxiv.org")
    assert all(b - a >= 3.0 for a, b in itertools.pairwise(times))
    assert max(times_of(network, "other.org")) == 1000.0


async def test_hosts_that_share_an_allowance_wait_for_each_other():
    fetcher, network, _ = stack({"*": b"x"}, rules=ARXIV)
    async with fetcher:
        for host in ("export.arxiv.org", "oaipmh.arxiv.org", "export.arxiv.org"):
            await fetcher.get(f"https://{host}/")
    times = [at for at, _ in network.asked]
    assert times[1] - times[0] >= 3.0
    assert times[2] - times[1] >= 3.0


async def test_several_rules_of_a_host_all_hold():
    rules = (HostRule("api.plos.org", 2, 10.0, 5, "a"), HostRule("api.plos.org", 3, 60.0, 5, "b"))
    fetcher, network, _ = stack({"*": b"x"}, rules=rules)
    async with fetcher:
        await asyncio.gather(*(fetcher.get(f"https://api.plos.org/{i}") for i in range(5)))
    times = times_of(network, "api.plos.org")
    assert times[2] - times[0] >= 10.0
    assert times[3] - times[0] >= 60.0


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(1, 5),
    per_s=st.floats(0.5, 60.0),
    gaps=st.lists(st.floats(0.0, 40.0), min_size=1, max_size=25),
)
def test_no_window_ever_holds_more_than_the_limit(n, per_s, gaps):
    async def run():
        clock = VirtualClock()
        limits = HostLimits([HostRule("h.org", n, per_s, 50, "x")], clock, turn_patience_s=1e9)
        starts = []
        for gap in gaps:
            clock.advance(gap)
            await limits.acquire("h.org")
            starts.append(clock.now())
            limits.release("h.org")
        return starts

    starts = asyncio.run(run())
    assert all(later - first >= per_s for first, later in zip(starts, starts[n:], strict=False))


async def test_no_more_connections_at_once_than_the_rule_says():
    clock = VirtualClock()
    limits = HostLimits([HostRule("h.org", 100, 1.0, 2, "x")], clock)
    held = []

    async def hold():
        await limits.acquire("h.org")
        held.append(1)
        await asyncio.sleep(0)
        assert len(held) <= 2
        held.pop()
        limits.release("h.org")

    await asyncio.gather(*(hold() for _ in range(10)))


async def test_retry_after_is_obeyed_for_everybody_on_the_host():
    throttled = httpx2.Response(429, headers={"retry-after": "7"})
    fetcher, network, _ = stack({"https://h.org/a": [throttled, b"a"], "*": b"x"})
    async with fetcher:
        assert (await fetcher.get("https://h.org/a")).body == b"a"
        assert network.asked[1][0] - network.asked[0][0] >= 7.0
    assert fetcher.counts["h.org", "throttled"] == 1
    assert fetcher.counts["h.org", "ok"] == 1


async def test_a_date_in_retry_after_is_counted_from_the_answers_own_date():
    headers = {"retry-after": "Mon, 30 Nov 2026 10:00:20 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}
    fetcher, network, _ = stack({"https://h.org/a": [httpx2.Response(503, headers=headers), b"a"]})
    async with fetcher:
        await fetcher.get("https://h.org/a")
    assert network.asked[1][0] - network.asked[0][0] >= 20.0


async def test_without_retry_after_the_pause_grows():
    fetcher, network, _ = stack({"https://h.org/a": [httpx2.Response(429)] * 3 + [b"a"]})
    async with fetcher:
        await fetcher.get("https://h.org/a")
    times = [at for at, _ in network.asked]
    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert pauses[0] >= 5
    assert pauses[1] >= 10
    assert pauses[2] >= 20


async def test_a_long_pause_is_an_outcome_and_nothing_is_sent_meanwhile():
    throttled = httpx2.Response(429, headers={"retry-after": "3600"})
    fetcher, network, clock = stack({"https://h.org/a": [throttled, b"a"]})
    async with fetcher:
        with pytest.raises(SourceThrottled) as caught:
            await fetcher.get("https://h.org/a")
        assert caught.value.retry_after_s == 3600
        with pytest.raises(SourceThrottled) as caught:
            await fetcher.get("https://h.org/b")
        assert caught.value.retry_after_s == pytest.approx(3600)
        assert len(network.asked) == 1
        clock.advance(3601)
        assert (await fetcher.get("https://h.org/a")).body == b"a"


async def test_a_source_reads_the_throttled_answer_itself_in_the_end():
    fetcher, network, _ = stack({"*": httpx2.Response(429, content=b"Rate exceeded.")})
    async with fetcher:
        answer = await fetcher.ask(Request("https://h.org/a"))
    assert (answer.status, answer.body) == (429, b"Rate exceeded.")
    assert len(network.asked) > 1


async def test_a_broken_host_is_left_alone_then_tried_once():
    fetcher, network, clock = stack({"*": httpx2.ConnectError("refused")}, n_attempts=1)
    async with fetcher:
        for _ in range(6):
            with pytest.raises(SourceDown):
                await fetcher.get("https://h.org/a")
        with pytest.raises(SourceDown, match="left alone") as caught:
            await fetcher.get("https://h.org/a")
        assert caught.value.retry_after_s == pytest.approx(60)
        assert len(network.asked) == 6
        await fetcher_fails(fetcher, "https://other.org/")
        clock.advance(61)
        await fetcher_fails(fetcher, "https://h.org/a")
        assert len(network.asked) == 8
        with pytest.raises(SourceDown, match="left alone") as caught:
            await fetcher.get("https://h.org/a")
        assert caught.value.retry_after_s == pytest.approx(120)
        clock.advance(121)
        network.answers["*"] = [b"well again"]
        assert (await fetcher.get("https://h.org/a")).body == b"well again"
        assert (await fetcher.get("https://h.org/a")).body == b"well again"


async def fetcher_fails(fetcher, url):
    with pytest.raises(SourceDown):
        await fetcher.get(url)


async def test_a_limit_that_an_answer_states_tightens_ours_and_never_loosens_it():
    clock = VirtualClock()
    limits = HostLimits([HostRule("h.org", 10, 1.0, 5, "x")], clock, random_source=random.Random(1))
    limits.learn("h.org", {"x-rate-limit-limit": "150", "x-rate-limit-interval": "1s"})
    limits.learn("h.org", {"x-rate-limit-limit": "2", "x-rate-limit-interval": "1s"})
    starts = []
    for _ in range(5):
        await limits.acquire("h.org")
        starts.append(clock.now())
        limits.release("h.org")
    assert starts[4] - starts[0] >= 2.0


async def test_a_used_up_budget_waits_for_its_reset():
    spent = httpx2.Response(200, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, content=b"a")
    fetcher, network, _ = stack({"https://h.org/a": spent, "*": b"x"})
    async with fetcher:
        await fetcher.get("https://h.org/a")
        await fetcher.get("https://h.org/b")
    assert network.asked[1][0] - network.asked[0][0] >= 30


async def test_a_cancelled_wait_gives_its_place_back():
    clock = VirtualClock()
    limits = HostLimits([HostRule("h.org", 10, 1.0, 1, "x")], clock)
    await limits.acquire("h.org")
    waiting = asyncio.create_task(limits.acquire("h.org"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    limits.release("h.org")
    await asyncio.wait_for(limits.acquire("h.org"), 1)
