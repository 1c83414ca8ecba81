"""Targets for the ratio of two servers."""

from __future__ import annotations

from benchmarks.contests.verdicts import (
    costs_with_before,
    latency_targets,
    pairs_with_before,
    processor_targets,
    targets,
)
from tests.benchmarks.contestants import contestant

OURS, PEER = ["msx", "msx, tokens on"], "mosec"


def test_targets_compare_each_mode_with_the_peer_and_tell_the_spread() -> None:
    field = [contestant(OURS[0], 60, 50, 70), contestant(OURS[1], 40, 40, 40), contestant(PEER, 100, 100, 100)]
    found = targets(field, 32, OURS, PEER, 0.5, "32 connections")
    assert [target.measured for target in found] == ["0.60 (0.50 – 0.70)", "0.40 (0.40 – 0.40)"]
    assert [target.met for target in found] == [True, False]


def test_without_the_peer_or_us_there_is_no_verdict() -> None:
    assert targets([contestant(OURS[0], 1), contestant(OURS[1], 1)], 32, OURS, PEER, 0.5, "") == []
    assert targets([contestant(PEER, 1)], 32, OURS, PEER, 0.5, "") == []
    assert processor_targets([contestant(OURS[0], 1)], 32, OURS, PEER, 0.5) == []


def test_latency_is_compared_round_by_round() -> None:
    ours, theirs = contestant("msx", 1, p50=100), contestant("peer", 1, p50=800)
    ours.turns[32] += contestant("", 1, p50=300).turns[32] + contestant("", 1, p50=200).turns[32]
    theirs.turns[32] += contestant("", 1, p50=600).turns[32] + contestant("", 1, p50=1000).turns[32]
    assert [one.measured for one in latency_targets([ours, theirs], 32, ["msx"], "peer", 0.1)] == ["0.200"]


def test_processor_time_is_that_of_all_processes() -> None:
    field = [contestant("msx", 1, 1, spent=(24.0, 16.0)), contestant("bare ASGI", 9, 9, spent=(50.0,))]
    (found,) = processor_targets(field, 32, ["msx"], "bare ASGI", 0.8)
    assert (found.measured, found.limit, found.met) == ("0.80 (0.80 – 0.80)", "≤ 0.8", True)
    assert found.what == "msx: CPU µs/request of bare ASGI, 32 connections"
    assert not processor_targets(field, 32, ["msx"], "bare ASGI", 0.79)[0].met


def test_servers_are_paired_by_their_names_at_each_number_of_connections() -> None:
    now, before = contestant("msx, batch 32", 30, 31), contestant("msx, batch 32, before", 20, 21)
    for one, rates in ((now, 5), (before, 4)):
        one.turns |= contestant("", rates, connections=1).turns
    pairs = pairs_with_before([now, contestant("mosec", 9), before], [32, 1])
    assert [(pair.setting, pair.now, pair.before) for pair in pairs] == [
        ("msx, batch 32, 32 connections", [30, 31], [20, 21]),
        ("msx, batch 32, 1 connection", [5], [4]),
    ]


def test_processor_time_is_paired_in_the_same_way() -> None:
    field = [contestant("msx", 1, spent=(9.0, 1.0)), contestant("msx, before", 1, spent=(12.0,))]
    assert [(pair.setting, pair.unit, pair.now, pair.before) for pair in costs_with_before(field, [32])] == [
        ("msx, 32 connections", "CPU µs/request", [10.0], [12.0])
    ]
