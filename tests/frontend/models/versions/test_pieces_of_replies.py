"""Pieces of several replies that come in one frame."""

from __future__ import annotations

from pathlib import Path

from msx_protocol import Chunk, Chunks
from tests.frontend.harness import Harness, in_harness
from tests.frontend.jobs import sink_of


def test_each_piece_reaches_its_reply_and_none_that_has_ended(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 3\n")
        (group,) = harness.groups()
        group.runner.is_async, group.runner._slots = True, 3
        jobs = [harness.submit() for _ in range(3)]
        for job in jobs:
            group.received(0, Chunk(job.number, False, 200), b"")
        jobs[1].cancel()
        numbers = [job.number for job in jobs]
        group.received(0, Chunks([*numbers, numbers[0], 99], [1, 1, 2, 1, 1]), b"abccde")
        assert sink_of(jobs[0]).events == [200, b"a", b"d"]
        assert b"b" not in sink_of(jobs[1]).events
        assert sink_of(jobs[2]).events == [200, b"cc"]
        for number in numbers:
            group.received(0, Chunk(number, True), b"")
        assert sink_of(jobs[0]).events[-1] == sink_of(jobs[2]).events[-1] == "end"
        assert not group.runner.in_flight.open

    in_harness(tmp_path, test)
