"""The arithmetic and the services of `python -m benchmarks start`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from benchmarks.handlers import weights
from benchmarks.start import start
from benchmarks.start.help import FLOOR, SCRIPTS, help_table, help_target
from benchmarks.start.large_archive import OURS, PEER, Large, large_table
from benchmarks.start.runs import Run
from benchmarks.start.starts import Start
from tests.project.test_scripts import SCRIPTS as OF_PYPROJECT


def test_every_command_is_asked_for_its_help() -> None:
    assert sorted(SCRIPTS) == sorted(script.name for script in OF_PYPROJECT)


def test_the_slowest_help_counts_and_click_alone_does_not() -> None:
    times = {FLOOR: [400.0], "a --help": [90.0, 100.0, 300.0], "b --help": [120.0, 130.0, 140.0]}
    assert (help_target(times).measured, help_target(times).met) == ("130", True)
    assert not help_target({**times, "c --help": [150.0]}).met
    assert ("a --help", "100", "90.0 – 300") in help_table(times).rows


def test_a_start_that_takes_longer_is_a_loss() -> None:
    runs = {seconds: Run(1.0, seconds, 1.0, 70.0, 60.0, 40.0, 30.0, None) for seconds in (1.0, 1.25)}
    (pair,) = start._starts([runs[1.25]] * 10, [runs[1.0]] * 10)
    assert pair.interval() == (0.8, 0.8)
    assert start._starts([runs[1.0]], []) == []


def test_a_supervisor_has_a_limit_where_there_is_one() -> None:
    assert start._supervisor_target(Run(1.0, 1.0, 1.0, 70.0, 60.0, 40.0, 30.0, None)) == []
    (target,) = start._supervisor_target(Run(1.0, 1.0, 1.0, 70.0, 60.0, 40.0, 30.0, 21.0))
    assert (target.limit, target.met) == ("< 20", False)


def test_an_archives_row_and_its_ratio() -> None:
    ours, theirs = Start(2.0, 1.5, 10**9, 2 * 10**6), Start(8.0, 9.0, 10**9, 10**9)
    table = large_table(10**9, Large({OURS: [ours], PEER: [theirs]}, [0.2]))
    assert "1,000 MB" in table.title
    assert [row[:2] for row in table.rows] == [
        (OURS, "2.00"),
        (PEER, "8.00"),
        ("reading it once", "0.200"),
        ("TorchServe / msx", "4.00"),
    ]
    assert table.rows[0][3:] == ("1.50", "1,000", "2.00")
    assert len(large_table(10**9, Large({OURS: [ours]}, [0.2])).rows) == 2


def test_weights_are_mapped_before_the_first_request(tmp_path: Path) -> None:
    (tmp_path / weights.WEIGHTS).write_bytes(b"12345")
    context = SimpleNamespace(system_properties={"model_dir": str(tmp_path)})
    try:
        assert weights.handle(None, context) is None
        (tmp_path / weights.WEIGHTS).unlink()
        assert weights.handle([{}, {}], context) == ["5", "5"]
    finally:
        for one in weights._maps:
            one.close()
        weights._maps.clear()
