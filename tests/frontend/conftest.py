from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.devices.nvidia import library
from tests.frontend.net.grpc.harness import TRANSPORT
from tests.net.conftest import long_turns

__all__ = ["long_turns", "transport"]


@pytest.fixture(scope="session", autouse=True)
def no_gpus_of_this_machine() -> Iterator[None]:
    """NVML is found only where a test puts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_loads", lambda: False)
        patch.setattr(library, "FOLDERS", ())
        patch.setattr(library, "DRIVER", Path("/nowhere"))
        yield


@pytest.fixture(params=["own", "grpcio"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Our own HTTP/2, then grpc.aio: for tests of what they do themselves.

    All else of gRPC runs by the first. tests/contract/test_grpc_both_transports.py shows that both answer calls alike.
    """
    chosen: str = request.param
    monkeypatch.setattr(TRANSPORT, "chosen", chosen)
    return chosen
