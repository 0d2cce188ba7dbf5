import asyncio
import gzip
import hashlib
import socket
import zlib
from datetime import timedelta

import httpx2
import pytest

from corpus.errors import AddressRefused, SourceAbsent, SourceDown, SourceNonsense, SourceRefused, SourceThrottled
from ingest.http import BodyLimits, Fetcher, HttpSettings, VirtualClock
from ingest.sources.base import Request, json_body
from tests.http.support import FREE, Stream, stack

PDF = b"%PDF-1.7 body"
URL = "https://example.org/a"


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (404, {}, SourceAbsent), (410, {}, SourceAbsent), (429, {}, SourceThrottled), (503, {"retry-after": "1"}, SourceThrottled),
        (503, {}, SourceDown), (500, {}, SourceDown), (504, {}, SourceDown), (521, {}, SourceDown), (408, {}, SourceDown),
        (400, {}, SourceRefused), (401, {}, SourceRefused), (403, {}, SourceRefused), (405, {}, SourceRefused), (422, {}, SourceRefused),
        (451, {}, SourceRefused), (304, {}, SourceNonsense), (302, {}, SourceNonsense), (600, {}, SourceNonsense),
    ],
)  # fmt: skip
async def test_five_outcomes_are_told_apart(status, headers, error, tmp_path):
    for ask in (lambda f: f.get(URL), lambda f: f.download(URL, tmp_path)):
        fetcher, network, _ = stack({"*": httpx2.Response(status, headers=headers, content=b"no")})
        async with fetcher:
            with pytest.raises(error) as caught:
                await ask(fetcher)
        assert type(caught.value) is error
        assert len(network.asked) == (4 if error.transient else 1)
    fetcher, network, _ = stack({"*": httpx2.Response(status, headers=headers, content=b"no")})
    async with fetcher:
        assert (await fetcher.ask(Request(URL))).status == status
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "failure",
    [
        httpx2.ConnectError("x"),
        httpx2.ReadTimeout("x"),
        httpx2.ReadError("reset"),
        httpx2.RemoteProtocolError("cut off"),
        httpx2.PoolTimeout("x"),
    ],
)
async def test_a_failure_of_the_network_is_down_and_tried_again(failure):
    fetcher, network, _ = stack({URL: [failure, failure, b"at last"]})
    async with fetcher:
        assert (await fetcher.get(URL)).body == b"at last"
    times = [at for at, _ in network.asked]
    assert times[1] - times[0] >= 1
    assert times[2] - times[1] >= 2
    fetcher, network, _ = stack({URL: failure})
    async with fetcher:
        with pytest.raises(SourceDown):
            await fetcher.ask(Request(URL))
    assert len(network.asked) == 4


async def test_a_body_that_breaks_off_is_fetched_again_and_leaves_no_file(tmp_path):
    def broken(_request):
        return httpx2.Response(200, stream=Stream([PDF[:5], httpx2.ReadError("reset")]))

    fetcher, network, _ = stack({URL: [broken, broken, PDF]})
    async with fetcher:
        got = await fetcher.download(URL, tmp_path)
    assert got.path.read_bytes() == PDF
    assert got.sha256 == hashlib.sha256(PDF).hexdigest()
    assert [p.name for p in tmp_path.iterdir()] == [got.sha256 + ".pdf"]
    assert len(network.asked) == 3


async def test_the_file_is_named_by_its_hash_whatever_the_host_says(tmp_path):
    url = "https://example.org/..%2f..%2fetc/passwd%00.sh"
    headers = {"content-disposition": 'attachment; filename="../../evil.sh"', "content-type": "text/html"}
    fetcher, _, _ = stack({"*": httpx2.Response(200, headers=headers, content=b"\xef\xbb\xbf\n<!DOCTYPE HTML><p>")})
    async with fetcher:
        got = await fetcher.download(url, tmp_path)
    assert got.path == tmp_path / f"{got.sha256}.html"
    assert (got.content_type, got.final_url) == ("text/html", url)


