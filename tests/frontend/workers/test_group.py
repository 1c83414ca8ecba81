"""A worker group through real worker processes: loading, batches, cancels, limits, and every way to end."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec import structs

from msx_core.non_finite import COUNTER
from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.replies.stream_credit import StreamBuffers
from msx_core.service_errors import HandlerFailed, RequestCancelled, WorkerDied, WorkerTimedOut
from msx_frontend.job import Job
from msx_frontend.workers import group_end, heartbeat, memory_watch
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.in_flight import Finished
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.local import LocalLauncher
from msx_frontend.workers.local_rank import LocalRank
from msx_protocol import MetricInfo, MetricSample
from tests.descriptors import open_descriptors
from tests.forked import forking_interpreter
from tests.frontend.jobs import error_of, make_job, sink_of
from tests.frontend.workers.handlers import ranks_of, spec_of
from tests.loops import run, until
from tests.phrases import did_not_respond, worker_died
from tests.processes import children_of

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


@pytest.fixture(autouse=True)
def _forked(forked_processes: None) -> None:
    forking_interpreter("worker")  # it is a child of this process, as workers are


class Owner:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.batches: list[Finished] = []
        self.returned: list[Job] = []
        self.samples: list[MetricSample] = []

    def group_has_room(self, group: BatchRunner) -> None:
        self.told.append("room")

    def group_replied(self, group: WorkerGroup) -> None:
        self.told.append("replied")

    def group_ended(self, group: WorkerGroup) -> None:
        self.told.append("ended")

    def batches_finished(self, batches: list[Finished]) -> None:
        self.batches += batches

    def jobs_returned(self, jobs: list[Job]) -> None:
        self.returned += jobs

    def guests_arrived(self, group: BatchRunner, jobs: Sequence[Job]) -> None: ...

    def forms_arrived(self, forms: list[MetricInfo]) -> None:
        self.told += [f"form of {form.name}" for form in forms if form.name != COUNTER]  # which every worker has

    def samples_arrived(self, group: WorkerGroup, samples: list[MetricSample]) -> None:
        self.samples += samples


class Bench:
    def __init__(self, spec: GroupSpec, folder: Path) -> None:
        self.owner = Owner()
        self.launched: list[LocalRank] = []
        self.folder = folder / "work"
        self.group = WorkerGroup(spec, self, self.owner)

    async def launch(self, spec: GroupSpec) -> list[LocalRank]:
        self.launched += await LocalLauncher(self.folder).launch(spec)
        return self.launched

    def predict(self, *bodies: bytes | Job) -> list[Job]:
        jobs = [body if isinstance(body, Job) else make_job(body=body) for body in bodies]
        self.group.runner.predict(jobs)
        self.group.runner.flush()
        return jobs

    async def answers(self, *bodies: bytes) -> list[Any]:
        jobs = self.predict(*bodies)
        await until(lambda: all(job.done for job in jobs))
        return [sink_of(job).events for job in jobs]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@asynccontextmanager
async def bench_of(spec: GroupSpec, folder: Path) -> AsyncIterator[Bench]:
    """A group that has loaded; nothing is left of it at the end."""
    bench = Bench(spec, folder)
    try:
        assert await bench.group.start() is None
        yield bench
    finally:
        await bench.group.drain(0)
        assert bench.group.state is GroupState.ENDED
        assert not any(bench.folder.iterdir())
        assert not any(psutil.pid_exists(rank.pid) for rank in bench.launched)


Test = Callable[[Bench], Coroutine[Any, Any, None]]


def folder_of(spec: GroupSpec) -> Path:
    return Path(spec.load.model_dir).parent


def on(spec: GroupSpec, test: Test, loop: str = "uvloop") -> None:
    async def call() -> None:
        async with bench_of(spec, folder_of(spec)) as bench:
            await test(bench)

    run(call(), loop)


# -- requests --


@LOOPS
def test_a_batch_and_the_next(tmp_path: Path, loop: str) -> None:
    async def test(bench: Bench) -> None:
        group = bench.group
        runner = group.runner
        assert (group.state, runner.idle, runner.room(), runner.busy) == (GroupState.READY, True, 8, 0)
        assert group.load_seconds > 0
        assert group.memory > 1 << 20
        assert await bench.answers(b"one", b"two") == [[200, b"one", "end"], [200, b"two", "end"]]
        assert await bench.answers(b"three") == [[200, b"three", "end"]]
        assert [size for size, _, _ in bench.owner.batches] == [2, 1]
        assert all(0 < seconds < 30 for _, seconds, _ in bench.owner.batches)
        assert bench.owner.told == ["replied", "room", "room"]

    on(spec_of(tmp_path, "echo"), test, loop)


def test_a_worker_is_a_fresh_interpreter(tmp_path: Path) -> None:
    """In a fork of the server its modules would be there."""
    code = """
