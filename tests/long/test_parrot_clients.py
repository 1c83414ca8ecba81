"""Clients of PyPI beside those of the contract, with keys, against a server with a parrot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.suites import PARROT, checks, outcomes_of
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("parrot")
    pack_service("parrot", new_store(folder), config="maxConcurrent: 64\njobQueueSize: 100")
    with run_server(folder, "--models", "parrot.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return outcomes_of(PARROT, server)


@pytest.mark.parametrize(("name", "check"), checks(PARROT))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
