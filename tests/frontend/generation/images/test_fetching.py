"""Images behind URLs: a client chooses the URL, so that no host, address or file is trusted."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.generation.images import fetching
from msx_frontend.generation.images.fetching import ImageFetcher, NotFetched, Room
from msx_frontend.generation.images.limits import ImageLimits
from msx_net.outgoing.addresses import Address, address_of
from tests.certificates import Certificate
from tests.file_server import FileServer, file_server
from tests.frontend.generation.images.samples import limits
from tests.loops import run, until

DATA = b"an image"


@pytest.fixture
def web() -> Iterator[FileServer]:
    with file_server() as server:
        yield server


def room_of(asked: ImageLimits) -> Room:
    held: list[int] = []
    return Room(asked, held.append)


def fetched(url: str, *others: str, hosts: tuple[str, ...] = ("127.0.0.1",), **keys: Any) -> list[bytes]:
    """Fetch URLs of one request, one after the other."""
    asked = limits(allowed_image_hosts=hosts, **keys)

    async def test() -> list[bytes]:
        fetcher, room = ImageFetcher(asked), room_of(asked)
        return [await fetcher.fetch(one, room) for one in (url, *others)]

    return run(test())


def refusal(url: str, *others: str, **keys: Any) -> str:
    with pytest.raises(NotFetched) as refused:
        fetched(url, *others, **keys)
    return str(refused.value)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Addresses by name, in place of DNS."""
    known: dict[str, list[str]] = {}

    def resolved(host: str) -> list[Address]:
        return [one for text in known.get(host, [host]) if (one := address_of(text)) is not None]

    monkeypatch.setattr(fetching, "resolved", resolved)
    return known


@pytest.fixture
def public_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 counts as an address of the Internet."""
    monkeypatch.setattr(fetching, "is_public", lambda address: str(address) == "127.0.0.1" or address.is_global)


def test_a_host_that_is_named_in_full_may_be_private(web: FileServer) -> None:
    assert fetched(web.put("/a.png", DATA)) == [DATA]
    ((path, headers),) = web.asked
    assert (path, headers["accept-encoding"], headers["host"]) == ("/a.png", "identity", web.url[7:])


def test_the_connection_goes_to_the_address_that_was_checked(web: FileServer, names: dict[str, list[str]]) -> None:
    """No name is resolved a second time, to which a client's DNS could answer otherwise."""
    names["cdn.example"] = ["127.0.0.1"]
    web.put("/a.png", DATA)
    port = web.url.rpartition(":")[2]
    assert fetched(f"http://CDN.example.:{port}/a.png?q=1", hosts=("cdn.example",)) == [DATA]
    assert (web.asked[0][0], web.asked[0][1]["host"]) == ("/a.png?q=1", f"cdn.example.:{port}")


def test_an_address_that_does_not_answer_is_not_the_last(web: FileServer, names: dict[str, list[str]]) -> None:
    names["cdn.example"] = ["::1", "127.0.0.1"]
    web.put("/a.png", DATA)
    assert fetched(f"http://cdn.example:{web.server_address[1]}/a.png", hosts=("cdn.example",)) == [DATA]


@pytest.mark.usefixtures("public_loopback")
def test_a_pattern_matches_public_hosts(web: FileServer, names: dict[str, list[str]]) -> None:
    names.update({"a.cdn.example": ["127.0.0.1"], "b.cdn.example": ["127.0.0.1", "10.0.0.1"], "example": ["127.0.0.1"]})
    web.put("/a.png", DATA)
    end = f":{web.server_address[1]}/a.png"
    assert fetched(f"http://a.cdn.example{end}", hosts=("*.cdn.example",)) == [DATA]
    assert "of a private network" in refusal(f"http://b.cdn.example{end}", hosts=("*.cdn.example",))
    assert "is not in allowed_image_hosts" in refusal(f"http://example{end}", hosts=("*.cdn.example",))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
        "10.0.0.1",
        "192.168.1.1",
        "[fd00::1]",
    ],
)
def test_a_pattern_matches_no_private_address(host: str) -> None:
    assert refusal(f"http://{host}/", hosts=("*",)).endswith(
        "is of a private network: only a host that allowed_image_hosts names in full may be"
    )


@pytest.mark.parametrize("host", ["169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
def test_metadata_services_are_never_asked(host: str) -> None:
    for hosts in (("*",), (host.strip("[]"),) if "[" not in host else ("*",)):
        assert "is a metadata service of clouds, which is never asked" in refusal(f"http://{host}/", hosts=hosts)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://127.0.0.2/x", "127.0.0.2 is not in allowed_image_hosts of the server's config.properties"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254 is not in allowed_image_hosts"),
        ("file:///etc/passwd", "expected a URL of http or https"),
        ("ftp://127.0.0.1/x", "expected a URL of http or https"),
        ("http://user:pass@127.0.0.1/x", "expected a URL of http or https, without a user"),
        ("http://[::1", "it cannot be fetched (RemoteProtocolError)"),
    ],
)
def test_a_redirect_is_judged_like_a_url(web: FileServer, location: str, reason: str) -> None:
    assert refusal(web.redirect("/away", location)).startswith(reason)