@pytest.mark.parametrize("declared", [True, False])
async def test_a_file_above_the_limit_is_given_up(tmp_path, declared):
    def large(_request):
        headers = {"content-length": "1000"} if declared else {}
        return httpx2.Response(200, headers=headers, stream=Stream([b"x" * 100] * 10))

    fetcher, network, _ = stack({URL: large})
    async with fetcher:
        with pytest.raises(SourceNonsense, match="limit of 500"):
            await fetcher.download(URL, tmp_path, 500)
        assert (await fetcher.download(URL, tmp_path, 1000)).n_bytes == 1000
    assert len(network.asked) == 2


async def test_a_decompression_bomb_ends_at_the_limit(tmp_path):
    packed = gzip.compress(b"\0" * (64 << 20))
    assert len(packed) < 100_000
    fetcher, _, _ = stack({URL: httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=Stream([packed]))})
    async with fetcher:
        with pytest.raises(SourceNonsense, match="larger than"):
            await fetcher.download(URL, tmp_path, 1 << 20)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "zstd", "gzip, deflate, gzip"])
async def test_encodings_that_were_not_asked_for_are_not_unpacked(coding):
    fetcher, _, _ = stack(
        {URL: lambda r: httpx2.Response(200, headers={"content-encoding": coding}, stream=Stream([b"x"]))}
    )
    async with fetcher:
        with pytest.raises(SourceNonsense, match="encoded"):
            await fetcher.get(URL)


async def test_gzip_and_deflate_are_unpacked_and_damage_is_nonsense():
    for coding, packed in (("gzip", gzip.compress(b"text")), ("deflate", zlib.compress(b"text"))):
        fetcher, _, _ = stack(
            {
                URL: lambda r, c=coding, p=packed: httpx2.Response(
                    200, headers={"content-encoding": c}, stream=Stream([p])
                )
            }
        )
        async with fetcher:
            assert (await fetcher.get(URL)).body == b"text"
    fetcher, _, _ = stack(
        {URL: lambda r: httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=Stream([b"no gzip"]))}
    )
    async with fetcher:
        with pytest.raises(SourceNonsense, match="unpacked"):
            await fetcher.get(URL)


async def test_a_slow_drip_ends(tmp_path):
    fetcher, _, clock = stack({}, n_attempts=1)

    def drip(_request):
        return httpx2.Response(200, stream=Stream(x for _ in range(10_000) for x in (b".", lambda: clock.advance(1))))

    fetcher._files._transport._inner._inner.answers["*"] = [drip]
    started = clock.now()
    async with fetcher:
        with pytest.raises(SourceDown, match="drips"):
            await fetcher.download(URL, tmp_path)
    assert clock.now() - started < 30


async def test_a_slow_but_steady_download_may_take_its_time_up_to_the_limit(tmp_path):
    fetcher, network, clock = stack({}, n_attempts=1)

    def steady(seconds):
        return lambda _: httpx2.Response(
            200, stream=Stream(x for _ in range(seconds) for x in (b"." * 2000, lambda: clock.advance(1)))
        )

    network.answers[URL] = [steady(500), steady(700)]
    async with fetcher:
        assert (await fetcher.download(URL, tmp_path)).n_bytes == 1_000_000
        with pytest.raises(SourceDown, match="longer than"):
            await fetcher.download(URL, tmp_path)


async def test_a_host_that_hangs_ends(tmp_path):
    """A real server that accepts and says nothing, then one that stops in the middle of the body."""
    for said in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"):

        async def serve(reader, writer, said=said):
            writer.write(said)
            await writer.drain()
            await reader.read()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        quick = timedelta(seconds=0.1)
        settings = HttpSettings(
            base_url=f"http://127.0.0.1:{port}",
            read_timeout=quick,
            n_attempts=2,
            default_rule=FREE,
            file=BodyLimits(1000, timedelta(seconds=1)),
        )
        async with Fetcher(settings, clock=VirtualClock()) as fetcher:
            with pytest.raises(SourceDown):
                await fetcher.download(URL, tmp_path)
        server.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_truncated_body_is_down_not_a_file(tmp_path):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%PDF-1.7 half")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
    port = server.sockets[0].getsockname()[1]
    settings = HttpSettings(base_url=f"http://127.0.0.1:{port}", n_attempts=2, default_rule=FREE)
    async with Fetcher(settings, clock=VirtualClock()) as fetcher:
        with pytest.raises(SourceDown):
            await fetcher.download(URL, tmp_path)
    server.close()
    assert list(tmp_path.iterdir()) == []


