"""Clients in JavaScript, of npm, against a server with a parrot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.npm_runs import checks_of, make_packages, run_npm
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(900)]
"""Seconds: the first run installs packages."""

FILES = {"langchain": "langchain", "cohere": "cohere", "anthropic": "anthropic", "ollama": "ollama"}
"""Each with its environment."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("npm")
    pack_service("parrot", new_store(folder), config="maxConcurrent: 64\njobQueueSize: 100")
    with run_server(folder, "--models", "parrot.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return {name: run_npm([name], server, make_packages(kind))[name] for name, kind in FILES.items()}


@pytest.mark.parametrize(("name", "check"), [pair for name in FILES for pair in checks_of(name)])
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
