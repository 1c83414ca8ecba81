"""KServe v2 over gRPC as `tritonclient.grpc` speaks it: one run of it; each check is a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.kserve_server import kserve_server
from tests.contract.runs import checks_of, run
from tests.e2e.server import GRPC_TRANSPORTS, RunningServer

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.mindspore]


@pytest.fixture(scope="module", params=GRPC_TRANSPORTS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with kserve_server(tmp_path_factory.mktemp("kserve"), GRPC_TRANSPORTS[request.param]) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer, python: str) -> dict[str, str]:
    return run("triton_grpc", server, python)


@pytest.mark.parametrize("check", [check for _, check in checks_of("triton_grpc")])
def test_client(outcomes: dict[str, str], server: RunningServer, check: str) -> None:
    assert not outcomes[check], f"{outcomes[check]}\n{server.tail()}"
