from math import inf

import pytest

from msx_net.connections import turns


@pytest.fixture(autouse=True)
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read at once whatever a connection is given at once, however busy the machine is."""
    monkeypatch.setattr(turns, "TURN", inf)
