"""Token authorization.

contract#tokens
"""

from __future__ import annotations

import json
import re
import stat
from datetime import datetime, timezone
from pathlib import Path

import httpx
import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import assert_error, assert_status
from tests.e2e.server import RunningServer, wait_until

pytestmark = pytest.mark.e2e

SERVER = Setup(services=("echo",), load=("echo.mar",), tokens=True)

REFUSED = "Token Authorization failed. Token either incorrect, expired, or not provided correctly"
NOT_RENEWED = "Token Authentication failed. Token either incorrect, expired, or not provided correctly"
KEY = r"[\w-]{24}"


def key_file(server: RunningServer) -> Path:
    return server.folder / "key_file.json"


def keys(server: RunningServer) -> dict[str, str]:
    """Keys in the file now."""
    return {kind: entry["key"] for kind, entry in json.loads(key_file(server).read_text()).items()}


def ask(client: httpx.Client, path: str, authorization: str | None, method: str = "GET") -> httpx.Response:
    request = client.build_request(method, path)
    request.headers.pop("authorization", None)
    if authorization is not None:
        request.headers["authorization"] = authorization
    return client.send(request)


def assert_refused(reply: httpx.Response) -> None:
    assert_error(reply, 400, "InvalidKeyException", REFUSED)


# -- the file --


def test_the_file(server: RunningServer) -> None:
    path = key_file(server)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert server.info["key_file"] == str(path)
    content = json.loads(path.read_text())
    assert list(content) == ["management", "inference", "API"]
    assert list(content["management"]) == list(content["inference"]) == ["key", "expiration time"]
    assert list(content["API"]) == ["key"]
    assert all(re.fullmatch(KEY, entry["key"]) for entry in content.values())
    assert len({entry["key"] for entry in content.values()}) == 3
    expires = datetime.fromisoformat(content["inference"]["expiration time"].replace("Z", "+00:00"))
    left = expires - datetime.now(timezone.utc)
    assert 0 < left.total_seconds() <= 60 * 60


def test_no_key_is_in_the_log(server: RunningServer) -> None:
    text = server.log.read_text()
    assert str(key_file(server)) in text  # but the file is
    assert not [key for key in keys(server).values() if key in text]


# -- which key opens what --

INFERENCE = ["/ping", "/predictions/echo", "/absent", "/models/echo/invoke", "/v1/models/echo:predict"]
MANAGEMENT = ["/models", "/models/echo", "/ping", "/absent", "/v1/models/echo"]


@pytest.mark.parametrize(
    ("listener", "path"),
    [*(("inference", path) for path in INFERENCE), *(("management", path) for path in MANAGEMENT)],
)
def test_each_listener_has_its_key(server: RunningServer, listener: str, path: str) -> None:
    client: httpx.Client = getattr(server, listener)
    for kind, key in keys(server).items():
        reply = ask(client, path, f"Bearer {key}")
        if kind == listener:
            assert reply.status_code == (404 if path == "/absent" else 200)
        else:
            assert_refused(reply)
    assert_refused(ask(client, path, None))


def test_the_metrics_listener_needs_none(server: RunningServer) -> None:
    assert ask(server.metrics, "/metrics", None).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_need_none(server: RunningServer, path: str) -> None:
    """Ours; `/ping` does."""
    assert ask(server.inference, path, None).status_code == 200
    assert_refused(ask(server.inference, "/ping", None))


@pytest.mark.parametrize(("method", "path"), [("OPTIONS", "/"), ("GET", "/api-description")])
def test_descriptions_need_none(server: RunningServer, method: str, path: str) -> None:
    for client in (server.inference, server.management):
        assert ask(client, path, None, method).json()["openapi"] == "3.0.1"


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        ("Bearer {}", True),
        ("Bearer   {}", True),
        ("Bearer\t{}", True),
        ("bearer {}", True),
        ("BEARER {}", True),
        ("Bearer{}", False),
        ("Basic {}", False),
        ("{}", False),
        ("Bearer {} more", False),
        ("Bearer {}x", False),
        ("Bearer", False),
    ],
)
def test_the_header(server: RunningServer, header: str, passes: bool) -> None:
    reply = ask(server.inference, "/ping", header.format(keys(server)["inference"]))
    if passes:
        assert_status(reply, 200, "Healthy")
    else:
        assert_refused(reply)


