"""Which requests a browser was made to send by a page of others, and which names a rebound one asks under."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from msx_core.service_errors import MOST_SHOWN, ForeignHost, ForeignPage, ServiceError
from msx_net.http.cors import Cors
from msx_net.page_guard import PageGuard, is_loopback

HERE, ELSEWHERE = ("127.0.0.1", 8081), ("10.0.0.5", 8081)
FOREIGN = "http://evil.example"


def refused(
    headers: Mapping[str, str],
    *,
    method: str = "POST",
    server: tuple[str, int] | None = HERE,
    cors: str = "",
    hosts: tuple[str, ...] = (),
) -> ServiceError | None:
    sent = {"host": "127.0.0.1:8081", **headers}
    try:
        PageGuard(Cors(cors).trusts, hosts).check(method, lambda name: sent.get(name.decode(), ""), server)
    except (ForeignHost, ForeignPage) as error:
        return error
    return None


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "post", "PROPFIND"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": FOREIGN},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://127.0.0.1:8081.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "Cross-Site"},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:3000"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8081"},
    ],
)
def test_pages_of_others_change_nothing(method: str, headers: dict[str, str]) -> None:
    for server in (HERE, ELSEWHERE, None):
        error = refused(headers, method=method, server=server)
        assert isinstance(error, ForeignPage)
        assert error.status == 403
        assert "cors_allowed_origin" in error.message


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_changes_nothing_is_for_cors_to_decide(method: str) -> None:
    assert refused({"origin": FOREIGN, "sec-fetch-site": "cross-site"}, method=method) is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": ""},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8081"},
        {"sec-fetch-site": "same-origin", "origin": "https://behind.example"},
        {"origin": "http://127.0.0.1:8081"},
        {"host": "LOCALHOST:8081", "origin": "http://localhost:8081"},
        {"host": "localhost:80", "origin": "http://localhost"},
        {"host": "localhost:443", "origin": "https://localhost"},
        {"host": "[::1]:8081", "origin": "http://[::1]:8081"},
        {"x-forwarded-host": "msx.example", "origin": "https://msx.example"},
    ],
)
def test_programs_and_the_servers_own_pages_pass(headers: dict[str, str]) -> None:
    assert refused(headers) is None


@pytest.mark.parametrize("cors", ["http://evil.example", "https://a.example, HTTP://EVIL.example", "*"])
def test_origins_of_the_configuration_pass(cors: str) -> None:
    assert refused({"origin": FOREIGN, "sec-fetch-site": "cross-site"}, cors=cors) is None
    assert (refused({"origin": "null"}, cors=cors) is None) == (cors == "*")
    assert (refused({"sec-fetch-site": "cross-site"}, cors=cors) is None) == (cors == "*")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8081",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil-localhost",
        "2130706433",
        "0x7f.1",
        "[evil]:80",
        "\xe9vil",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_name_of_others_is_refused_on_a_loopback_address(host: str, method: str) -> None:
    for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert isinstance(refused({"host": host}, method=method, server=(address, 1)), ForeignHost)
    for address in ("10.0.0.5", "fe80::1%eth0", "::ffff:10.0.0.5"):
        assert refused({"host": host}, method=method, server=(address, 1)) is None
    assert refused({"host": host}, method=method, server=None) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.5:1", "[::1]:8081", "localhost", "a.localhost:1", "localhost."])
def test_addresses_and_localhost_are_names_of_every_server(host: str) -> None:
    assert refused({"host": host}) is None


def test_names_of_the_configuration() -> None:
    assert refused({"host": "MSX.lan:8081"}, hosts=("msx.LAN",)) is None
    assert refused({"host": "a.b.example"}, hosts=("*.example",)) is None
    assert refused({"host": "anything"}, hosts=("*",)) is None
    assert refused({"host": "x-msx.lan"}, hosts=("msx.lan",)) is not None
    assert refused({"host": "example"}, hosts=("*.example",)) is not None


def test_a_refusal_names_the_header_the_key_and_no_more_than_it_has_to() -> None:
    error = refused({"host": "evil.example"})
    assert error is not None
    assert {"Host", "evil.example", "allowed_hosts"} < set(error.message.replace('"', " ").replace(",", " ").split())
    page = refused({"sec-fetch-site": "cross-site", "origin": FOREIGN})
    assert page is not None
    assert "Sec-Fetch-Site" in page.message
    assert FOREIGN in page.message
    assert len(refused({"origin": "http://" + "x" * 60_000}).message) < 4 * MOST_SHOWN  # type: ignore[union-attr]


def test_loopback_addresses() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "::1", "::ffff:127.0.0.1"))
    assert not any(is_loopback(host) for host in ("10.0.0.1", "::", "0.0.0.0", "fe80::1%lo", "name"))
