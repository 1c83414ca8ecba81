"""Keys that an operator gives: rotated while the server runs, known by name, told to no worker."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

OLD, NEW, OPERATOR, SINGLE = (f"{name}-{name * 8}" for name in ("old", "new", "operator", "single"))


def write_keys(path: Path, *clients: str) -> None:
    """As a mounted Secret changes: what the name leads to is another file now."""
    entries: list[dict[str, object]] = [
        {"name": key.partition("-")[0], "key": key, "kind": "inference"} for key in clients
    ]
    entries += [{"name": "operator", "key": OPERATOR, "kind": ["management", "API"]}]
    target = path.with_name(f"{path.name}-{len(list(path.parent.iterdir()))}")
    target.write_text(json.dumps({"keys": entries}))
    target.chmod(0o600)
    aside = path.with_name("aside")
    aside.symlink_to(target.name)
    os.replace(aside, path)


def ask(client: httpx.Client, method: str, path: str, key: str) -> httpx.Response:
    return client.request(method, path, headers={"Authorization": f"Bearer {key}"}, content=b'"MSX_API_KEY"')


def test_keys_of_an_operator(tmp_path: Path) -> None:
    folder = tmp_path / "secret"
    folder.mkdir()
    write_keys(folder / "keys.json", OLD)
    pack_service("env", new_store(tmp_path))
    properties = f"api_keys_file={folder / 'keys.json'}\ntoken_expiration_min=0\nkeep_tokens=true\n"
    env = {"MSX_API_KEY": SINGLE, "HF_TOKEN": "of-a-hub"}
    with run_server(tmp_path, "--models", "env.mar", properties=properties, tokens=True, env=env, fork=False) as server:
        made = Path(server.info["key_file"]).read_text()
        for key in (OLD, SINGLE):
            assert ask(server.inference, "POST", "/predictions/env", key).status_code == 200
        assert ask(server.management, "GET", "/models", OPERATOR).status_code == 200
        assert ask(server.management, "GET", "/models", OLD).status_code == 400
        no_worker_knows_them(server)
        write_keys(folder / "keys.json", NEW)
        with httpx.Client(base_url=server.inference.base_url) as client:
            wait_until(lambda: ask(client, "GET", "/ping", NEW).status_code == 200, "the new key opens")
        kept = ask(server.inference, "POST", "/predictions/env", OLD)  # on a connection that was open
        assert kept.json()["type"] == "InvalidKeyException"
        assert ask(server.management, "GET", "/token?type=inference", OPERATOR).status_code == 200
        renewed = Path(server.info["key_file"]).read_text()
        assert renewed != made
        counted(server)
        log = server.log.read_text()
        assert '"key":"old","method":"POST","path":"/predictions/env"' in log
        assert not [key for key in (OLD, NEW, OPERATOR, SINGLE) if key in log]
    assert Path(server.info["key_file"]).read_text() == renewed, "it is kept for the next start"


def no_worker_knows_them(server: RunningServer) -> None:
    (pid,) = server.worker_pids("env")
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"PATH=" in environment
    assert b"HF_TOKEN" not in environment
    assert b"MSX_API_KEY" not in environment


def counted(server: RunningServer) -> None:
    assert server.metric("msx_key_requests_total", key="old", protocol="http", code="200") == 1
    assert server.metric("msx_key_requests_total", key="MSX_API_KEY", protocol="http", code="200") == 1
    assert server.metric("msx_key_requests_total", key="operator") == 2