@pytest.mark.usefixtures("public_loopback")
def test_a_public_host_cannot_redirect_to_a_private_one(web: FileServer, names: dict[str, list[str]]) -> None:
    names.update({"a.example": ["127.0.0.1"], "b.example": ["10.0.0.1"]})
    web.redirect("/away", "http://b.example/x")
    told = refusal(f"http://a.example:{web.server_address[1]}/away", hosts=("*",))
    assert told.startswith("b.example is of a private network")


def test_redirects_are_followed_three_times(web: FileServer) -> None:
    web.put("/end", DATA)
    for number in range(4):
        web.redirect(f"/{number}", f"/{number + 1}" if number < 2 else "/end")
    assert fetched(f"{web.url}/0") == [DATA]
    assert refusal(web.redirect("/loop", "/loop")) == "it redirects more than 3 times"


@pytest.mark.parametrize("hosts", [("127.0.0.1",), ("*",)])
@pytest.mark.parametrize(
    "url", ["http://", "http://u@127.0.0.1/", "http://127.0.0.1:x/", "http://127.0.0.1\x00/", f"http://{'a' * 300}/"]
)
def test_urls_that_are_none(url: str, hosts: tuple[str, ...]) -> None:
    assert refusal(url, hosts=hosts).startswith(("expected a URL of http or https", "it cannot be fetched (Inva"))


def test_sizes(web: FileServer) -> None:
    url = web.put("/a", bytes(100))
    many: dict[str, Any] = {"max_image_size": 100, "max_request_size": 250}
    assert len(fetched(url, url, **many)) == 2
    assert refusal(url, max_image_size=99).startswith("at most 99 bytes are allowed, not 100; max_image_size of the")
    assert refusal(web.announce("/b", 10**12)).startswith("at most 6553500 bytes are allowed, not 1000000000000")
    assert refusal(web.endless("/c"), max_image_size=1000).startswith("at most 1000 bytes are allowed")
    assert refusal(url, url, url, **many).startswith("all images: at most 250 bytes are allowed, not 300; max_request_")


def test_a_name_that_is_written_like_a_pattern_is_not_named_in_full(names: dict[str, list[str]]) -> None:
    """DNS may answer for `*.cdn.example` itself."""
    names["*.cdn.example"] = ["10.0.0.1"]
    assert "of a private network" in refusal("http://*.cdn.example/", hosts=("*.cdn.example",))


def test_a_length_that_is_no_number(web: FileServer) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "9" * 5000)
        handler.end_headers()

    web.routes["/a"] = answer
    assert refusal(f"{web.url}/a").startswith("it cannot be fetched (")


def test_hosts_that_fail(web: FileServer) -> None:
    assert refusal(f"{web.url}/missing") == "its host answers with HTTP 404"
    assert refusal(web.truncate("/half", bytes(1000))).startswith("it cannot be fetched (RemoteProtocolError)")
    assert refusal("http://127.0.0.1:1/") == "it cannot be fetched (ConnectError)"
    assert refusal("http://missing.invalid/", hosts=("*",)) == "missing.invalid has no address"


def test_a_slow_host(web: FileServer) -> None:
    released = threading.Event()
    try:
        told = refusal(web.hang("/slow", released), image_fetch_timeout=0.2)
    finally:
        released.set()
    assert told == "it did not come within image_fetch_timeout, 0.2 s"


def test_a_slow_name_takes_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def resolved(host: str) -> list[Address]:
        released.wait(60)
        return []

    monkeypatch.setattr(fetching, "resolved", resolved)
    asked = limits(allowed_image_hosts=("a.example",), image_fetch_timeout=0.2)

    async def test() -> None:
        try:
            with pytest.raises(NotFetched, match="image_fetch_timeout"):
                await ImageFetcher(asked).fetch("http://a.example/", room_of(asked))
        finally:
            released.set()

    run(test())


def test_no_more_than_some_at_a_time(web: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "AT_ONCE", 1)
    released, asked = threading.Event(), limits(allowed_image_hosts=("127.0.0.1",))
    slow, quick = web.hang("/slow", released), web.put("/quick", DATA)

    async def test() -> None:
        fetcher, room = ImageFetcher(asked), room_of(asked)
        first = asyncio.ensure_future(fetcher.fetch(slow, room))
        second = asyncio.ensure_future(fetcher.fetch(quick, room))
        await until(lambda: web.asked)
        assert [path for path, _ in web.asked] == ["/slow"]
        released.set()
        assert await second == DATA
        with pytest.raises(NotFetched, match="HTTP 404"):
            await first

    run(test())


def test_tls_is_of_the_name_and_not_of_the_address(
    web: FileServer, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names.update({"localhost": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
    certificate, file = Certificate.make(), tmp_path / "certificate.pem"
    file.write_bytes(certificate.key_pem + certificate.pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    web.socket = server.wrap_socket(web.socket, server_side=True)
    monkeypatch.setattr(fetching, "trust", lambda: ssl.create_default_context(cafile=str(file)))
    web.put("/a.png", DATA)
    hosts, end = ("localhost", "other.example"), f":{web.server_address[1]}/a.png"
    assert fetched(f"https://localhost{end}", hosts=hosts) == [DATA]
    assert refusal(f"https://other.example{end}", hosts=hosts) == "it cannot be fetched (ConnectError)"
