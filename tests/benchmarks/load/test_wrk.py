"""Reports of wrk's script."""

from __future__ import annotations

from benchmarks.load.result import Result
from benchmarks.load.wrk import parse


def test_parse() -> None:
    output = 'Running 1s test\nRESULT {"requests":500,"micros":250000,"p50":90,"p99":120,"errors":0}\n'
    result = parse(output)
    assert result == Result(500, 250_000, 90, 120, 0)
    assert result.per_second == 2000


def test_parse_of_a_run_that_failed() -> None:
    assert parse("unable to connect to 127.0.0.1:1 Connection refused\n") is None
