"""KServe v2 as `tritonclient.grpc` and `tritonclient.http` speak it: one run of each; each check is a test."""

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
def grpc_outcomes(server: RunningServer, python: str) -> dict[str, str]:
    return run("triton_grpc", server, python)


@pytest.fixture(scope="module")
def http_outcomes(server: RunningServer, python: str) -> dict[str, str]:
    return run("triton_http", server, python)


@pytest.mark.parametrize("check", [check for _, check in checks_of("triton_grpc")])
def test_grpc_client(grpc_outcomes: dict[str, str], server: RunningServer, check: str) -> None:
    assert not grpc_outcomes[check], f"{grpc_outcomes[check]}\n{server.tail()}"


@pytest.mark.parametrize("server", ["own"], indirect=True)
@pytest.mark.parametrize("check", [check for _, check in checks_of("triton_http")])
def test_http_client(http_outcomes: dict[str, str], server: RunningServer, check: str) -> None:
    assert not http_outcomes[check], f"{http_outcomes[check]}\n{server.tail()}"
