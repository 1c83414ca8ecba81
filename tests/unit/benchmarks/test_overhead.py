"""What benchmarks/overhead.py, payload.py and grpc.py make of their contests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import psutil
import pytest

from benchmarks import _echo, _torchserve, _trivial
from benchmarks._client import Address, Answer, Connection, answers
from benchmarks._contest import Contestant, Turn, bars, latency_targets, processor, rotated, table, targets
from benchmarks._echo import Entrant, enter, versions
from benchmarks._machine import machine
from benchmarks._peer import running
from benchmarks._table import Report
from benchmarks._trivial import request_size
from benchmarks._venv import NotInstalled
from benchmarks._wrk import SCRIPT, Result, Wrk
from benchmarks.overhead import (
    BATCHING,
    CONTESTS,
    MOSEC,
    MOSEC_BEST,
    MOSEC_DEFAULT,
    OURS,
    TORCHSERVE,
    TORCHSERVE_DEFAULT,
    _with_before,
)
from benchmarks.payload import Megabytes

NAMES = [one.name for one in OURS]


def contestant(name: str, *rates: int, connections: int = 32, p50: int = 1) -> Contestant:
    turns = [Turn(Result(rate, 1_000_000, p50, 1, 0), [300.0, 100.0, 0.5]) for rate in rates]
    return Contestant(name, Address("127.0.0.1", 1), "/", 1, {connections: turns})


def test_targets_compare_each_mode_with_the_peer() -> None:
    field = [contestant(NAMES[0], 60, 50, 70), contestant(NAMES[1], 40, 40, 40), contestant(MOSEC.name, 100, 100, 100)]
    found = targets(field, 32, NAMES, MOSEC.name, 0.5, "32 connections")
    assert [(target.measured, target.met) for target in found] == [("0.60", True), ("0.40", False)]


def test_without_the_peer_or_us_there_is_no_verdict() -> None:
    assert targets([contestant(NAMES[0], 1), contestant(NAMES[1], 1)], 32, NAMES, MOSEC.name, 0.5, "") == []
    assert targets([contestant(MOSEC.name, 1)], 32, NAMES, MOSEC.name, 0.5, "") == []


def test_each_setting_of_ours_takes_part_as_another_checkout_has_it_too() -> None:
    pairs = _with_before([*OURS, MOSEC], Path("elsewhere/msx-serve"))
    assert [(one.name, other.name) for one, other in pairs] == [(name, f"{name}, before") for name in NAMES]
    assert _with_before(OURS, None) == []


def test_batch_1_has_to_beat_both_peers() -> None:
    field = [contestant(NAMES[0], 201), contestant(MOSEC.name, 100), contestant(TORCHSERVE.name, 21)]
    found = CONTESTS["single"].targets(field, [1, 32])
    assert [(target.limit, target.met) for target in found] == [("≥ 2", True), ("≥ 10", False)]
    assert "batch 1, 32 connections" in found[0].what
    assert CONTESTS["single"].targets(field, [1]) == []


def test_batches_have_to_beat_the_best_and_not_to_wait_as_the_defaults_do() -> None:
    ours = contestant(BATCHING.name, 119, connections=128)
    ours.turns |= contestant("", 1, connections=1, p50=1000).turns
    waits = contestant(MOSEC_DEFAULT.name, 90, connections=128)
    waits.turns |= contestant("", 1, connections=1, p50=10_000).turns
    peers = [
        contestant(MOSEC_BEST.name, 100, connections=128),
        waits,
        contestant(TORCHSERVE_DEFAULT.name, 1, connections=1, p50=9_000),
    ]
    found = CONTESTS["batching"].targets([ours, *peers], [1, 128])
    assert [(target.measured, target.met) for target in found] == [("1.19", False), ("0.100", True), ("0.111", False)]
    assert MOSEC_BEST.name in found[0].what
    assert "128 connections" in found[0].what
    assert "1 connection" in found[1].what


def test_latency_is_compared_round_by_round() -> None:
    ours, theirs = contestant("msx", 1, p50=100), contestant("peer", 1, p50=800)
    ours.turns[32] += contestant("", 1, p50=300).turns[32] + contestant("", 1, p50=200).turns[32]
    theirs.turns[32] += contestant("", 1, p50=600).turns[32] + contestant("", 1, p50=1000).turns[32]
    assert [one.measured for one in latency_targets([ours, theirs], 32, ["msx"], "peer", 0.1)] == ["0.200"]


def test_the_table_has_a_column_for_each_peer_that_took_part() -> None:
    field = [contestant(NAMES[0], 60), contestant(TORCHSERVE.name, 20)]
    shown = table("Echo", field, 32, [MOSEC.name, TORCHSERVE.name])
    assert shown.columns[-1] == f"of {TORCHSERVE.name}"
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


def test_entrants_of_a_contest_have_names_of_their_own() -> None:
    for contest in CONTESTS.values():
        names = [one.name for one in contest.entrants]
        assert len({*names}) == len(names)
        assert {peer.name for peer in contest.peers} <= {*names}
    assert NAMES == ["msx", "msx, tokens on"]
    assert MOSEC_DEFAULT.name == "mosec 0.9.8, batch 32, wait 10 ms"


def test_who_cannot_be_had_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        if name == "msx":
            yield contestant(name)
        else:
            raise NotInstalled("There is no Java.")

    async def check(*_: object) -> None: ...

    monkeypatch.setattr(_echo, "_check", check)
    report = Report("sample", "command", machine())
    entrants = [Entrant("msx", "", join), Entrant("torchserve", "", join), Entrant("torchserve", "best", join)]
    with ExitStack() as stack:
        assert [one.name for one in enter(stack, entrants, 128, report)] == ["msx"]
    assert report.notes == ["No comparison: There is no Java."]


class Idle:
    """A load that looks whether the server runs."""

    def __init__(self) -> None:
        self.statuses: list[str] = []

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        self.statuses += [process.status() for process in psutil.Process().children()]
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


def test_megabytes_are_counted_instead_of_requests(tmp_path: Path) -> None:
    program = tmp_path / "wrk"
    program.write_text("""#!/bin/sh\necho 'RESULT {"requests":5,"micros":1000000,"p50":9,"p99":10,"errors":0}'\n""")
    program.chmod(0o700)
    load = Megabytes(Wrk(str(program), tmp_path / "script"), 16)
    result = load.run(Address("127.0.0.1", 1), "/", connections=1, seconds=1)
    assert result == Result(80, 1_000_000, 9, 10, 0)


