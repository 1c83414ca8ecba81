"""Clients that the OpenAPI Generator makes from /openapi.json, without anything written by hand in between."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.runs import ROOT, checks_of, make_environment, run
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long]

HERE = Path(__file__).parent / "generated"
WATCHDOG = 180


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("generated")
    store = new_store(folder)
    for name in ("typed", "norms", "parrot"):
        pack_service(name, store)
    models = [f"{name}.mar" for name in ("typed", "norms", "parrot")]
    with run_server(folder, "--models", *models, tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    python = make_environment(HERE / "requirements.txt", ROOT / ".venv-generated")
    folder = tmp_path_factory.mktemp("clients")
    for name, listener in (("inference", server.inference), ("management", server.management)):
        (folder / f"{name}.json").write_text(listener.get("/openapi.json").raise_for_status().text)
        generate(Path(python).parent, folder, name)
    return run("checks", server, python, HERE, folder)


def generate(programs: Path, folder: Path, name: str) -> None:
    """A package `made_…` in the folder."""
    command = [str(programs / "openapi-generator-cli"), "generate", "--generator-name", "python"]
    command += ["--input-spec", f"{name}.json", "--package-name", f"made_{name}", "--output", "."]
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    made = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=WATCHDOG
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "[main] ERROR" not in made.stdout + made.stderr


@pytest.mark.parametrize(("name", "check"), checks_of("checks", HERE))
def test_generated_client(outcomes: dict[str, str], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[check], f"{outcomes[check]}\n{server.tail()}"