def test_the_word_token_in_a_request_is_nothing_special(server: RunningServer) -> None:
    """TorchServe looks for /token in the whole request, headers included."""
    api = f"Bearer {keys(server)['API']}"
    assert_refused(ask(server.management, "/models?x=/token", api))
    request = server.management.build_request("GET", "/models", headers={"x-own": "/token", "authorization": api})
    assert_refused(server.management.send(request))


# -- renewal --


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("kind", ["inference", "management"])
def test_a_new_key(server: RunningServer, kind: str, method: str) -> None:
    client: httpx.Client = getattr(server, kind)
    path = "/ping" if kind == "inference" else "/models"
    before, content = keys(server), json.loads(key_file(server).read_text())
    reply = ask(server.management, f"/token?type={kind}", f"Bearer {before['API']}", method)
    assert (reply.status_code, reply.content) == (200, b"")
    assert reply.headers["content-type"] == "application/json"
    after, renewed = keys(server), json.loads(key_file(server).read_text())
    assert {name for name in after if after[name] != before[name]} == {kind}
    assert renewed[kind]["expiration time"] > content[kind]["expiration time"]
    assert stat.S_IMODE(key_file(server).stat().st_mode) == 0o600
    assert_refused(ask(client, path, f"Bearer {before[kind]}"))
    assert ask(client, path, f"Bearer {after[kind]}").status_code == 200


@pytest.mark.parametrize(
    ("query", "kind"),
    [("?type=inference", "inference"), ("?type=inference", "management"), ("?type=other", "API"), ("", "API"),
     ("?type=API", "API"), ("?type=inference", None)],
)  # fmt: skip
def test_a_new_key_is_refused(server: RunningServer, query: str, kind: str | None) -> None:
    before = keys(server)
    header = None if kind is None else f"Bearer {before[kind]}"
    reply = ask(server.management, f"/token{query}", header)
    assert_error(reply, 400, "InvalidKeyException", NOT_RENEWED)
    assert keys(server) == before


def test_new_keys_are_on_the_management_listener_only(server: RunningServer) -> None:
    found = keys(server)
    assert_refused(ask(server.inference, "/token?type=inference", f"Bearer {found['API']}"))
    assert ask(server.inference, "/token?type=inference", f"Bearer {found['inference']}").status_code == 404


def test_keys_expire(tmp_path: Path) -> None:
    """After a fraction of a minute; the API key does not. The file goes with the server."""
    setup = Setup(services=("echo",), tokens=True, properties="token_expiration_min=0.01\n", ready=False)
    with serving(setup, tmp_path) as server:
        key = keys(server)["inference"]
        wait_until(lambda: ask(server.inference, "/ping", f"Bearer {key}").status_code == 400, "the key is too old")
        assert_refused(ask(server.inference, "/ping", f"Bearer {key}"))
        before = json.loads(key_file(server).read_text())["inference"]["expiration time"]
        reply = ask(server.management, "/token?type=inference", f"Bearer {keys(server)['API']}")
        assert reply.status_code == 200
        assert keys(server)["inference"] != key
        assert json.loads(key_file(server).read_text())["inference"]["expiration time"] > before
    assert not key_file(server).exists()


# -- switched off, and what wins --


def needs_no_token(folder: Path, flag: str, properties: str, env: dict[str, str]) -> bool:
    flags = (flag,) if flag else ()
    setup = Setup(tokens=True, flags=flags, properties=properties, env=env, ready=False)
    with serving(setup, folder) as server:
        off: bool = not key_file(server).exists()
        reply = ask(server.management, "/token?type=inference", None)
        assert reply.status_code == (404 if off else 400)
        assert ask(server.inference, "/ping", None).status_code == (200 if off else 400)
        return off


OFF, ON = (f"disable_token_authorization={value}\n" for value in ("true", "false"))
BY_ENV = "enable_envvars_config=true\n"
VARIABLE = "TS_DISABLE_TOKEN_AUTHORIZATION"


@pytest.mark.parametrize(
    ("flag", "properties", "env", "off"),
    [
        ("", OFF, {}, True),
        ("--dt", ON, {}, True),
        ("--disable-token-auth", ON + BY_ENV, {VARIABLE: "false"}, False),
        ("", ON + BY_ENV, {VARIABLE: "true"}, True),
        ("", "", {VARIABLE: "true"}, False),
    ],
    ids=["file", "flag beats file", "env beats flag", "env beats file", "env only where the file allows it"],
)
def test_precedence(tmp_path: Path, flag: str, properties: str, env: dict[str, str], off: bool) -> None:
    assert needs_no_token(tmp_path, flag, properties, env) is off
