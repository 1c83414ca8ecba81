import pytest

from msx_net.listening.address import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:8080", Address("http", "127.0.0.1", 8080)),
        ("http://localhost", Address("http", "localhost")),
        ("https://h:8443/", Address("https", "h", 8443)),
        ("http://[::1]:0", Address("http", "::1", 0)),
        ("unix:/run/msx.sock", Address("unix", path="/run/msx.sock")),
    ],
)
def test_parse(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text.rstrip("/")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("127.0.0.1:8080", "has no scheme"),
        ("ftp://h:1", "has no scheme"),
        ("http://:8080", "has no host"),
        ("http://h:8080/path", "has more than a host and a port"),
        ("http://user@h:8080", "has more than a host and a port"),
        ("http://h:99999", "Port out of range"),
        ("http://h:x", "Port could not be cast"),
        ("unix:", "has no path"),
        ("unix:/" + "x" * 107, "more than 107 bytes"),
    ],
)
def test_what_is_not_an_address(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Address.parse(text)
