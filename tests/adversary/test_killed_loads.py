"""Workers that are killed while they load, as the kernel does where memory is short, and the crowd that waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, run_server, wait_until
from tests.e2e.test_autoscaling import DIES, folder_archive, gone

pytestmark = [pytest.mark.e2e, pytest.mark.long]

CROWD = 40
CONFIG = "minWorkers: 0\nautoscaling:\n  idleTime: 1.5\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    store = new_store(tmp_path)
    folder_archive(store, "dies", DIES.format(str(kills(tmp_path, 0))), CONFIG)
    with run_server(tmp_path, "--models", "dies") as running:
        assert gone(running, "dies")
        yield running


def kills(folder: Path, number: int) -> Path:
    """The file that says how many loads from now on are killed."""
    left = folder / "kills"
    left.write_text(str(number))
    return left


def crowd(ask: Callable[[], httpx.Response]) -> list[httpx.Response]:
    with ThreadPoolExecutor(CROWD) as clients:
        return [one.result() for one in [clients.submit(ask) for _ in range(CROWD)]]


def test_a_crowd_outlives_two_kills_and_is_told_of_a_third(server: RunningServer) -> None:
    """The third in a row is a load that has failed; another one is tried when that time is over."""
    ask = partial(server.predict, "dies", b"x")
    kills(server.folder, 2)
    assert {(one.status_code, one.text) for one in crowd(ask)} == {(200, "loaded")}
    wait_until(lambda: gone(server, "dies"), "no worker is left", server.tail)
    left = kills(server.folder, 3)
    refused = crowd(ask)
    assert {one.status_code for one in refused} == {503}
    assert all("killed by SIGKILL, perhaps out of memory" in one.text for one in refused), refused[0].text
    assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
    assert left.read_text() == "0"
    wait_until(lambda: ask().status_code == 200, "it is loaded again", server.tail)
    assert {(one.status_code, one.text) for one in crowd(ask)} == {(200, "loaded")}
