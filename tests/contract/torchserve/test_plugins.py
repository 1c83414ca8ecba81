"""Plugins, by Python's entry points.

contract#plugins
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import METHOD_NOT_ALLOWED, assert_error, assert_json
from tests.e2e.server import FREE_PORTS, RunningServer, client_of, new_store, server_environment
from tests.plugins import install, install_module

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[3] / "examples" / "plugin"

ENDPOINTS = """
import sys
import threading

from msx_sdk.plugins import Endpoint, EndpointResponse, InvalidInput, PredictionError


class Echo(Endpoint):
    path = "echo-plugin"
    description = "Says what it was asked"

    def do_get(self, request):
        return {"path": request.path, "query": dict(request.query), "mine": request.headers.get("X-Mine"),
                "loop": threading.current_thread() is threading.main_thread()}

    async def do_post(self, request):
        headers = {"x-plugin": "yes", "x-request-id": "forged"}
        return EndpointResponse(request.body, 201, "image/png", headers)

    def do_put(self, request):
        return "a text"

    def do_delete(self, request):
        return EndpointResponse(status=204)


class Fails(Endpoint):
    path = "fails"
    listener = "management"

    def do_get(self, request):
        return getattr(self, request.path)()

    async def do_post(self, request):
        sys.exit(3)

    def raises(self):
        raise ValueError("no such thing")

    def exits(self):
        sys.exit(3)

    def refuses(self):
        raise InvalidInput("not this")

    def chooses(self):
        raise PredictionError(503, "not now")

    def stops(self):
        next(iter(()))

    def nonsense(self):
        return object()

    def status(self):
        return EndpointResponse(status=99)


class Open(Endpoint):
    path = "open-plugin"
    listener = "management"
    open = True

    def do_get(self, request):
        return self.server.config["job_queue_size"]


class Measures(Endpoint):
    path = "measures"
    listener = "metrics"

    def do_get(self, request):
        return "answer 42"
