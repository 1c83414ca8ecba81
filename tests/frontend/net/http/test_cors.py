"""Which CORS headers replies have, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.config import ServerConfigError
from msx_frontend.config.load import load_server_config
from msx_net.http.cors import Cors, with_cors
from msx_net.http.head import Head
from msx_net.http.wire import RawHeaders
from tests.frontend.net.predictions import FakeRegistry, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog, begin
from tests.net.http.direct_client import connect, request
from tests.net.http.exchanges import exchange_of

LIST = "https://a.example, https://B.example:8443"
A, B = b"https://a.example", b"https://b.example:8443"
VARY = (b"vary", b"origin")


def headers_for(cors: Cors, origin: bytes | None) -> RawHeaders:
    sent = [] if origin is None else [(b"origin", origin)]
    return cors.headers(cors.allowed(Head("GET", "/", b"/", b"", sent, "1.1")))


def allows(origin: bytes) -> tuple[bytes, bytes]:
    return b"access-control-allow-origin", origin


def test_without_the_key_nothing_is_added() -> None:
    assert headers_for(Cors("", "GET", "X-Mine"), A) == []


@pytest.mark.parametrize("text", ["*", "https://a.example", "whatever stands there"])
@pytest.mark.parametrize("origin", [None, A, B])
def test_one_text_is_sent_as_it_is(text: str, origin: bytes | None) -> None:
    others = [(b"access-control-allow-methods", b"GET"), (b"access-control-allow-headers", b"X-Mine")]
    assert headers_for(Cors(text, "GET", "X-Mine"), origin) == [allows(text.encode()), *others]


def test_of_a_list_the_requests_origin_is_named() -> None:
    cors = Cors(LIST, "GET")
    methods = (b"access-control-allow-methods", b"GET")
    assert headers_for(cors, A) == [allows(A), methods, VARY]
    assert headers_for(cors, B) == [allows(b"https://B.example:8443"), methods, VARY]


@pytest.mark.parametrize("origin", [None, b"null", b"https://c.example", b"http://a.example", A + b":1", A + b", " + B])
def test_other_origins_get_nothing(origin: bytes | None) -> None:
    assert headers_for(Cors(LIST, "GET", "X-Mine"), origin) == [VARY]


def test_a_list_with_a_star_is_a_star() -> None:
    assert headers_for(Cors("https://a.example, *"), B) == [allows(b"*")]


def test_a_handlers_headers_give_way_and_its_vary_stays() -> None:
    own = [(b"vary", b"accept-encoding"), allows(b"https://evil.example"), (b"x-mine", b"1")]
    assert with_cors(own, [allows(A), VARY]) == [(b"x-mine", b"1"), allows(A), (b"vary", b"accept-encoding, origin")]
    assert with_cors(own, []) == own


@pytest.mark.parametrize(
    "text", ["https://a.example/, https://b.example", "https://a.example, b.example", "https://a,"]
)
def test_a_list_of_what_are_not_origins_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.properties"
    file.write_text(f"cors_allowed_origin={text}\n")
    with pytest.raises(ServerConfigError, match=r"cors_allowed_origin.*without a path"):
        load_server_config({}, file, {})


def heads_of(origins: list[bytes], phrase: str) -> list[bytes]:
    """Heads of replies on one connection that answers by itself."""

    async def test() -> list[bytes]:
        registry = FakeRegistry()
        edge = exchange_of(predictions(registry), log=FakeAccessLog(), cors=Cors(LIST))
        connection, transport = connect(edge, edge.direct())
        heads = []
        for origin in origins:
            transport.written.clear()
            connection.data_received(request("POST", "/predictions/m", b"x", origin=origin.decode()))
            (await registry.next_job()).sink.answer(200, phrase, [], b"y")
            heads.append(bytes(transport.written).partition(b"\r\n\r\n")[0] + b"\r\n")
        return heads

    return run(test())


@pytest.mark.parametrize("phrase", ["", "Fine"])
def test_the_connection_names_each_requests_origin(phrase: str) -> None:
    """With a head that is made once a second, and with one of its own."""
    first, second, other, again = heads_of([A, B, b"https://c.example", A], phrase)
    assert b"\r\naccess-control-allow-origin: https://a.example\r\nvary: origin\r\n" in first
    assert b"\r\naccess-control-allow-origin: https://B.example:8443\r\nvary: origin\r\n" in second
    assert b"access-control" not in other
    assert b"\r\nvary: origin\r\n" in other
    assert b"\r\naccess-control-allow-origin: https://a.example\r\n" in again


def test_asgi_does_so_too() -> None:
    async def test() -> None:
        edge = exchange_of(log=FakeAccessLog(), cors=Cors(LIST))
        known = await begin(edge, "GET", "/nothing", origin=A.decode()).finish()
        other = await begin(edge, "GET", "/nothing", origin="https://c.example").finish()
        assert (known.headers["access-control-allow-origin"], known.headers["vary"]) == (A.decode(), "origin")
        assert (other.headers.get("access-control-allow-origin"), other.headers["vary"]) == (None, "origin")

    run(test())
