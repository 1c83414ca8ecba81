"""/openapi.json of each listener, read by strangers: schemathesis, which asks for all that it describes, and a
generator of clients."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.long.environments import environment
from tests.long.explained import EXPLAINED
from tests.long.schemathesis import run

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

MODELS = ("typed", "norms", "parrot", "echo")
LISTENERS = ("inference", "metrics", "management")
"""The last one may delete the models."""
EXAMPLES = 10
GENERATED = 180


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("openapi")
    store = new_store(folder)
    for name in MODELS:
        pack_service(name, store)
    with run_server(folder, "--models", *[f"{name}.mar" for name in MODELS], tokens=True) as running:
        yield running


def listener(server: RunningServer, name: str) -> httpx.Client:
    client: httpx.Client = getattr(server, name)
    return client


@pytest.mark.parametrize("name", LISTENERS)
def test_a_client_is_made_of_all_endpoints(server: RunningServer, name: str, tmp_path: Path) -> None:
    """Each operation is a module that can be imported, and nothing is left out."""
    document = listener(server, name).get("/openapi.json").raise_for_status().text
    (tmp_path / "openapi.json").write_text(document)
    others = ("application/msgpack", "application/x-ndjson")
    overrides = dict.fromkeys(others, "application/octet-stream")
    (tmp_path / "config.yaml").write_text(json.dumps({"content_type_overrides": overrides}))
    programs = Path(environment("openapi")).parent
    command = [str(programs / "openapi-python-client"), "generate", "--path", "openapi.json", "--meta", "none"]
    command += ["--config", "config.yaml", "--output-path", "made", "--fail-on-warning"]
    env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    made = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=GENERATED)
    assert made.returncode == 0, made.stdout + made.stderr
    modules = [one for one in (tmp_path / "made" / "api").glob("*/*.py") if one.name != "__init__.py"]
    assert len(modules) == sum(map(len, json.loads(document)["paths"].values()))
    names = [".".join(one.relative_to(tmp_path).with_suffix("").parts) for one in modules]
    loads = [str(programs / "python"), "-c", f"import importlib\nfor name in {names}: importlib.import_module(name)"]
    loaded = subprocess.run(loads, cwd=tmp_path, capture_output=True, text=True, timeout=GENERATED)
    assert loaded.returncode == 0, loaded.stderr


@pytest.mark.parametrize("name", LISTENERS)
def test_replies_are_what_the_document_says(server: RunningServer, name: str, tmp_path: Path) -> None:
    assert server.keys is not None
    client, key = listener(server, name), server.keys["management" if name == "management" else "inference"]["key"]
    headers = {"authorization": f"Bearer {key}"}
    document = client.get("/openapi.json", headers=headers).raise_for_status().json()
    found = run(environment("openapi"), document, str(client.base_url), key, tmp_path, EXAMPLES)
    unexplained = [one for one in found if not any(line.explains(one) for line in EXPLAINED)]
    assert not unexplained, "\n\n".join(map(str, unexplained))
