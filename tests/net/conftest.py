from math import inf

import pytest

from msx_net.connections import turns
from tests.net.grpc.harness import TRANSPORT


@pytest.fixture(params=["own", "grpcio"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Our own HTTP/2, then grpc.aio: for tests of what they do themselves.

    All else of gRPC runs by the first. tests/contract/test_grpc_both_transports.py shows that both answer calls alike.
    """
    chosen: str = request.param
    monkeypatch.setattr(TRANSPORT, "chosen", chosen)
    return chosen


@pytest.fixture(autouse=True)
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read at once whatever a connection is given at once, however busy the machine is."""
    monkeypatch.setattr(turns, "TURN", inf)
