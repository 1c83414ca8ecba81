"""One server for all cases of a module: what it serves is the module's constant `SERVER`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import GRPC_TRANSPORTS, RunningServer


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All of a module that has BOTH_WAYS (gRPC's) once with what is answered directly, and once through grpc.aio."""
    if "server" in metafunc.fixturenames and getattr(metafunc.module, "BOTH_WAYS", False):
        metafunc.parametrize("server", GRPC_TRANSPORTS, indirect=True, scope="module")


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """As `SERVER: Setup` of the module says. Cases must leave it as they found it."""
    setup: Setup = request.module.SERVER
    setup = replace(setup, properties=setup.properties + GRPC_TRANSPORTS.get(getattr(request, "param", ""), ""))
    with serving(setup, tmp_path_factory.mktemp(request.module.__name__.rpartition(".")[2])) as running:
        yield running


@pytest.fixture
def nothing_registered(server: RunningServer) -> Iterator[None]:
    """Unregisters all that a case has registered; for modules without models of their own."""
    yield
    for model in server.management.get("/models").json()["models"]:
        default = server.describe(name := model["modelName"])["modelVersion"]
        for version in sorted(server.versions(name), key=lambda version: version["modelVersion"] == default):
            reply = server.management.delete(f"/models/{name}/{version['modelVersion']}")
            assert reply.status_code == 200, reply.text