import sys
def handle(data, context):
    return [" ".join(name for name in sys.modules if name.startswith("msx_frontend")) or "none"]
"""

    async def test(bench: Bench) -> None:
        assert await bench.answers(b"") == [[200, b"none", "end"]]

    on(spec_of(tmp_path, code), test)


def test_room(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        runner, mark = bench.group.runner, tmp_path / "mark"
        mark.touch()
        bench.predict(str(mark).encode())
        assert (runner.busy, runner.idle, runner.room(), runner.room(ahead=1)) == (1, False, 0, 4)
        bench.predict(b"x", b"y")
        assert (runner.busy, runner.room(ahead=1), runner.room(ahead=2)) == (3, 0, 4)

    on(spec_of(tmp_path, "hang", batch_size=4), test)


PATIENT = """
import os, time
def handle(data, context):
    for row in data or ():
        if (path := row["body"].decode()).startswith("/"):
            while not os.path.exists(path):
                time.sleep(0.005)
        elif path == "crash":
            os._exit(3)
    return [b"done"] * len(data or ())
"""


def test_requests_that_come_while_it_is_busy_are_its_next_batch(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        group, mark = bench.group, tmp_path / "mark"
        jobs = [make_job(body=body) for body in (str(mark).encode(), b"a", b"b", b"c")]
        assert group.runner.room_to_join == 4
        for some in (jobs[:1], jobs[1:2], jobs[2:]):
            group.runner.predict(some, joins=True)
            group.runner.flush()
            group.runner.flush()
        assert (group.runner.busy, group.runner.room_to_join) == (4, 1)
        mark.touch()
        await until(lambda: all(job.done for job in jobs))
        assert [size for size, _, _ in bench.owner.batches] in ([1, 3], [4])
        assert group.runner.idle

    on(spec_of(tmp_path, PATIENT, batch_size=4), test)


def test_a_crash_fails_the_requests_that_had_joined_and_no_others(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        group, mark = bench.group, tmp_path / "mark"
        first, crash, beside, behind = (make_job(body=body) for body in (str(mark).encode(), b"crash", b"b", b"c"))
        group.runner.predict([first])
        group.runner.flush()
        await until(lambda: lines_of(tmp_path / "begun"))
        for job in (crash, beside):
            group.runner.predict([job], joins=True)
            group.runner.flush()
        group.runner.predict([behind])
        group.runner.flush()
        group.runner.flush()
        mark.touch()
        await group.wait_ended()
        assert first.status == 200
        assert [type(error_of(job)) for job in (crash, beside)] == [WorkerDied, WorkerDied]
        assert bench.owner.returned == [behind]

    code = PATIENT.replace(
        "    for row", f"    data and open({str(tmp_path / 'begun')!r}, 'a').write('x\\n')\n    for row"
    )
    on(spec_of(tmp_path, code, batch_size=4), test)


def test_a_continuous_handler(tmp_path: Path) -> None:
    """It takes requests one by one into its slots, and its owner hears of each that has spoken or ended."""
    code = """
def handle(data, context):
    if data is None:
        return
    ids = list(context.request_ids.values())
    for id, row in zip(ids, data):
        if row:
            context.cache[id] = int(row["body"])
        context.cache[id] -= 1
    context.stopping_criteria = [lambda value, id=id: context.cache[id] <= 0 for id in ids]
    return [str(context.cache[id]) for id in ids]
