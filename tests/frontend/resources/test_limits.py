"""How many processes, where the configuration does not say so."""

from __future__ import annotations

import pytest

from msx_frontend.config import ServerConfig
from msx_frontend.resources import limits
from msx_frontend.resources.processes import Processes, TooManyProcessesError


@pytest.mark.parametrize(
    ("cores", "devices", "said", "expected"),
    [(2, 0, None, 64), (48, 8, None, 192), (8, 32, None, 128), (48, 8, 5, 5)],
)
def test_the_default_follows_the_machine(
    monkeypatch: pytest.MonkeyPatch, cores: int, devices: int, said: int | None, expected: int
) -> None:
    monkeypatch.setattr(limits, "cores", lambda: cores)
    assert limits.worker_processes(ServerConfig(max_worker_processes=said), devices) == expected
    assert limits.parallel_starts(ServerConfig()) == cores
    assert limits.parallel_starts(ServerConfig(parallel_starts=3)) == 3


def test_ranks_are_counted() -> None:
    processes = Processes(8)
    processes.check("m:1.0", 2, 4)
    with pytest.raises(
        TooManyProcessesError, match=r"^m:1\.0 cannot have 3 workers of 4 processes each: this server may"
    ):
        processes.check("m:1.0", 3, 4)
    processes.take(4)
    assert processes.shortage("m:1.0", 4) is None
    processes.take(1)
    shortage = processes.shortage("m:1.0", 4)
    assert shortage is not None
    assert shortage.reason == (
        "m:1.0 needs 4 worker processes for one more worker, and others have too many of the 8 that this server may "
        "have (max_worker_processes); it starts when they have fewer, or raise it"
    )
    processes.give_back(1)
    assert processes.shortage("m:1.0", 4) is None
