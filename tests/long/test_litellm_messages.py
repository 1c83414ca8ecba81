"""LiteLLM's way to Anthropic's API, against a server with a parrot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.runs import checks_of, run
from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.long.environments import environment

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(900)]
"""Seconds: the first run installs packages."""

CLIENTS = Path(__file__).parent / "clients"
NAME = "litellm_messages"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("litellm")
    pack_service("parrot", new_store(folder))
    with run_server(folder, "--models", "parrot.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, str]:
    return run(NAME, server, environment("litellm"), CLIENTS)


@pytest.mark.parametrize("check", [check for _, check in checks_of(NAME, CLIENTS)])
def test_client(outcomes: dict[str, str], server: RunningServer, check: str) -> None:
    assert not outcomes[check], f"{outcomes[check]}\n{server.tail()}"
