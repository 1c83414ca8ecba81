from __future__ import annotations

import pytest

from msx_net.outgoing.addresses import address_of
from msx_net.outgoing.allowed import AllowedHosts


def reaches(entries: tuple[str, ...], address: str) -> bool:
    found = address_of(address)
    assert found is not None
    return AllowedHosts(entries).may_reach(found)


@pytest.mark.parametrize(
    ("entry", "host", "has"),
    [
        ("hooks.example.org", "hooks.example.org", True),
        ("Hooks.example.org", "hooks.example.org", True),
        ("hooks.example.org", "x.hooks.example.org", False),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*", "anything", True),
        ("*", "10.0.0.1", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8", "hooks.example.org", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("::1", "::1", True),
        ("fd00::/8", "fd00::1", True),
        ("fd00::/8", "10.0.0.1", False),
    ],
)
def test_hosts(entry: str, host: str, has: bool) -> None:
    assert AllowedHosts([entry]).has(host) is has


def test_addresses() -> None:
    assert reaches(("*",), "1.1.1.1")
    assert not reaches(("*",), "10.0.0.1")
    assert reaches(("*", "10.0.0.0/8"), "10.0.0.1")
    assert not reaches(("*", "10.0.0.0/8"), "127.0.0.1")
    assert not reaches(("*",), "169.254.169.254")
    assert reaches(("169.254.0.0/16",), "169.254.169.254")
    assert reaches(("127.0.0.1",), "::ffff:127.0.0.1")


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "a/8", "1:2", "::/200"])
def test_networks_that_there_are_not(entry: str) -> None:
    with pytest.raises(ValueError, match=entry.split("/")[0]):
        AllowedHosts([entry])


def test_nothing_is_allowed_by_itself() -> None:
    assert not AllowedHosts(())
    assert AllowedHosts(["a"])