"""

    async def test(bench: Bench) -> None:
        group = bench.group
        assert (group.runner.is_async, group.runner.continuous, group.runner.room()) == (True, True, 3)
        assert group.runner.room_to_join == 0, "requests join between two calls, without a batch"
        (job,) = bench.predict(b"2")
        assert (group.runner.room(), group.runner.holds(job), group.runner.holds(make_job())) == (2, True, False)
        await until(lambda: job.done)
        assert sink_of(job).events == [200, b"1", b"0", "end"]
        assert bench.owner.told == ["room", "replied", "room"]
        assert (group.runner.room(), group.runner.holds(job)) == (3, False)

    spec = spec_of(tmp_path, code, slots=3)
    spec.load.continuous = True
    on(spec, test)


def test_a_handlers_error_is_its_own(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        jobs = bench.predict(b"good", b"bad", b"good")
        await until(lambda: all(job.done for job in jobs))
        assert [job.status for job in (jobs[0], jobs[2])] == [200, 200]
        assert isinstance(error_of(jobs[1]), HandlerFailed)
        assert bench.owner.batches[0][0] == 3

    code = """
def handle(data, context):
    if data is None:
        return
    return [ValueError("no") if row["body"] == b"bad" else row["body"] for row in data]
"""
    on(spec_of(tmp_path, code), test)


def test_a_stream(tmp_path: Path) -> None:
    code = """
def handle(data, context):
    for n in range(3):
        yield [str(n)]
"""

    async def test(bench: Bench) -> None:
        ((first, *rest),) = await bench.answers(b"")
        assert (first, rest[-1]) == (200, "end")
        assert rest[:-1] == [b"0", b"1", b"2"]

    on(spec_of(tmp_path, code), test)


@LOOPS
def test_large_bodies(tmp_path: Path, loop: str) -> None:
    async def test(bench: Bench) -> None:
        bodies = [os.urandom(3_000_000), os.urandom(10), os.urandom(3_000_000)]
        answers = await bench.answers(*bodies)
        assert [b"".join(answer[1:-1]) for answer in answers] == bodies

    spec = spec_of(tmp_path, "echo")
    spec.load.max_response_size = 1 << 23
    on(spec, test, loop)


def test_metrics_of_the_handler_arrive(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.answers(b"x")
        await until(lambda: {"tokens_total", "slots_in_use"} <= {sample.name for sample in bench.owner.samples})

    on(spec_of(tmp_path, "metrics"), test)


# -- cancel --


def test_a_cancel_reaches_the_worker(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"""
import time
def handle(data, context):
    if data is None:
        return
    open({str(mark)!r}, "a").write("started\\n")
    while not context.cancelled(0):
        time.sleep(0.005)
    open({str(mark)!r}, "a").write("cancelled\\n")
    return [b"late" for _ in data]
