"""The table of addresses that no fetch may reach: each is refused before anything is sent."""

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import AddressRefused, SourceDown, SourceNonsense
from ingest.http import Fetcher, HttpSettings
from ingest.http.addresses import check_url, is_public, resolve_offline
from ingest.http.network import PinnedBackend
from tests.http.support import stack

REFUSED = [
    # other schemes
    "file:///etc/passwd", "gopher://example.org/_x", "ftp://example.org/a.pdf", "data:text/plain,x", "javascript:alert(1)",
    "dict://example.org:11211/", "ldap://example.org/", "//example.org/x", "example.org/x", "", "http:", "http://", "https:///x",
    "unix:///var/run/docker.sock", "jar:http://example.org!/", "HTTP+UNIX://%2Fvar%2Frun/x", "file://localhost/etc/passwd",
    # this machine, in every spelling
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://127.255.255.254/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.0.0.1/", "http://017700000001/", "http://0177.0.0.1/", "http://0/", "http://0.0.0.0/",
    "http://127.0.0.1./", "http://127.0.0.01/", "http://127.000.000.001/", "http://00000177.1/", "http://127.0.0.1:8080/",
    "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/", "http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://[fe80::1%25eth0]/",
    "http://localhost/", "http://LOCALHOST:80/", "http://localhost./", "http://a.localhost/", "http://localhost.localdomain/",
    "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://１２７.0.0.1/", "http://ⓛocalhost/",
    # private, link-local, shared, reserved, multicast
    "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/",
    "http://169.254.1.1/", "http://100.64.0.1/", "http://100.127.255.254/", "http://192.0.0.1/", "http://192.0.2.1/",
    "http://198.18.0.1/", "http://198.51.100.1/", "http://203.0.113.1/", "http://224.0.0.1/", "http://239.255.255.250/",
    "http://240.0.0.1/", "http://255.255.255.255/", "http://192.88.99.1/", "http://3232235777/", "http://0xc0a80101/",
    "http://[fc00::1]/", "http://[fd12:3456::1]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[ff02::1]/",
    "http://[2001:db8::1]/", "http://[3fff::1]/", "http://[100::1]/", "http://[::ffff:10.0.0.1]/", "http://[2002:a00:1::]/",
    "http://[2001::1]/", "http://[5f00::1]/", "http://[::ffff:8.8.8.8]/", "http://[2002:808:808::1]/",
    # metadata of clouds
    "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://metadata.google.internal/", "http://metadata/",
    "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/", "http://2852039166/", "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/", "http://[::ffff:169.254.169.254]/", "http://169.254.43518/", "http://169.16689662/",
    # credentials and other disguises
    "http://user:secret@example.org/", "http://user@example.org/", "http://example.org@127.0.0.1/", "http://@example.org/",
    "http://example.org\\@127.0.0.1/", "http://exa mple.org/", "http://example.org/\r\nHost: x",
    "http://example.org\x00.evil.org/", "http://example.org\t/", "http://127.0.0.1%2f@example.org/", "http://%31%32%37.0.0.1/",
    "http://[::1", "http://::1/", "http://[127.0.0.1]/", "http://example..org/", "http://-example.org/", "http://printer/",
    "http://localhost6.localdomain6/", "http://api.default.svc/", "http://router.lan/", "http://nas.home/", "http://x.corp/", "http://x.onion/",
    "http://\u0661\u0662\u0667.\u0660.\u0660.\u0661/", "http://\u0967\u0968\u096d.\u0966.\u0966.\u0967/", "http://example.0x7f/", "http://example.127/",
    "http://nas.local/", "http://db.internal/", "http://router.home.arpa/", "http://example.org:99999/", "http://example.org:-1/",
    "http://example.org:6379/", "http://example.org:5432/", "http://example.org:6667/", "http://example.org:11211/",
    "http://example.org:22/", "http://example.org:25/", "http://example.org:0/", "http://example.org:x/", "http://1.2.3/",
    "http://1.2.3.4.5/", "http://256.1.1.1/", "http://0x/", "http://" + "a" * 300 + ".org/", "http://example.org/" + "a" * 9000,
]  # fmt: skip
ALLOWED = {
    "https://arxiv.org/pdf/2005.11401v4": ("https", "arxiv.org", 443),
    "HTTP://ArXiv.ORG./x": ("http", "arxiv.org", 80),
    "http://example.org:8080/a%20b?q=@x": ("http", "example.org", 8080),
    "https://8.8.8.8/": ("https", "8.8.8.8", 443),
    "https://[2606:4700::1111]/": ("https", "2606:4700::1111", 443),
    "https://[64:ff9b::8.8.8.8]/": ("https", "64:ff9b::8.8.8.8", 443),
    "https://müller.example/": ("https", "xn--mller-kva.example", 443),
    "https://a_b.example.org/": ("https", "a_b.example.org", 443),
    "https://localhost.example.org/": ("https", "localhost.example.org", 443),
    "https://doi.org/10.5555/0000-0000(199901)1:1<1::AID-X1>3.0.CO;2-#": ("https", "doi.org", 443),
}


@pytest.mark.parametrize("url", REFUSED)
async def test_the_table_is_refused_to_the_last_entry(url):
    with pytest.raises(AddressRefused):
        check_url(url)
    fetcher, network, _ = stack({"*": b"secret"})
    async with fetcher:
        with pytest.raises(AddressRefused):
            await fetcher.get(url)
    assert network.asked == []


