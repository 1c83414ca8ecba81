"""Clients of PyPI beside those of the contract, with keys, against a server with a parrot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.runs import checks_of, run
from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.long.environments import environment

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

CLIENTS = Path(__file__).parent / "clients"
FILES = {"cohere_client": "cohere"}
"""Each with its environment."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("parrot")
    pack_service("parrot", new_store(folder), config="maxConcurrent: 64\njobQueueSize: 100")
    with run_server(folder, "--models", "parrot.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return {name: run(name, server, environment(kind), CLIENTS) for name, kind in FILES.items()}


@pytest.mark.parametrize(("name", "check"), [pair for name in FILES for pair in checks_of(name, CLIENTS)])
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