def test_every_request_of_the_load_is_as_long_as_the_trivial_server_takes_it_to_be() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 128\r\n\r\n"
    assert request_size(head + b"x" * 300) == len(head) + 128
    assert request_size(b"GET / HTTP/1.1\r\n\r\n") == 18
    assert """'"' .. string.rep("x", 126) .. '"'""" in SCRIPT % 126


def test_versions_of_the_peers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_torchserve, "java", lambda: "openjdk 17")
    assert versions(["msx", "mosec"]) == "Peers: mosec 0.9.8"
    assert versions(["torchserve"]).startswith("Peers: torchserve 0.12.0, torch ")
    assert versions(["torchserve"]).endswith("; openjdk 17")
    assert versions(["msx"]) == "Peers: none"


async def ask(address: Address) -> list[Answer]:
    connection = await Connection.open(address)
    try:
        return [await connection.post("/", body) for body in (b"x" * 100_000, b"y" * 100_000)]
    finally:
        connection.leave()


def test_the_trivial_server_answers_each_request_and_ends() -> None:
    before = {*psutil.Process().children(recursive=True)}
    with _trivial.serve(300_000) as address:
        assert asyncio.run(ask(address)) == [(200, b"x" * 300_000)] * 2
    assert {*psutil.Process().children(recursive=True)} <= before
    assert not answers(address, "/")


def test_a_peer_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such port')"]
    peer = running("the peer", command, tmp_path, Address("127.0.0.1", 1), "/")
    with pytest.raises(click.ClickException, match=r"(?s)the peer did not start.*no such port"), peer:
        raise AssertionError("it is not there")


def test_who_refuses_requests_is_named() -> None:
    class Refused:
        def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
            raise click.ClickException("3 of 5 requests went wrong.")

    with pytest.raises(click.ClickException, match=r"TorchServe, 32 connections: 3 of 5"):
        Contestant("TorchServe", Address("127.0.0.1", 1), "/", os.getpid()).take(Refused(), 32, 1)