@pytest.mark.parametrize("url", REFUSED)
async def test_no_redirect_leads_there(url, tmp_path):
    if not url or url in {"//example.org/x", "example.org/x", "http:", "https:///x", "http://example.org\t/"}:
        pytest.skip("as a Location this is relative, or white space, and stays at the host")
    redirect = httpx_redirect(url)
    if redirect is None:
        pytest.skip("no header can hold it")
    fetcher, network, _ = stack({"https://example.org/a": redirect, "*": b"secret"})
    async with fetcher:
        with pytest.raises((AddressRefused, SourceNonsense)):
            await fetcher.download("https://example.org/a", tmp_path)
    assert network.urls == ["https://example.org/a"]
    assert list(tmp_path.iterdir()) == []


def httpx_redirect(url):
    import httpx2

    if any(ord(c) < 32 for c in url):
        return None
    return httpx2.Response(302, headers=[(b"location", url.encode())])


@pytest.mark.parametrize(("url", "wanted"), ALLOWED.items())
def test_public_addresses_pass(url, wanted):
    assert check_url(url) == wanted


@given(st.ip_addresses(v=4))
def test_mapped_addresses_are_never_public(number):
    assert not is_public(f"::ffff:{number}")
    assert not is_public(f"::{number}")
    assert is_public(f"64:ff9b::{number}") == is_public(str(number))


@given(
    st.ip_addresses(v=4, network="10.0.0.0/8")
    | st.ip_addresses(v=4, network="100.64.0.0/10")
    | st.ip_addresses(v=6, network="fc00::/7")
)
def test_inner_networks_are_never_public(number):
    assert not is_public(str(number))


def test_the_message_holds_no_password():
    with pytest.raises(AddressRefused) as caught:
        check_url("http://user:secret@example.org/")
    assert "secret" not in str(caught.value)


class Listener(httpcore2.AsyncNetworkBackend):
    """Notes where a connection would go."""

    def __init__(self):
        self.connected = []

    async def connect_tcp(self, host, port, *args, **kwargs):
        self.connected.append((host, port))
        raise httpcore2.ConnectError("nobody listens")


async def backend(*answers, exempt=None):
    waiting = list(answers)

    async def resolver(host, port):
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    made = PinnedBackend(resolver, exempt)
    made._inner = Listener()
    return made


async def test_a_connection_goes_to_the_number_that_was_judged():
    made = await backend(["93.184.216.34"], ["127.0.0.1"])
    with pytest.raises(httpcore2.ConnectError):
        await made.connect_tcp("rebind.example.org", 443)
    assert made._inner.connected == [("93.184.216.34", 443)]
    # The name answers otherwise now: the next connection is judged anew and refused.
    with pytest.raises(AddressRefused, match=r"127\.0\.0\.1"):
        await made.connect_tcp("rebind.example.org", 443)
    assert made._inner.connected == [("93.184.216.34", 443)]


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::1"], ["fe80::1%2"], ["::ffff:127.0.0.1"], ["169.254.169.254"]],
)
async def test_names_of_inner_addresses_are_refused(addresses):
    made = await backend(addresses)
    with pytest.raises(AddressRefused):
        await made.connect_tcp("evil.example.org", 80)
    assert made._inner.connected == []


async def test_no_socket_of_this_machine_is_reached():
    made = await backend([])
    with pytest.raises(AddressRefused):
        await made.connect_unix_socket("/var/run/docker.sock")


async def test_the_whole_stack_refuses_a_name_of_an_inner_address():
    async def resolver(host, port):
        return ["127.0.0.1"]

    async with Fetcher(HttpSettings(), resolver=resolver) as fetcher:
        with pytest.raises(AddressRefused):
            await fetcher.get("http://evil.example.org/")


async def test_a_name_that_does_not_exist_is_down():
    async def resolver(host, port):
        raise OSError("no such name")

    async with Fetcher(HttpSettings(n_attempts=1), resolver=resolver) as fetcher:
        with pytest.raises(SourceDown):
            await fetcher.get("http://nowhere.example.org/")


async def test_loopback_is_reached_by_way_of_the_replay_setting_alone(httpserver):
    httpserver.expect_request("/arxiv.org/abs/2005.11401", query_string="x=1%202").respond_with_data("recorded")
    base = httpserver.url_for("")
    async with Fetcher(HttpSettings(base_url=base)) as fetcher:
        answer = await fetcher.get("https://arxiv.org/abs/2005.11401?x=1%202")
        assert (answer.body, answer.url) == (b"recorded", "https://arxiv.org/abs/2005.11401?x=1%202")
        with pytest.raises(AddressRefused):
            await fetcher.get(base)
        with pytest.raises(AddressRefused):
            await fetcher.get("http://localhost/")
    async with Fetcher(HttpSettings()) as fetcher:
        with pytest.raises(AddressRefused):
            await fetcher.get(base)
    assert len(httpserver.log) == 1


async def test_the_replay_judges_the_original_address_by_its_resolution_too():
    async def resolver(host, port):
        return ["10.1.2.3"]

    async with Fetcher(HttpSettings(base_url="http://127.0.0.1:9"), resolver=resolver) as fetcher:
        with pytest.raises(AddressRefused):
            await fetcher.get("http://intern.example.org/")


async def test_the_hosts_file_is_read_without_the_network():
    assert await resolve_offline("arxiv.org", 443) == []
