"""The clients that users have, against a server with a parrot. The files of checks run once, in the clients' own
environment; each of their checks is a test here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.runs import checks_of, run_all
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract]

FILES = (
    "openai_sync",
    "openai_async",
    "openai_batches",
    "anthropic_client",
    "ollama_client",
    "hub",
    "langchain_client",
    "silent",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("clients")
    pack_service("parrot", new_store(folder), config="maxConcurrent: 64\njobQueueSize: 100")
    with run_server(
        folder,
        "--models",
        "parrot.mar",
        tokens=True,
        properties="stream_heartbeat=0.1\nresponses_store=true\njobs=true\nbatch_share=1\n",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer, python: str) -> dict[str, dict[str, str]]:
    return run_all(FILES, server, python)


@pytest.mark.parametrize(("name", "check"), [pair for name in FILES for pair in checks_of(name)])
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    failure = outcomes[name][check]
    assert not failure, f"{failure}\n{server.tail()}"
