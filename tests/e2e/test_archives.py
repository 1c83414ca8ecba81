"""Archives that cannot be served are refused by name, and nothing of them stays."""

from __future__ import annotations

import json
import os
import resource
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e

ECHO = "def handle(data, context):\n    return [row['body'] for row in data]\n"
MANIFEST: dict[str, Any] = {"model": {"modelName": "m", "handler": "h.py"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("archives")
    new_store(folder)
    with run_server(folder) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_stays(server: RunningServer) -> Iterator[None]:
    """Nothing is left of archives that could not be registered; a test unregisters the others."""
    yield
    assert server.management.get("/models").json() == {"models": []}
    assert server.unpacked() == []
    assert server.inference.get("/readyz").status_code == 200


def archive(server: RunningServer, name: str, manifest: Any = MANIFEST, **members: str) -> str:
    """A zip in the store; `members` by path, with `__` for a slash."""
    with zipfile.ZipFile(server.store / name, "w") as file:
        if manifest is not None:
            file.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
        for path, text in {"h.py": ECHO, **members}.items():
            file.writestr(path, text)
    return name


def refused(server: RunningServer, name: str, **parameters: Any) -> str:
    reply = server.management.post("/models", params={"url": name, "initial_workers": 1, **parameters})
    body = reply.json()
    assert (reply.status_code, body["type"]) == (400, "InvalidModelException"), body
    assert name in body["message"]
    message: str = body["message"]
    return message


def test_truncated(server: RunningServer) -> None:
    whole = pack_service("echo", server.store).read_bytes()
    (server.store / "short.mar").write_bytes(whole[: len(whole) // 2])
    refused(server, "short.mar")


def test_one_byte_changed(server: RunningServer) -> None:
    path = pack_service("echo", server.store)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        data[file.getinfo("echo.py").header_offset + 30 + len("echo.py") + 5] ^= 1
    (server.store / "changed.mar").write_bytes(data)
    assert "damaged" in refused(server, "changed.mar")


def test_empty_file_and_empty_folder(server: RunningServer) -> None:
    (server.store / "empty.mar").touch()
    refused(server, "empty.mar")
    (server.store / "bare").mkdir()
    assert "MANIFEST.json" in refused(server, "bare")


@pytest.mark.parametrize(
    ("manifest", "key"),
    [
        ({"model": {"handler": "h.py"}}, "Model name is not defined"),
        ({"model": {"modelName": "m"}}, "handler"),
        ({"model": {"modelName": "../m", "handler": "h.py"}}, "modelName"),
        ([], "object"),
    ],
)
def test_a_manifest_that_cannot_be_meant(server: RunningServer, manifest: Any, key: str) -> None:
    assert key in refused(server, archive(server, "odd.mar", manifest))


@pytest.mark.parametrize("version", ["../../2", "all", "1 0"])
def test_a_version_that_is_a_path(server: RunningServer, version: str) -> None:
    manifest = {"model": {**MANIFEST["model"], "modelVersion": version}}
    archive(server, "odd.mar", manifest)
    reply = server.management.post("/models?url=odd.mar&initial_workers=1")
    assert (reply.status_code, reply.json()["type"]) == (400, "InvalidModelException")
    assert repr(version) in reply.json()["message"]


def test_an_unknown_key_is_a_warning(server: RunningServer) -> None:
    archive(server, "new.mar", {**MANIFEST, "colour": "blue"})
    reply = server.management.post("/models?url=new.mar&initial_workers=1")
    assert reply.status_code == 200
    warnings = [line["message"] for line in server.log_lines() if line["level"] == "WARNING"]
    assert any("new.mar" in warning and "'colour'" in warning for warning in warnings)
    server.management.delete("/models/m")


def test_a_bomb(server: RunningServer) -> None:
    with zipfile.ZipFile(server.store / "bomb.mar", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("MAR-INF/MANIFEST.json", json.dumps(MANIFEST))
        file.writestr("h.py", ECHO)
        with file.open("zeros.bin", "w") as member:
            for _ in range(110):
                member.write(bytes(1 << 20))
    assert "zeros.bin" in refused(server, "bomb.mar")


def test_a_config_that_is_not_there(server: RunningServer) -> None:
    manifest = {"model": {**MANIFEST["model"], "configFile": "config.yaml"}}
    assert "config.yaml" in refused(server, archive(server, "config.mar", manifest))


def test_a_handler_that_is_not_there(server: RunningServer) -> None:
    archive(server, "absent.mar", {"model": {"modelName": "m", "handler": "absent.py"}})
    reply = server.management.post("/models?url=absent.mar&initial_workers=1")
    assert reply.status_code in (400, 500)
    assert "absent" in reply.json()["message"]


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: the write of the second megabyte fails."""
    store = new_store(tmp_path)
    pack_service("echo", store)
    with zipfile.ZipFile(store / "big.mar", "w") as file:
        file.writestr("MAR-INF/MANIFEST.json", json.dumps(MANIFEST))
        file.writestr("h.py", ECHO)
        file.writestr("weights.bin", os.urandom(2 << 20))
    with run_server(tmp_path, "--models", "echo.mar") as full:
        resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        reply = full.management.post("/models?url=big.mar&initial_workers=1")
        assert (reply.status_code, reply.json()["type"]) == (400, "InvalidModelException")
        message = reply.json()["message"]
        assert "big.mar cannot be unpacked" in message
        assert "it needs 2.0 MiB, and its disk has " in message
        assert len(full.unpacked()) == 1
        assert full.management.get("/models/m").status_code == 404
        assert full.predict("echo", b"still here").content == b"still here"
