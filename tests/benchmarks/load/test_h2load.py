"""Reports of h2load."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.load.h2load import OCTETS, H2load, parse
from benchmarks.load.result import Result

REPORT = """
finished in {}, 1580.00 req/s, 260.59KB/s
requests: 3160 total, 3192 started, 3160 done, {} succeeded, {} failed, 0 errored, 0 timeout
status codes: 3160 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 521.18KB (533688) total, 78.21KB (80088) headers (space savings 90.00%), 400KB ({}) data
"""
LOG = "".join(f"1700000000{n:06}\t200\t{n * 10}\n" for n in range(100))


def test_parse() -> None:
    assert parse(REPORT.format("2.00s", 3160, 0, 3160 * 136), LOG, 136) == Result(3160, 2_000_000, 500, 990, 0)


def test_milliseconds() -> None:
    result = parse(REPORT.format("1950.20ms", 3160, 0, 3160 * 136), LOG, 136)
    assert result is not None
    assert result.micros == 1_950_200


@pytest.mark.parametrize(("failed", "data", "errors"), [(4, 3160 * 136, 4), (0, 3150 * 136, 10), (0, 0, 3160)])
def test_what_went_wrong(failed: int, data: int, errors: int) -> None:
    """An error of gRPC is HTTP's 200 without data."""
    result = parse(REPORT.format("2.00s", 3160, failed, data), LOG, 136)
    assert result is not None
    assert result.errors == errors


def test_parse_of_a_run_that_failed() -> None:
    assert parse("could not connect to host\n", "", 136) is None


@pytest.mark.parametrize(
    ("clients", "in_flight", "arguments"),
    [
        (1, 32, ["-c1", "-m32"]),
        (4, 32, ["-c4", "-m8"]),
        (4, 2, ["-c2", "-m1"]),
        (None, 32, ["--h1", "-c32", "-m1"]),
    ],
)
def test_requests_in_flight_are_streams_or_connections(
    clients: int | None, in_flight: int, arguments: list[str]
) -> None:
    assert H2load("h2load", Path("body"), 128, OCTETS, clients)._spread(in_flight) == arguments
