"""A worker group whose real worker overlaps its batches: what the server knows of them, and what a crash fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.service_errors import WorkerDied
from msx_frontend.job import Job
from msx_frontend.workers.launcher import GroupSpec
from tests.forked import forking_interpreter
from tests.frontend.jobs import error_of, sink_of
from tests.frontend.workers.handlers import spec_of
from tests.frontend.workers.test_group import Bench, on
from tests.loops import until

STEPS = """
import os, time
from msx_sdk import Handler

class Steps(Handler):
    overlap = True

    def initialize(self, context): ...

    def preprocess(self, data):
        time.sleep(0.001)
        return [bytes(row["body"]) for row in data]

    def inference(self, inputs):
        time.sleep(0.001)
        for body in inputs:
            while body.startswith(b"/") and not os.path.exists(body):
                time.sleep(0.001)
            if body.startswith(b"/") and body.endswith(b"crash"):
                os._exit(3)
        return inputs
"""

BEFORE = 10
"""Requests behind which others wait, so that the worker sees that it pays to overlap."""


@pytest.fixture(autouse=True)
def _forked(forked_processes: None) -> None:
    forking_interpreter("worker")


def spec(folder: Path) -> GroupSpec:
    return spec_of(folder, STEPS, batch_size=1)


async def overlapping(bench: Bench, *bodies: bytes) -> list[Job]:
    """Send these when the worker overlaps: batches of one, the first two of which have begun then."""
    await bench.answers(*[b"one behind the other"] * BEFORE)
    jobs = bench.predict(*bodies)
    await until(lambda: len(bench.group.runner.in_flight.begun) == 2)
    return jobs


def test_the_next_batch_has_begun_and_the_one_behind_it_has_not(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        runner, mark = bench.group.runner, tmp_path / "mark"
        assert (runner.overlaps, bench.group.sequential) == (True, "")
        jobs = await overlapping(bench, str(mark).encode(), b"next", b"behind")
        assert [runner.batch_of(job)[0] > 0 for job in jobs] == [True, True, False]
        assert runner.in_flight.behind == 1
        mark.touch()
        await until(lambda: all(job.done for job in jobs))
        assert [sink_of(job).events[1] for job in jobs] == [str(mark).encode(), b"next", b"behind"]
        assert [size for size, _, _ in bench.owner.batches] == [1] * (BEFORE + 3)
        assert all(0 < seconds <= stay for _, seconds, stay in bench.owner.batches)

    on(spec(tmp_path), test)


def test_a_crash_fails_the_batches_that_have_begun_and_no_others(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        mark = tmp_path / "crash"
        first, ahead, behind = await overlapping(bench, str(mark).encode(), b"ahead", b"behind")
        mark.touch()
        await bench.group.wait_ended()
        assert [type(error_of(job)) for job in (first, ahead)] == [WorkerDied, WorkerDied]
        assert bench.owner.returned == [behind]

    on(spec(tmp_path), test)