"""

    async def test(bench: Bench) -> None:
        (job,) = bench.predict(b"")
        await until(lambda: lines_of(mark))
        assert bench.group.runner.awaited
        job.cancel()
        assert not bench.group.runner.awaited
        await until(lambda: bench.group.runner.idle)
        assert lines_of(mark) == ["started", "cancelled"]
        assert isinstance(error_of(job), RequestCancelled)
        assert sink_of(job).events == [error_of(job)]
        assert bench.owner.told == ["room"]

    on(spec_of(tmp_path, code), test)


def test_cancel_of_one_that_is_not_its_own(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        (job,) = bench.predict(b"x")
        await until(lambda: job.done)
        bench.group.runner.cancel(job)
        bench.group.runner.cancel(make_job())
        assert await bench.answers(b"y") == [[200, b"y", "end"]]

    on(spec_of(tmp_path, "echo"), test)


def test_all_are_cancelled_with_the_reason(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        jobs = bench.predict(b"/dev/null") + bench.predict(b"x")
        why = WorkerDied("The server ends.")
        bench.group.runner.cancel_all(why)
        assert [error_of(job) for job in jobs] == [why, why]

    on(spec_of(tmp_path, "hang"), test)


# -- async handlers --


def test_an_async_handler_has_many_at_once(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def test(bench: Bench) -> None:
        group = bench.group
        assert group.runner.is_async
        assert (group.runner.room(), group.runner.room_to_join) == (3, 0)
        slow = [make_job(body=b'{"seconds": 600, "mark": "%s"}' % str(mark).encode()) for _ in range(2)]
        for job in slow:
            job.fields[0] = structs.replace(job.fields[0], content_type="application/json")
        bench.predict(*slow)
        assert group.runner.room() == 1
        quick = make_job(body=b"{}")
        quick.fields[0] = structs.replace(quick.fields[0], content_type="application/json")
        bench.predict(quick)
        await until(lambda: quick.done)
        assert quick.status == 200
        assert group.runner.room() == 1
        await until(lambda: lines_of(mark) == ["started", "started"])
        slow[0].cancel()
        await until(lambda: group.runner.room() == 2)
        assert lines_of(mark)[-1] == "cancelled"
        assert [size for size, _, _ in bench.owner.batches] == [1, 1]

    on(spec_of(tmp_path, "async_echo", max_concurrent=3), test)


# -- it does not start --


def ends(spec: GroupSpec) -> Any:
    """Why it did not load."""

    async def call() -> Any:
        bench = Bench(spec, folder_of(spec))
        end = await bench.group.start()
        assert end is not None
        assert bench.owner.told == ["ended"]
        assert await bench.group.wait_ended() is end
        assert not bench.folder.exists() or not any(bench.folder.iterdir())
        assert not any(psutil.pid_exists(rank.pid) for rank in bench.launched)
        return end

    return run(call(), "uvloop")


def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    end = ends(spec_of(tmp_path, "raises_in_init"))
    assert end.reason.startswith("The model could not be loaded: ")
    assert "weights.ckpt is not in the archive" in end.reason
    assert "raises_in_init" in end.traceback or "initialize" in end.traceback
    assert not end.expected


def test_a_model_that_takes_too_long_to_load(tmp_path: Path) -> None:
    code = "import threading\nthreading.Event().wait()\n"
    end = ends(spec_of(tmp_path, code, startup_timeout=0.8))
    assert re.fullmatch(
        r"The model was not loaded within startupTimeout \(0\.8 s; it was (importing the handler|starting the process)"
        r"\): raise startupTimeout in model-config\.yaml if it needs longer\.",
        end.reason,
    )


def test_a_worker_that_dies_while_it_loads(tmp_path: Path) -> None:
    code = "import os, sys\nprint('no licence', file=sys.stderr, flush=True)\nos._exit(3)\n"
    end = ends(spec_of(tmp_path, code))
    assert end.reason.startswith("Rank 0 (pid ")
    assert end.reason.endswith("exited with code 3. Its last words: no licence")


def test_a_worker_from_which_the_archive_hides_a_module(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "import os\nos._exit(1)\n")
    (Path(spec.ranks[0].load.model_dir) / "types.py").write_text("")
    words = "types.py has the name of Python's module types, and hides it from all that import that: rename the file"
    assert ends(spec).reason.endswith(f"exited with code 1. ({words}.)")


def test_a_process_that_cannot_be_started(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "echo")
    end = ends(dataclasses.replace(spec, python="/nowhere/python"))
    assert end.reason.startswith("The worker's process could not be started: ")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_one_that_is_stopped_while_its_processes_start(tmp_path: Path, ranks: int) -> None:
    async def test() -> None:
        children = set(children_of(os.getpid()))
        bench = Bench(ranks_of(spec_of(tmp_path, "echo"), ranks), tmp_path)
        start = asyncio.ensure_future(bench.group.start())
        while not set(children_of(os.getpid())) - children:
            await asyncio.sleep(0)  # the first process has been started, and none of the others
        await asyncio.gather(bench.group.drain(0), start)
        await bench.group.wait_ended()
        assert (await start) is not None
        assert not any(bench.folder.iterdir())
        assert not set(children_of(os.getpid())) - children

    run(test(), "uvloop")


# -- it ends --


def dies(tmp_path: Path, body: bytes) -> tuple[Bench, list[Job], Any]:
    """One running job ends the worker; two more wait behind it."""
    kept: list[Any] = []

    async def test(bench: Bench) -> None:
        jobs = bench.predict(body) + bench.predict(b"second", b"third")
        end = await bench.group.wait_ended()
        kept.extend([bench, jobs, end])

    on(spec_of(tmp_path, "crash"), test)
    bench, jobs, end = kept
    return bench, jobs, end


@pytest.mark.parametrize(
    ("way", "status", "words"),
    [
        (b"exit", 500, "exited with code 3."),
        (b"kill", 507, "was ended by signal 9 (SIGKILL)."),
        (b"segfault", 500, "was ended by signal 11 (SIGSEGV)."),
    ],
)
def test_running_jobs_fail_and_waiting_jobs_go_back(tmp_path: Path, way: bytes, status: int, words: str) -> None:
    bench, (running, *waiting), end = dies(tmp_path, way)
    assert isinstance(error_of(running), WorkerDied)
    assert error_of(running).status == status
    assert words in error_of(running).message
    assert error_of(running).message.startswith(worker_died("Rank 0 (pid "))
    assert end.out_of_memory == (status == 507)
    assert bench.owner.returned == waiting
    assert not any(job.done or job.group for job in waiting)
    assert bench.owner.told == ["ended"]


def test_a_cancelled_job_does_not_go_back(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        bench.predict(b"/dev/null")
        stays, leaves = bench.predict(b"x", b"y")
        leaves.cancel()
        os.kill(bench.group.ranks.leader.pid, signal.SIGKILL)
        await bench.group.wait_ended()
        assert bench.owner.returned == [stays]

    on(spec_of(tmp_path, "hang"), test)


def test_a_batch_that_was_begun_after_another_fails_too(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"""
import time
def handle(data, context):
    if data is None:
        return
    open({str(mark)!r}, "a").write("x\\n")
    while not context.cancelled(0) and data[0]["body"] == b"wait":
        time.sleep(0.005)
    while data[0]["body"] == b"hang":
        time.sleep(1)
    return [b"" for _ in data]
