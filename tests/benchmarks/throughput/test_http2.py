"""Results of benchmarks/throughput/http2.py from its turns."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from benchmarks.load.h2load import OCTETS, H2load
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report
from benchmarks.throughput.http2 import _answers, setting, tell, version
from tests.benchmarks.contestants import contestant


def report() -> Report:
    return Report("http2", "command", machine())


def test_each_batch_size_is_compared_with_its_own_http1() -> None:
    found = report()
    rates = {(1, "HTTP/2"): 90, (1, "HTTP/1.1"): 100, (32, "HTTP/2"): 89, (32, "HTTP/1.1"): 100}
    tell(found, [contestant(setting(*names), rate) for names, rate in rates.items()], 32)
    assert [(one.measured.partition(" ")[0], one.limit, one.met) for one in found.targets] == [
        ("0.90", "≥ 0.9", True),
        ("0.89", "≥ 0.9", False),
    ]
    assert [[row[0] for row in shown.rows] for shown in found.tables] == [
        [setting(batch, name) for name in ("HTTP/2", "HTTP/1.1")] for batch in (1, 32)
    ]


def test_another_checkout_that_takes_part_is_in_the_table_of_its_batch_size() -> None:
    found = report()
    names = [setting(32, "HTTP/2"), setting(32, "HTTP/1.1"), setting(32, "HTTP/1.1") + ", before"]
    tell(found, [contestant(name, 1) for name in names], 32)
    assert [row[0] for row in found.tables[1].rows] == names
    assert found.tables[2].title == "Echo: now and before"
    assert {version(name) for name in names} == {"HTTP/2", "HTTP/1.1"}


def test_a_server_without_http2_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise click.ClickException("h2load failed.")

    monkeypatch.setattr(H2load, "run", run)
    found = report()
    assert not _answers(contestant(setting(1, "HTTP/2"), 1), H2load("h2load", Path("body"), 1, OCTETS, 1), found)
    assert found.notes == ["No comparison: msx, batch 1, HTTP/2 does not answer."]
