"""Addresses that are not asked, and those of proxies."""

from __future__ import annotations

import ipaddress

import pytest

from msx_net.outgoing import addresses
from msx_net.outgoing.addresses import address_of, is_private, is_public, proxies, refused, resolved


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "192.0.0.192",
    ],
)
def test_metadata_services_are_never_asked(text: str) -> None:
    address = address_of(text)
    assert address is not None
    assert "is a metadata service of clouds, which is never asked" in refused(address, private=True)


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.0.1", False),
        ("100.64.0.1", False),
        ("::1", False),
        ("::", False),
        ("fd12::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("2002:a00:1::", False),
        ("192.0.0.8", False),
        ("::10.0.0.1", False),
        ("::ffff:0:10.0.0.1", False),
        ("64:ff9b:1::10.0.0.1", False),
        ("fec0::1", False),
        ("8.8.8.8", True),
        ("64:ff9b::8.8.8.8", True),
        ("2606:4700::1111", True),
    ],
)
def test_public_and_private_addresses(text: str, public: bool) -> None:
    address = address_of(text)
    assert address is not None
    assert is_public(address) is public
    assert (refused(address, private=False) == "") is public
    assert refused(address, private=True) == ""


def test_what_is_not_an_address() -> None:
    assert address_of("localhost") is None
    assert resolved("no-such-host.invalid") == []
    assert resolved("2130706433") == [ipaddress.ip_address("127.0.0.1")], "as a client reads it"


def test_a_host_is_private_if_all_of_its_addresses_are() -> None:
    inside, outside = ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("8.8.8.8")
    assert is_private([inside])
    assert not is_private([inside, outside])
    assert not is_private([]), "only a proxy knows it"


def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"http": "http://127.0.0.1:3128", "https": "127.0.0.2", "all": "socks5://127.0.0.3", "no": "a,b"}
    monkeypatch.setattr(addresses, "getproxies", lambda: given)
    at = {("127.0.0.1", 3128), ("127.0.0.2", 80), ("127.0.0.3", 1080)}
    assert proxies() == {(ipaddress.ip_address(text), port) for text, port in at}
    monkeypatch.setattr(addresses, "getproxies", lambda: {"http": "http://127.0.0.1:port"})
    assert proxies() == set()