"""

    async def test(bench: Bench) -> None:
        (first,), (second,) = bench.predict(b"wait"), bench.predict(b"hang")
        await until(lambda: lines_of(mark))
        first.cancel()
        await until(lambda: len(lines_of(mark)) == 2)
        await until(lambda: bench.group.runner.busy == 1)
        os.kill(bench.group.ranks.leader.pid, signal.SIGKILL)
        await bench.group.wait_ended()
        assert error_of(second).status == 507
        assert bench.owner.returned == []

    on(spec_of(tmp_path, code), test)


def test_no_response_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)

    async def test(bench: Bench) -> None:
        (running,), (waiting,) = bench.predict(b"/dev/null"), bench.predict(b"x")
        end = await bench.group.wait_ended()
        assert (end.reason, end.unanswered) == (did_not_respond("0.3 s"), True)
        assert bench.group.ended_by is end
        assert isinstance(error_of(running), WorkerTimedOut)
        assert bench.owner.returned == [waiting]

    on(spec_of(tmp_path, "hang", response_timeout=0.3), test)


def test_a_stream_that_goes_on_is_a_response(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)
    code = """
import time
def handle(data, context):
    for n in range(20):
        time.sleep(0.15)
        yield [str(n)]
"""

    async def test(bench: Bench) -> None:
        (events,) = await bench.answers(b"")
        assert events[-1] == "end"

    on(spec_of(tmp_path, code, response_timeout=2.5), test)


SENDS = """
def handle(data, context):
    for n in range(20):
        yield ["x" * 100 for _ in data or ()]
"""


def paced(spec: GroupSpec) -> GroupSpec:
    """A client may have 250 bytes waiting."""
    spec.load.stream_credit = 250
    return dataclasses.replace(spec, stream_buffers=StreamBuffers(250))


def streamed(bench: Bench) -> ReplyBuffer:
    reply = ReplyBuffer()
    (reply.job,) = bench.predict(make_job(sink=reply))
    return reply


async def whole(reply: ReplyBuffer) -> bytes:
    return b"".join([chunk async for chunk in reply])


def test_a_handler_that_waits_for_its_client_is_not_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)

    async def test(bench: Bench) -> None:
        runner, reply = bench.group.runner, streamed(bench)
        assert not runner.held_up
        await reply.head()
        await until(lambda: runner.held_up)
        assert runner.waiting_streams == 1
        late = time.monotonic() + 1.5 * bench.group.spec.response_timeout
        await until(lambda: runner.progressed > late)
        assert await whole(reply) == b"x" * 2000
        reply.close()
        assert not runner.held_up

    on(paced(spec_of(tmp_path, SENDS, response_timeout=1)), test)


def test_a_group_waits_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other ranks are asked for the next step after that; they are not waited for meanwhile."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)

    async def test(bench: Bench) -> None:
        runner, reply = bench.group.runner, streamed(bench)
        await reply.head()
        await until(lambda: runner.held_up)
        late = time.monotonic() + 1.5 * bench.group.spec.rank_skew_timeout
        await until(lambda: runner.progressed > late)
        assert await whole(reply) == b"x" * 2000
        reply.close()

    on(paced(ranks_of(spec_of(tmp_path, SENDS, rank_skew_timeout=1), 2)), test)


def test_what_one_rank_of_a_group_sends_by_itself_waits_for_nobody(tmp_path: Path) -> None:
    """The others would go on without it, and wait for it in the next collective."""
    code = """
