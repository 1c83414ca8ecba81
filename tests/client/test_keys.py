"""Where keys come from, and addresses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_client.address import Address, address_of
from msx_client.keys import Keys


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("MSX_URL", "MSX_MANAGEMENT_URL", "MSX_KEY", "MSX_MANAGEMENT_KEY", "MSX_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def key_file(path: Path, inference: str = "i", management: str = "m") -> Path:
    path.write_text(json.dumps({"inference": {"key": inference}, "management": {"key": management}}))
    return path


def both(keys: Keys) -> tuple[str | None, str | None]:
    return keys.of("inference"), keys.of("management")


def test_where_keys_come_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The nearest counts: argument, named file, environment, the file that it names, the file in the current folder."""
    assert both(Keys(None, None, None)) == (None, None)
    key_file(tmp_path / "key_file.json", "here", "here")
    assert both(Keys(None, None, None)) == ("here", "here")
    monkeypatch.setenv("MSX_KEY_FILE", str(key_file(tmp_path / "named.json", "named", "named")))
    assert both(Keys(None, None, None)) == ("named", "named")
    monkeypatch.setenv("MSX_KEY", "env")
    assert both(Keys(None, None, None)) == ("env", None)
    assert both(Keys(None, None, key_file(tmp_path / "given.json"))) == ("i", "m")
    assert both(Keys("own", None, None)) == ("own", None)


def test_a_key_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.json"):
        Keys(None, None, tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"inference": 1}')
    with pytest.raises(ValueError, match=r"bad\.json is not a key file of a server"):
        Keys(None, None, tmp_path / "bad.json")


def test_keys_are_renewed(tmp_path: Path) -> None:
    keys = Keys(None, None, key_file(tmp_path / "k.json"))
    assert not keys.renew("inference")
    key_file(tmp_path / "k.json", "new")
    assert keys.renew("inference")
    assert keys.of("inference") == "new"
    (tmp_path / "k.json").unlink()
    assert not keys.renew("inference")


@pytest.mark.parametrize(
    ("url", "management", "expected"),
    [
        (None, None, Address("http://127.0.0.1:8080", "http://127.0.0.1:8081", grpc=False, secure=False)),
        ("host:8080", None, Address("http://host:8080", "http://host:8081", grpc=False, secure=False)),
        ("https://host", None, Address("https://host:8443", "https://host:8444", grpc=False, secure=True)),
        ("http://host:9000/", None, Address("http://host:9000", "http://host:9000", grpc=False, secure=False)),
        ("grpc://[::1]", None, Address("[::1]:7070", "[::1]:7071", grpc=True, secure=False)),
        ("grpcs://h:1", "grpcs://h:2", Address("h:1", "h:2", grpc=True, secure=True)),
    ],
)
def test_addresses(url: str | None, management: str | None, expected: Address) -> None:
    assert address_of(url, management) == expected


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host/path", "http://host:port", "grpc://h?x=1"])
def test_what_is_not_an_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"is not an address|Port could not"):
        address_of(url, None)


def test_two_protocols_are_refused() -> None:
    with pytest.raises(ValueError, match="speaks http, the inference address grpc"):
        address_of("grpc://h", "http://h")
