"""A client that openapi-python-client makes of /openapi.json calls the server."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytest.importorskip("openapi_python_client")

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("generated")
    for service in ("echo", "norms", "parrot"):
        pack_service(service, new_store(folder))
    with run_server(folder, "--models", "echo.mar", "norms.mar", "parrot.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def generated(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package, made of the document that a key of the inference API is shown."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_bytes(server.inference.get("/openapi.json").content)
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    command += ["--path", "openapi.json", "--output-path", "made_client"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    lost = re.findall(r"(?:POST|GET) (\S+) within \w+\. Endpoint will not", done.stdout + done.stderr)
    assert not [path for path in lost if "/norms" not in path and "/v2/" not in path], "it knows no tensors"
    sys.path.insert(0, str(folder))
    yield importlib.import_module("made_client")
    sys.path.remove(str(folder))


def call(server: RunningServer, generated: ModuleType, path: str, *args: Any, **kwargs: Any) -> Any:
    """The detailed answer of a route, by the path of its module."""
    assert server.keys is not None
    key = server.keys["inference"]["key"]
    client = generated.AuthenticatedClient(base_url=server.info["inference"], token=key)
    return importlib.import_module(f"made_client.api.{path}").sync_detailed(*args, client=client, **kwargs)


def test_a_completion(server: RunningServer, generated: ModuleType) -> None:
    models = importlib.import_module("made_client.models")
    body = models.OpenAICompletionRequest.from_dict({"model": "parrot", "prompt": "one two", "max_tokens": 5})
    reply = call(server, generated, "open_ai.post_v1_completions", body=body)
    assert json.loads(reply.content)["choices"][0]["text"] == "one two"


def test_what_is_there(server: RunningServer, generated: ModuleType) -> None:
    assert call(server, generated, "probes.get_livez").status_code == 200
    names = json.loads(call(server, generated, "k_serve_v_2.get_v2_models").content)["models"]
    assert sorted(names) == ["echo", "norms", "parrot"]