def handle(data, context):
    for n in range(20):
        context.send(["x" * 100 for _ in data or ()])
    return [""] * len(data or ())
"""

    async def test(bench: Bench) -> None:
        reply = streamed(bench)
        await reply.head()
        await until(lambda: bench.group.runner.idle)
        assert await whole(reply) == b"x" * 2000
        reply.close()

    on(paced(ranks_of(spec_of(tmp_path, code), 2)), test)


def test_what_is_passed_on_at_once_holds_nothing_up(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        ((*_, last),) = await bench.answers(b"")
        assert last == "end"

    on(paced(spec_of(tmp_path, SENDS)), test)


def test_a_batch_waits_for_none_as_long_as_one_reads(tmp_path: Path) -> None:
    """The slow client has all that the other has read."""

    async def test(bench: Bench) -> None:
        slow, fast = ReplyBuffer(), ReplyBuffer()
        slow.job, fast.job = bench.predict(make_job(sink=slow), make_job(sink=fast))
        await slow.head()
        assert await whole(fast) == b"x" * 2000
        await until(lambda: bench.group.runner.idle)
        assert await whole(slow) == b"x" * 2000
        slow.close()
        fast.close()

    on(paced(spec_of(tmp_path, SENDS)), test)


def test_an_idle_worker_that_answers_no_ping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)

    async def test(bench: Bench) -> None:
        await bench.answers(b"x")
        monkeypatch.setattr(heartbeat, "MISSED_HEARTBEAT", 0.3)
        os.kill(bench.group.ranks.leader.pid, signal.SIGSTOP)
        end = await bench.group.wait_ended()
        assert end.reason.startswith("The worker missed its heartbeat for 0.3 s")

    on(spec_of(tmp_path, "echo"), test)


class TakesOver(Bench):
    """Its worker was started by a frontend before this one."""

    stopped = False

    async def launch(self, spec: GroupSpec) -> list[LocalRank]:
        for rank in await super().launch(spec):
            rank.release = "1.0"
            if self.stopped:
                os.kill(rank.pid, signal.SIGSTOP)
        return self.launched


@pytest.mark.parametrize("stopped", [True, False])
def test_one_that_is_taken_over_has_as_long_as_a_call_unless_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)
    if stopped:
        monkeypatch.setattr(heartbeat, "MISSED_HEARTBEAT", 0.3)
    code = "import threading\nthreading.Event().wait()\n"

    async def call(limit: float) -> group_end.GroupEnd | None:
        times = {"response_timeout": limit, "startup_timeout": 60.0 if stopped else 5 * limit}
        bench = TakesOver(spec_of(tmp_path, code, **times), tmp_path)
        bench.stopped = stopped
        try:
            return await bench.group.start()
        finally:
            await bench.group.drain(0)

    reason = ""
    for limit in (0.3, 3.0, 20.0):  # on a busy machine one that loads may be silent for as long
        end = run(call(limit), "uvloop")
        reason = "" if end is None else end.reason
        if (f"within responseTimeout ({limit:g} s)" if stopped else "within startupTimeout") in reason:
            return
    raise AssertionError(reason)


def test_an_idle_worker_that_answers_pings_lives_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.02)
    monkeypatch.setattr(heartbeat, "MISSED_HEARTBEAT", 2.0)

    async def test(bench: Bench) -> None:
        start = time.monotonic()
        await until(lambda: time.monotonic() - start > 2.2)
        assert bench.group.state is GroupState.READY

    on(spec_of(tmp_path, "echo"), test)


# -- drain --


def waits_for(gate: Path) -> str:
    """A handler that answers when the file is there."""
    return f"""
import os, time
def handle(data, context):
    while data and not os.path.exists({str(gate)!r}):
        time.sleep(0.005)
    return [row["body"] for row in data or []]