def redirect(to, status=302):
    return httpx2.Response(status, headers={"location": to})


async def test_redirects_are_followed_from_the_original_address(tmp_path):
    fetcher, network, _ = stack(
        {
            URL: redirect("/b?x=1#frag"),
            "https://example.org/b?x=1": redirect("//cdn.example.com/c"),
            "https://cdn.example.com/c": PDF,
        }
    )
    async with fetcher:
        got = await fetcher.download(URL, tmp_path)
    assert got.final_url == "https://cdn.example.com/c"
    assert len(network.asked) == 3


async def test_a_circle_of_redirects_ends():
    fetcher, network, _ = stack({URL: redirect("https://example.org/b"), "https://example.org/b": redirect(URL)})
    async with fetcher:
        with pytest.raises(SourceNonsense, match="redirects more than 8 times"):
            await fetcher.get(URL)
    assert len(network.asked) == 9


@pytest.mark.parametrize(
    "to",
    ["file:///etc/passwd", "http://127.0.0.1/", "http://[::ffff:10.0.0.1]/", "gopher://x.org/", "http://u:p@x.org/"],
)
async def test_each_hop_is_judged(to):
    fetcher, network, _ = stack(
        {URL: redirect("https://example.org/b"), "https://example.org/b": redirect(to), "*": b"secret"}
    )
    async with fetcher:
        with pytest.raises(AddressRefused):
            await fetcher.get(URL)
    assert len(network.asked) == 2


async def test_keys_do_not_follow_to_another_host():
    fetcher, network, _ = stack(
        {URL: redirect("https://example.org/b"), "https://example.org/b": redirect("https://other.org/c"), "*": b"x"}
    )
    async with fetcher:
        await fetcher.ask(
            Request(URL, headers=(("Authorization", "Bearer key"), ("x-api-key", "k"), ("Accept", "text/plain")))
        )
    assert [r.headers.get("authorization") for r in network.requests] == ["Bearer key", "Bearer key", None]
    assert [r.headers.get("x-api-key") for r in network.requests] == ["k", "k", None]
    assert network.requests[2].headers["accept"] == "text/plain"


async def test_a_post_is_sent_with_its_body_and_becomes_a_get_where_it_is_redirected():
    fetcher, network, _ = stack({URL: redirect("https://example.org/b", 303), "https://example.org/b": b"x"})
    async with fetcher:
        answer = await fetcher.ask(Request(URL, method="POST", body=json_body({"ids": ["é"]})))
    assert answer.body == b"x"
    first, second = network.requests
    assert (first.method, first.headers["content-type"], first.content) == (
        "POST",
        "application/json",
        '{"ids": ["é"]}'.encode(),
    )
    assert (second.method, second.content) == ("GET", b"")


async def test_who_we_are_is_said_with_every_request(tmp_path):
    fetcher, network, _ = stack({"*": b"x"})
    async with fetcher:
        await fetcher.get(URL)
        await fetcher.download(URL, tmp_path)
    for request in network.requests:
        assert "mailto:me@example.org" in request.headers["user-agent"]
    assert "no contact address" in HttpSettings().user_agent


async def test_answers_are_cached_without_keys_and_files_are_not(tmp_path):
    url = "https://example.org/a?api_key=SECRET1&q=x"
    fetcher, network, _ = stack({url: [b"one", b"two", b"three"], "*": PDF}, cache_dir=tmp_path / "cache")
    request = Request(
        "https://example.org/a", (("api_key", "SECRET1"), ("q", "x")), headers=(("x-api-key", "SECRET2"),)
    )
    async with fetcher:
        assert (await fetcher.ask(request)).body == b"one"
        assert (await fetcher.ask(request)).body == b"one"
        assert (await fetcher.ask(request, fresh=True)).body == b"two"
        assert (await fetcher.ask(request)).body == b"two"
        await fetcher.forget(request)
        assert (await fetcher.ask(request)).body == b"three"
        await fetcher.download(URL, tmp_path)
        await fetcher.download(URL, tmp_path)
    assert len(network.asked) == 5
    assert fetcher.counts["example.org", "cached"] == 2
    kept = b"".join(p.read_bytes() for p in (tmp_path / "cache").iterdir())
    assert b"SECRET" not in kept
    assert b"%PDF" not in kept


