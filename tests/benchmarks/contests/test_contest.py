"""Results of the turns of a contest."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

import click
import psutil
import pytest

from benchmarks.contests.contest import Contestant, bars, processor, rotated, table
from benchmarks.load.client import Address
from benchmarks.load.result import Result
from tests.benchmarks.contestants import contestant

OURS, PEER = ["msx", "msx, tokens on"], "mosec"


def test_the_table_has_a_column_for_each_peer_that_took_part() -> None:
    field = [contestant(OURS[0], 60), contestant(PEER, 20)]
    shown = table("Echo", field, 32, ["another", PEER])
    assert shown.columns[-1] == f"of {PEER}"
    assert [row[-1] for row in shown.rows] == ["3.00 (3.00 – 3.00)", "1.00 (1.00 – 1.00)"]


def test_bars_have_a_panel_for_each_number_of_connections() -> None:
    one = contestant("msx", 3, 2)
    one.turns |= contestant("", 5, connections=1).turns
    drawn = bars("echo", "Echo", [one], [32, 1, 32])
    assert [*drawn.panels.items()] == [("1 connection", {"msx": [5.0]}), ("32 connections", {"msx": [3.0, 2.0]})]
    assert drawn.label == "requests/s"
    assert bars("echo", "Echo", [one], [1], unit="MB").label == "MB/s"


def test_processor_time_leaves_out_what_is_next_to_nothing() -> None:
    assert processor(contestant("x", 1, 1).turns[32]) == "400 = 300 + 100"


def test_everybody_begins_a_round_in_turn() -> None:
    field = [contestant(name) for name in "abc"]
    assert ["".join(one.name for one in rotated(field, number)) for number in range(4)] == ["abc", "bca", "cab", "abc"]


class Idle:
    """A load that looks whether the server runs."""

    def __init__(self) -> None:
        self.statuses: list[str] = []

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        for process in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess):
                self.statuses.append(process.status())
        return Result(1, 1, 1, 1, 0)


def falls_asleep(process: psutil.Process) -> bool:
    """The kernel takes a moment."""
    deadline = time.monotonic() + 30
    while process.status() != psutil.STATUS_STOPPED and time.monotonic() < deadline:
        time.sleep(0.001)
    return process.status() == psutil.STATUS_STOPPED


def test_a_restless_server_sleeps_while_others_have_their_turn() -> None:
    process = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    one = Contestant("x", Address("127.0.0.1", 1), "/", process.pid, restless=True)
    load = Idle()
    try:
        one.warm_up(load, 1, 1)
        assert falls_asleep(process)
        one.take(load, 1, 1)
        assert falls_asleep(process)
        assert psutil.STATUS_STOPPED not in load.statuses
        one.wake()
        assert process.status() != psutil.STATUS_STOPPED
    finally:
        process.kill()
        process.communicate()  # closes the pipe, too


def test_who_refuses_requests_is_named() -> None:
    class Refused:
        def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
            raise click.ClickException("3 of 5 requests went wrong.")

    with pytest.raises(click.ClickException, match=r"TorchServe, 32 connections: 3 of 5"):
        Contestant("TorchServe", Address("127.0.0.1", 1), "/", os.getpid()).take(Refused(), 32, 1)
