"""Cost of a change: the figures next to those of another checkout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from benchmarks.cli.names import command
from benchmarks.contests.before import LEAST, Pair, compare
from benchmarks.contests.contest import Contestant
from benchmarks.contests.verdicts import pairs_with_before
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report
from benchmarks.servers.msx import Server
from benchmarks.throughput import grpc, http2, stream
from tests.benchmarks.contestants import contestant

OTHER = Path("elsewhere/msx-serve")


def report() -> Report:
    return Report("sample", "command", machine())


def test_ratios_are_of_the_same_round_and_stand_with_their_spread() -> None:
    found = report()
    compare(found, [Pair("msx, 32 streams", "events/s", [96, 90, 300], [100, 100, 200])], what="Streams")
    assert found.tables[0].title == "Streams: now and before"
    row = ("msx, 32 streams", "events/s", "100", "96", "0.960", "0.900 – 1.500", "0.900 – 1.500")
    assert [*found.tables[0].rows] == [row]
    assert [(one.measured, one.limit, one.met) for one in found.targets] == [("0.900", f"≥ {LEAST:g}", False)]


@pytest.mark.parametrize(("lost", "met"), [(1, True), (5, False)])
def test_a_rate_is_judged_by_the_lower_bound_of_its_interval(lost: int, met: bool) -> None:
    """One bad round of ten is noise; five of ten are a loss, although the median is above the limit."""
    found = report()
    now = [90.0] * lost + [100.0] * (10 - lost)
    compare(found, [Pair("msx", "requests/s", now, [100.0] * 10)], what="Echo")
    assert [one.met for one in found.targets] == [met]


def test_without_another_checkout_there_is_neither_table_nor_target() -> None:
    found = report()
    compare(found, pairs_with_before([contestant("msx", 1), contestant("mosec", 1)], [32]), what="Echo")
    assert found.tables == []
    assert found.targets == []


def test_processor_time_may_not_grow() -> None:
    found = report()
    rates, costs = Pair("msx", "requests/s", [1], [1]), Pair("msx", "CPU µs/request", [104], [100])
    compare(found, [rates], what="Echo", costs=[costs])
    assert [row[1] for row in found.tables[0].rows] == ["requests/s", "CPU µs/request"]
    assert [(one.limit, one.met) for one in found.targets] == [("≥ 0.97", True), ("≤ 1.03", False)]


@contextmanager
def served(model: str, config: str, *, program: Path | None = None) -> Iterator[Server]:
    info = {"inference": "http://127.0.0.1:1", "grpc_inference": "127.0.0.1:2", "key_file": None, "pid": 1}
    yield Server(Path("/nowhere"), info, program or Path("msx-serve"))


@pytest.mark.parametrize(
    ("module", "enter", "names"),
    [
        (grpc, lambda stack: grpc._ours(stack, OTHER), ["msx", "msx, before"]),
        (
            stream,
            lambda stack: [stream._ours(stack, name, 9, program) for name in stream.OURS for program in (None, OTHER)],
            [f"{name}{suffix}" for name in stream.OURS for suffix in ("", ", before")],
        ),
        (
            http2,
            lambda stack: [one for program in (None, OTHER) for one in http2._enter(stack, 32, program)],
            [f"msx, batch 32, {name}{suffix}" for suffix in ("", ", before") for name in ("HTTP/2", "HTTP/1.1")],
        ),
    ],
)
def test_each_setting_is_served_by_both_checkouts(
    monkeypatch: pytest.MonkeyPatch, module: object, enter: Callable[[ExitStack], list[Contestant]], names: list[str]
) -> None:
    monkeypatch.setattr(module, "serve", served)
    with ExitStack() as stack:
        assert [one.name for one in enter(stack)] == names


@pytest.mark.parametrize("name", ["overhead", "grpc", "http2", "stream", "families", "idle"])
def test_these_benchmarks_take_another_checkout(name: str, tmp_path: Path) -> None:
    program = tmp_path / "msx-serve"
    program.touch()
    assert command(name).make_context(name, ["--before", str(program)]).params["before"] == program