async def test_the_cache_outlives_the_process_and_keeps_no_failures(tmp_path):
    fetcher, _, _ = stack({URL: [httpx2.Response(404), b"found"]}, cache_dir=tmp_path)
    async with fetcher:
        with pytest.raises(SourceAbsent):
            await fetcher.get(URL)
        assert (await fetcher.get(URL)).body == b"found"
    fetcher, network, _ = stack({}, cache_dir=tmp_path)
    async with fetcher:
        assert (await fetcher.get(URL)).body == b"found"
    assert network.asked == []


async def test_recordings_are_never_served_for_the_real_host(tmp_path):
    fetcher, _, _ = stack({"*": b"recorded"}, cache_dir=tmp_path, base_url="http://127.0.0.1:9")
    async with fetcher:
        assert (await fetcher.get(URL)).body == b"recorded"
    fetcher, network, _ = stack({URL: b"real"}, cache_dir=tmp_path)
    async with fetcher:
        assert (await fetcher.get(URL)).body == b"real"
    assert len(network.asked) == 1


async def test_a_body_that_breaks_off_is_not_cached(tmp_path):
    def broken(_request):
        return httpx2.Response(200, stream=Stream([b"ha", httpx2.ReadError("reset")]))

    fetcher, network, _ = stack({URL: [broken, b"whole"]}, cache_dir=tmp_path)
    async with fetcher:
        assert (await fetcher.get(URL)).body == b"whole"
        assert (await fetcher.get(URL)).body == b"whole"
    assert len(network.asked) == 2


async def test_a_cancelled_download_leaves_nothing(tmp_path):
    fetcher, network, _ = stack({})
    begun = asyncio.Event()

    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self):
            yield PDF
            begun.set()
            await asyncio.Event().wait()

    network.answers[URL] = [lambda r: httpx2.Response(200, stream=Endless())]
    async with fetcher:
        task = asyncio.create_task(fetcher.download(URL, tmp_path))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert list(tmp_path.iterdir()) == []
        network.answers[URL] = [PDF]
        await fetcher.download(URL, tmp_path)


async def test_the_replay_sends_everything_below_its_base(httpserver, tmp_path):
    httpserver.expect_request("/pre/arxiv.org/pdf/1").respond_with_data(
        "", status=302, headers={"Location": "https://files.example.org:8443/x%2Fy?a=1&b=2"}
    )
    httpserver.expect_request("/pre/files.example.org:8443/x/y", query_string="a=1&b=2").respond_with_data(
        PDF, content_type="application/pdf"
    )
    httpserver.expect_request("/pre/api.example.org/batch", method="POST", data='{"ids": [1]}').respond_with_data("{}")
    async with Fetcher(HttpSettings(base_url=httpserver.url_for("/pre/"))) as fetcher:
        got = await fetcher.download("https://arxiv.org/pdf/1", tmp_path)
        answer = await fetcher.ask(
            Request("https://api.example.org/batch", method="POST", body=json_body({"ids": [1]}))
        )
    assert got.final_url == "https://files.example.org:8443/x%2Fy?a=1&b=2"
    assert answer.body == b"{}"
    assert {host for host, _ in fetcher.counts} == {"arxiv.org", "files.example.org", "api.example.org"}
    httpserver.check_assertions()


async def test_the_log_holds_no_keys(capsys):
    fetcher, _, _ = stack({"*": b"x"})
    async with fetcher:
        await fetcher.ask(Request("https://example.org/a", (("api_key", "SECRET"),)))
    assert "SECRET" not in "".join(capsys.readouterr())
