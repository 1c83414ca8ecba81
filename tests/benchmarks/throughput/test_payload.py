"""Counts of benchmarks/throughput/payload.py."""

from __future__ import annotations

from pathlib import Path

from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.load.wrk import Wrk
from benchmarks.throughput.payload import Megabytes


def test_megabytes_are_counted_instead_of_requests(tmp_path: Path) -> None:
    program = tmp_path / "wrk"
    program.write_text("""#!/bin/sh\necho 'RESULT {"requests":5,"micros":1000000,"p50":9,"p99":10,"errors":0}'\n""")
    program.chmod(0o700)
    load = Megabytes(Wrk(str(program), tmp_path / "script"), 16)
    result = load.run(Address("127.0.0.1", 1), "/", connections=1, seconds=1)
    assert result == Result(80, 1_000_000, 9, 10, 0)