"""


def test_drain_lets_both_batches_finish(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def test(bench: Bench) -> None:
        jobs = bench.predict(b"a") + bench.predict(b"b", b"c")
        draining = asyncio.ensure_future(bench.group.drain(30))
        await until(lambda: bench.group.state is GroupState.DRAINING)
        assert (bench.group.runner.room(), bench.group.runner.room(ahead=1)) == (0, 0)
        gate.touch()
        await draining
        assert [job.status for job in jobs] == [200, 200, 200]
        assert (await bench.group.wait_ended()).expected

    on(spec_of(tmp_path, waits_for(gate)), test)


def test_drain_does_not_wait_beyond_its_limit(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        (running,), (waiting,) = bench.predict(b"/dev/null"), bench.predict(b"x")
        await bench.group.drain(0.05)
        assert error_of(running).message == worker_died("The worker was told to stop.")
        assert bench.owner.returned == [waiting]

    on(spec_of(tmp_path, "hang"), test)


def test_a_drain_without_a_limit_gets_one_by_a_second_call(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        (running,) = bench.predict(b"/dev/null")
        draining = asyncio.ensure_future(bench.group.drain(None))
        await until(lambda: bench.group.state is GroupState.DRAINING)
        await bench.group.drain(0.05)
        await draining
        assert error_of(running).message == worker_died("The worker was told to stop.")

    on(spec_of(tmp_path, "hang"), test)


def test_a_second_call_to_drain_cuts_nothing_short(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def test(bench: Bench) -> None:
        (job,) = bench.predict(b"a")
        first = asyncio.ensure_future(bench.group.drain(None))
        await until(lambda: bench.group.state is GroupState.DRAINING)
        second = asyncio.ensure_future(bench.group.drain(30))
        await asyncio.sleep(0)
        gate.touch()
        await asyncio.gather(first, second)
        assert job.status == 200

    on(spec_of(tmp_path, waits_for(gate)), test)


def test_a_group_that_is_drained_for_a_reason_ends_with_it(tmp_path: Path) -> None:
    reason = group_end.device_lost("device 3 is unhealthy (Critical)")

    async def idle(bench: Bench) -> None:
        await bench.group.drain(10, reason)
        assert await bench.group.wait_ended() is reason

    async def running(bench: Bench) -> None:
        (job,) = bench.predict(b"/dev/null")
        await bench.group.drain(0.05, reason)
        told = worker_died("The worker had to leave its devices: device 3 is unhealthy (Critical).")
        assert error_of(job).message == told

    on(spec_of(tmp_path, "echo"), idle)
    on(spec_of(tmp_path, "hang"), running)


def test_drain_may_be_called_twice_and_after_the_end(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await asyncio.gather(bench.group.drain(10), bench.group.drain(10))
        await bench.group.drain(10)
        assert bench.owner.told == ["ended"]
        assert bench.group.memory == 0

    on(spec_of(tmp_path, "echo"), test)


def test_no_socket_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        before = open_descriptors()
        async with bench_of(spec_of(tmp_path, "echo"), tmp_path) as bench:
            await bench.answers(b"x")
        await until(lambda: not [one for one in open_descriptors() - before if one[1].startswith("socket")])

    run(test(), "uvloop")


GROWS = """
import threading
held = []
def handle(data, context):
    for row in data:
        held.append(bytearray(int(row["body"])))
    threading.Event().wait()  # until it is killed, however late a busy machine sees what it holds
"""


def test_a_worker_that_takes_more_memory_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "LOOK", 0.01)

    async def test(bench: Bench) -> None:
        limit = bench.group.spec.max_memory or 0
        (job,) = bench.predict(str(2 * limit).encode())
        end = await bench.group.wait_ended()
        assert end.out_of_memory
        assert re.match(
            r"Rank 0 \(pid \d+\) was ended: it had taken \d{3,} MiB of memory, and maxWorkerMemory lets it have 200 "
            r"MiB\. Raise maxWorkerMemory in model-config\.yaml \(or the server's max_worker_memory\)",
            end.reason,
        )
        assert error_of(job).status == 507
        assert error_of(job).message == worker_died(end.reason)

    on(spec_of(tmp_path, GROWS, max_memory=200 << 20), test)


def test_a_model_that_takes_too_much_memory_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "LOOK", 0.01)
    code = "import threading\nheld = bytearray(300 << 20)\nthreading.Event().wait()\n"
    end = ends(spec_of(tmp_path, code, max_memory=200 << 20))
    assert "and maxWorkerMemory lets it have 200 MiB" in end.reason
    assert end.error.status == 507