"""


def prepare(store: Path) -> None:
    plugins = store.parent / "plugins"
    install(plugins, EXAMPLE)
    points = {name.lower(): f"some_plugins:{name}" for name in ("Echo", "Fails", "Open", "Measures")}
    install_module(plugins, "some_plugins", ENDPOINTS, endpoints=points)


SERVER = Setup(
    services=("echo",),
    load=("echo.mar",),
    prepare=prepare,
    properties="plugins_path=plugins\nsnapshot_serializer=json_file\nkeystore_pass=secret\n",
    tokens=True,
)


def test_an_endpoint_and_all_below_it(server: RunningServer) -> None:
    """TorchServe looks at the first segment."""
    for path in ("", "/deeper", "/deeper/still"):
        reply = server.inference.get(f"/echo-plugin{path}?a=1&a=2", headers={"x-mine": "1"})
        expected = {"path": path.strip("/"), "query": {"a": ["1", "2"]}, "mine": "1", "loop": False}
        assert_json(reply, 200, expected)


def test_what_a_response_may_be(server: RunningServer) -> None:
    reply = server.inference.post("/echo-plugin", content=b"\x89png")
    assert (reply.status_code, reply.content, reply.headers["content-type"]) == (201, b"\x89png", "image/png")
    assert (reply.headers["x-plugin"], reply.headers["x-request-id"]) != ("yes", "forged")
    text = server.inference.put("/echo-plugin")
    assert (text.text, text.headers["content-type"]) == ("a text", "text/plain; charset=utf-8")
    assert server.inference.delete("/echo-plugin").status_code == 204


def test_a_method_that_it_does_not_have(server: RunningServer) -> None:
    reply = server.inference.patch("/echo-plugin")
    assert_error(reply, 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)


def test_only_on_its_own_listener(server: RunningServer) -> None:
    assert server.management.get("/echo-plugin").status_code == 404
    assert server.inference.get("/measures").status_code == 404
    assert server.metrics.get("/measures").text == "answer 42"


def test_tokens(server: RunningServer) -> None:
    with client_of(server.info["inference"], None) as client:
        assert client.get("/echo-plugin").json()["type"] == "InvalidKeyException"
    with client_of(server.info["management"], None) as client:
        assert client.get("/fails/raises").json()["type"] == "InvalidKeyException"
        assert client.get("/open-plugin").text == "100"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "raises", 500, "The plugin fails (some_plugins:Fails of some_plugins 1.0) failed: ValueError: no such"),
        (
            "GET",
            "exits",
            500,
            "The plugin fails (some_plugins:Fails of some_plugins 1.0) failed: it called sys.exit(3)",
        ),
        (
            "POST",
            "exits",
            500,
            "The plugin fails (some_plugins:Fails of some_plugins 1.0) failed: it called sys.exit(3)",
        ),
        ("GET", "stops", 500, "The plugin fails (some_plugins:Fails of some_plugins 1.0) failed: "),
        (
            "GET",
            "nonsense",
            500,
            "The plugin fails (some_plugins:Fails of some_plugins 1.0) answered what is not a resp",
        ),
        ("GET", "status", 500, "The plugin fails (some_plugins:Fails of some_plugins 1.0) answered what is not a resp"),
        ("GET", "refuses", 400, "not this"),
        ("GET", "chooses", 503, "not now"),
    ],
)
def test_errors(server: RunningServer, method: str, path: str, status: int, message: str) -> None:
    """They name the plugin and never end the server."""
    reply = server.management.request(method, f"/fails/{path}")
    assert_error(reply, status, "InternalServerException", message, exact=False)
    assert server.inference.get("/ping").status_code == 200


def test_too_large_a_request(server: RunningServer) -> None:
    assert server.inference.post("/echo-plugin", content=b"x" * 6553501).status_code == 413


def test_descriptions_list_them(server: RunningServer) -> None:
    paths = server.inference.options("/").json()["paths"]
    assert paths["/echo-plugin"]["get"]["summary"] == "Says what it was asked"
    assert sorted(paths["/echo-plugin"]) == ["delete", "get", "post", "put"]
    assert "/fails" not in paths
    assert "/fails" in server.management.options("/").json()["paths"]


def test_sagemakers_parameters(server: RunningServer) -> None:
    expected = {"MaxConcurrentTransforms": 1, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": 6}
    assert_json(server.inference.get("/execution-parameters"), 200, expected)


# -- snapshots --


def test_snapshots_are_kept_by_a_plugin(tmp_path: Path) -> None:
    setup = Setup(services=("echo",), load=("echo.mar",), prepare=prepare, properties=SERVER.properties)
    with serving(setup, tmp_path):
        pass
    saved: dict[str, Any] = json.loads((tmp_path / "snapshots.json").read_text())
    assert sorted(name.partition("-")[2] for name in saved) == ["shutdown.cfg", "startup.cfg"]
    properties = next(iter(saved.values()))
    assert '"echo"' in properties["model_snapshot"]
    assert properties["snapshot_serializer"] == "json_file"
    assert not (tmp_path / "logs" / "config").exists()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_store(tmp_path)
    return tmp_path


def start(folder: Path, properties: str) -> subprocess.CompletedProcess[str]:
    """A start that fails."""
    (folder / "config.properties").write_text(FREE_PORTS + properties)
    command = [sys.executable, "-m", "msx_frontend.cli.main", "--foreground", "--model-store", "store"]
    env = server_environment(folder)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", ["20260101000000000-startup.cfg", "last"])
def test_a_named_snapshot_is_read_by_a_plugin(folder: Path, name: str) -> None:
    """Here it has models that no start gets past."""
    install(folder / "plugins", EXAMPLE)
    wrong = {"20260101000000000-startup.cfg": {"model_snapshot": "none at all"}}
    (folder / "snapshots.json").write_text(json.dumps(wrong))
    done = start(folder, f"plugins_path=plugins\nsnapshot_serializer=json_file\nmodel_snapshot={name}\n")
    assert done.returncode == 1
    assert f"model_snapshot={name}: the models of 20260101000000000-startup.cfg cannot be read: " in done.stderr


def test_a_plugin_that_cannot_be_imported_keeps_the_server_from_starting(folder: Path) -> None:
    text = "import nothing_of_this_name\n"
    install_module(folder / "plugins", "broken", text, endpoints={"it": "broken:It"})
    done = start(folder, "plugins_path=plugins\n")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "The plugin it (broken:It of broken 1.0) cannot be loaded: ModuleNotFoundError: No module named "
        "'nothing_of_this_name'. Correct it, uninstall it, or take it out of plugins_path."
    )
    assert not (folder / "key_file.json").exists()
