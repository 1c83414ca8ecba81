"""What the tables of benchmarks/overhead.py and benchmarks/grpc.py say."""

from __future__ import annotations

from benchmarks._client import Address
from benchmarks._contest import Contestant, Turn, processor, rotated, table, targets
from benchmarks._wrk import Result
from benchmarks.overhead import MOSEC, OURS, TORCHSERVE


def contestant(name: str, *rates: int) -> Contestant:
    turns = [Turn(Result(rate, 1_000_000, 1, 1, 0), [300.0, 100.0, 0.5]) for rate in rates]
    return Contestant(name, Address("127.0.0.1", 1), "/", 1, {32: turns})


def test_targets_compare_each_mode_with_the_peer() -> None:
    field = [contestant(OURS[0], 60, 50, 70), contestant(OURS[1], 40, 40, 40), contestant(MOSEC, 100, 100, 100)]
    found = targets(field, 32, OURS, MOSEC, 0.5, "32 connections")
    assert [(target.measured, target.met) for target in found] == [("0.60", True), ("0.40", False)]


def test_without_the_peer_there_is_no_verdict() -> None:
    assert targets([contestant(OURS[0], 1), contestant(OURS[1], 1)], 32, OURS, MOSEC, 0.5, "") == []


def test_the_table_has_a_column_for_each_peer_that_took_part() -> None:
    field = [contestant(OURS[0], 60), contestant(TORCHSERVE, 20)]
    shown = table("Echo", field, 32, [MOSEC, TORCHSERVE])
    assert shown.columns[-1] == f"of {TORCHSERVE}"
    assert [row[-1] for row in shown.rows] == ["3.00 (3.00 – 3.00)", "1.00 (1.00 – 1.00)"]


def test_processor_time_leaves_out_what_is_next_to_nothing() -> None:
    assert processor(contestant("x", 1, 1).turns[32]) == "400 = 300 + 100"


def test_everybody_begins_a_round_in_turn() -> None:
    field = [contestant(name) for name in "abc"]
    assert ["".join(one.name for one in rotated(field, number)) for number in range(4)] == ["abc", "bca", "cab", "abc"]
