"""Redirects of hubs, by their libraries in the process that fetches, and of stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from msx_frontend.archives.hub import fetch_process, redirects
from msx_frontend.archives.hub.fetch_process import NotFetchedError, fetch
from msx_frontend.archives.hub.redirects import Redirects
from msx_frontend.archives.hub.remote import HubError
from msx_net.outgoing import addresses
from tests.file_server import file_server
from tests.frontend.archives.hub.test_sources import FILES, READ, environment, fetched, of_hub, refused
from tests.hub_server import HubServer, Repository, hub_server
from tests.loops import run
from tests.public_hub import PUBLIC
from tests.s3_server import KEYS

pytestmark = pytest.mark.usefixtures("forked_processes")

ROOT = Path(__file__).parents[4]
WEIGHTS = "model.safetensors"
SCHEMES = pytest.mark.parametrize("scheme", ["hf", "modelscope"])


@pytest.fixture
def inside() -> Iterator[HubServer]:
    """In a private network."""
    with hub_server() as server:
        server.repositories["org/name"] = Repository(FILES)
        yield server


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """In the Internet, as far as the process that fetches knows."""
    monkeypatch.setattr(fetch_process, "_PROCESS", "tests.public_hub")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with hub_server(PUBLIC) as server:
        server.repositories["org/name"] = Repository(FILES)
        yield server


@SCHEMES
@pytest.mark.parametrize("name", ["", WEIGHTS])
def test_a_public_hub_does_not_redirect_inside(
    scheme: str, name: str, outside: HubServer, inside: HubServer, tmp_path: Path
) -> None:
    outside.redirects[name] = inside.url
    said = refused(f"{scheme}://org/name", tmp_path, **of_hub(scheme, outside))
    assert said == "127.0.0.1 is of this machine or a private network, to which a public host may not redirect"
    assert inside.asked == []
    assert len([path for path, _ in outside.asked if WEIGHTS in path]) == (1 if name else 0), "it is not tried again"


@SCHEMES
def test_a_hub_in_a_private_network_keeps_its_files_there(scheme: str, inside: HubServer, tmp_path: Path) -> None:
    with hub_server() as store:
        store.repositories["org/name"] = Repository(FILES)
        inside.redirects[WEIGHTS] = store.url
        assert fetched(f"{scheme}://org/name", tmp_path, **of_hub(scheme, inside))[0] == READ
        assert len(store.asked) == 1


@SCHEMES
def test_a_private_hub_that_leads_out_does_not_lead_in_again(
    scheme: str, inside: HubServer, outside: HubServer, tmp_path: Path
) -> None:
    with hub_server() as store:
        inside.redirects[WEIGHTS], outside.redirects[WEIGHTS] = outside.url, store.url
        assert "may not redirect" in refused(f"{scheme}://org/name", tmp_path, **of_hub(scheme, inside))
        assert store.asked == []


@SCHEMES
def test_metadata_services_are_never_asked(scheme: str, inside: HubServer, tmp_path: Path) -> None:
    inside.redirects[WEIGHTS] = "http://169.254.169.254/latest/meta-data"
    said = refused(f"{scheme}://org/name", tmp_path, **of_hub(scheme, inside))
    assert said == "169.254.169.254 is a metadata service of clouds, which is never asked"


def test_a_hub_that_is_a_metadata_service(tmp_path: Path) -> None:
    said = refused("hf://org/name", tmp_path, HF_ENDPOINT="http://169.254.169.254")
    assert said == "169.254.169.254 is a metadata service of clouds, which is never asked"


def test_allowed_urls_count(inside: HubServer, tmp_path: Path) -> None:
    with hub_server() as store:
        inside.redirects[WEIGHTS] = store.url
        only = ["hf://.*"]
        env = environment(tmp_path, **of_hub("hf", inside))
        with pytest.raises(NotFetchedError, match=r"it redirects to http://.*, which allowed_urls does not allow: add"):
            run(fetch("hf://org/name", tmp_path, 1 << 30, 60.0, lambda *_: None, env, allowed=only))
        assert store.asked == []


def _reply(url: str, location: str) -> httpx.Response:
    return httpx.Response(302, headers={"location": location}, request=httpx.Request("GET", url))


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("https://cas-bridge.xethub.hf.co/x?Signature=secret", ""),
        ("/api/resolve-cache/x", ""),
        ("//huggingface.co/x", ""),
        ("http://cdn.hf.co/x", "which allowed_urls does not allow"),
        (
            "https://nothf.co/x?Signature=secret",
            "it redirects to https://nothf.co/x, which allowed_urls does not allow",
        ),
        ("https://cdn.example/good/x", ""),
        ("https://cdn.example/good/%2e%2e/bad/x", "which allowed_urls does not allow"),
        ("file:///etc/passwd", "it redirects to file:///etc/passwd"),
        ("http://[bad", "it redirects to what is not a URL"),
    ],
)
def test_where_to(location: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own domains over https go with the hub; all others must be allowed."""
    monkeypatch.setattr(addresses, "resolved", lambda host: [])
    monkeypatch.setattr(redirects, "resolved", lambda host: [])
    rule = Redirects("hf", "https://huggingface.co", ["hf://.*", "https://cdn\\.example/good/.*"])
    reply = _reply("https://huggingface.co/org/name/resolve/main/x", location)
    if not reason:
        rule.check(reply)
        return
    with pytest.raises(HubError) as caught:
        rule.check(reply)
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_hub_itself_may_be_private_whoever_redirects_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redirects, "resolved", lambda host: [])  # of whoever redirects
    rule = Redirects("hf", "http://127.0.0.1:8000", [".*"])
    rule.check(_reply("https://huggingface.co/x", "http://127.0.0.1:8000/y"))
    for elsewhere in ("http://127.0.0.1:8001/y", "http://127.0.0.2:8000/y", "http://127.1/y"):
        with pytest.raises(HubError, match="may not redirect"):
            rule.check(_reply("https://huggingface.co/x", elsewhere))
    rule.begin()
    rule.check(_reply("http://127.0.0.1:8000/x", "https://huggingface.co/y"))


def test_a_store_is_not_followed(tmp_path: Path) -> None:
    with file_server() as elsewhere, file_server() as store:
        for path in ("/bucket", "/bucket/"):
            store.redirect(path, f"{elsewhere.url}{path}")
        env = {"AWS_ENDPOINT_URL": store.url, **KEYS, "AWS_MAX_ATTEMPTS": "1"}
        said = refused("s3://bucket/prefix", tmp_path, **env)
        assert said.startswith("the store redirects, which is not followed: name its region")
        assert store.asked
        assert elsewhere.asked == []
