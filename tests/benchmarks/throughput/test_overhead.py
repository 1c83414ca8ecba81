"""Results of benchmarks/throughput/overhead.py from its contests."""

from __future__ import annotations

from pathlib import Path

from benchmarks.throughput.overhead import (
    ASGI,
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
from tests.benchmarks.contestants import contestant

NAMES = [one.name for one in OURS]


def test_each_setting_of_ours_takes_part_as_another_checkout_has_it_too() -> None:
    both = [*NAMES, MOSEC.name, *(f"{name}, before" for name in NAMES)]
    assert [one.name for one in _with_before([*OURS, MOSEC], Path("elsewhere/msx-serve"))] == both
    assert _with_before(OURS, None) == [*OURS]


def test_batch_1_has_to_beat_both_peers_and_to_cost_less_than_bare_asgi() -> None:
    field = [
        contestant(NAMES[0], 250, spent=(24.0, 16.0)),
        contestant(NAMES[1], 229),
        contestant(MOSEC.name, 100),
        contestant(TORCHSERVE.name, 26),
        contestant(ASGI.name, 300, spent=(50.0,)),
    ]
    found = CONTESTS["single"].targets(field, [32])
    assert [(target.limit, target.met) for target in found] == [
        ("≥ 2.5", True),
        ("≥ 2.3", False),
        ("≥ 10", False),
        ("≥ 10", False),
        ("≤ 0.8", True),
    ]
    assert "batch 1, 32 connections" in found[0].what
    assert CONTESTS["single"].targets(field, []) == []


def test_one_connection_has_to_be_as_fast_as_mosec() -> None:
    field = [contestant(name, rate, connections=1) for name, rate in ((NAMES[0], 99), (NAMES[1], 1), (MOSEC.name, 100))]
    (found,) = CONTESTS["single"].targets(field, [1])
    assert (found.limit, found.met) == ("≥ 1", False)
    assert "1 connection" in found.what


def test_batches_have_to_beat_the_best_and_not_to_wait_as_the_defaults_do() -> None:
    ours = contestant(BATCHING.name, 119, connections=128, spent=(17.0, 5.0))
    ours.turns |= contestant("", 1, connections=1, p50=1000).turns
    waits = contestant(MOSEC_DEFAULT.name, 90, connections=128)
    waits.turns |= contestant("", 1, connections=1, p50=10_000).turns
    peers = [
        contestant(MOSEC_BEST.name, 100, connections=128, spent=(22.0,)),
        waits,
        contestant(TORCHSERVE_DEFAULT.name, 1, connections=1, p50=9_000),
        contestant(ASGI.name, 70, connections=128, spent=(44.0,)),
    ]
    found = CONTESTS["batching"].targets([ours, *peers], [1, 128])
    assert [(target.measured.partition(" ")[0], target.met) for target in found] == [
        ("1.19", False),
        ("1.00", False),
        ("0.50", True),
        ("0.100", True),
        ("0.111", False),
    ]
    assert MOSEC_BEST.name in found[0].what
    assert "128 connections" in found[0].what
    assert "1 connection" in found[3].what


def test_batches_have_to_beat_mosec_at_32_connections_too() -> None:
    field = [contestant(BATCHING.name, 120), contestant(MOSEC_BEST.name, 1), contestant(MOSEC_DEFAULT.name, 100)]
    found = CONTESTS["batching"].targets(field, [32])
    assert [(target.limit, target.met) for target in found] == [("≥ 1.2", True), ("≤ 0.85", False)]
    assert MOSEC_DEFAULT.name in found[0].what


def test_both_contests_have_the_bare_server_in_every_round() -> None:
    assert all(ASGI in contest.entrants for contest in CONTESTS.values())


def test_entrants_of_a_contest_have_names_of_their_own() -> None:
    for contest in CONTESTS.values():
        names = [one.name for one in contest.entrants]
        assert len({*names}) == len(names)
        assert {peer.name for peer in contest.peers} <= {*names}
    assert NAMES == ["msx", "msx, tokens on"]
    assert MOSEC_DEFAULT.name == "mosec 0.9.8, batch 32, wait 10 ms"
