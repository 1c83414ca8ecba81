import pytest

from tests.unit.frontend.net.grpc.harness import WAY


@pytest.fixture(params=["direct", "aio"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same by the server's own HTTP/2, and by grpc.aio."""
    chosen: str = request.param
    monkeypatch.setattr(WAY, "direct", chosen == "direct")
    return chosen
