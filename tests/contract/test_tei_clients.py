"""huggingface_hub's client, which knows the address of a server alone, against one that has no model that generates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.runs import checks_of, run
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("tei")
    store = new_store(folder)
    for model in ("Vectors", "Labels"):
        pack_service("letters", store, model=model.lower(), function=model)
    with run_server(folder, "--models", "vectors.mar", "labels.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer, python: str) -> dict[str, str]:
    return run("hub_tei", server, python)


@pytest.mark.parametrize("check", [check for _, check in checks_of("hub_tei")])
def test_client(outcomes: dict[str, str], server: RunningServer, check: str) -> None:
    assert not outcomes[check], f"{outcomes[check]}\n{server.tail()}"
