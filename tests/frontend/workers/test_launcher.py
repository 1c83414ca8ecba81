"""A replica and its groups on a launcher without processes: nothing else knows what a rank runs as."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from msx_core.config import ModelConfig
from msx_core.service_errors import WorkerDied
from msx_frontend.devices.lease import Lease
from msx_frontend.job import Job
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.workers import load_errors
from msx_frontend.workers.backoff import Backoff
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.in_flight import Finished
from msx_frontend.workers.launcher import ExitStatus, GroupSpec, RankSpec
from msx_frontend.workers.replica import Replica, ReplicaState
from msx_protocol import Broken, LoadProgress, MetricInfo, MetricSample
from tests.frontend.jobs import error_of, make_job, sink_of
from tests.frontend.workers.fake_launcher import MEMORY, PID, FakeLauncher, FakeRank, spec_of
from tests.frontend.workers.test_replica import resources_of
from tests.loops import run
from tests.phrases import worker_died

FOLDER = Path(__file__).parents[3] / "frontend" / "msx_frontend" / "workers"


class Recipe:
    def __init__(self, launcher: FakeLauncher, ranks: int = 1) -> None:
        self.launcher = launcher
        self.ranks = ranks

    async def prepare(self) -> None: ...

    def spec(self, lease: Lease, worker: int, generation: int) -> GroupSpec:
        return spec_of(self.ranks, worker=worker, generation=generation)

    def runs(self, lease: Lease, worker: int, generation: int) -> bool:
        return False


class Owner:
    """Owner of the replica and its groups."""

    def __init__(self) -> None:
        self.returned: list[Job] = []
        self.ended: list[WorkerGroup] = []

    def replica_changed(self, replica: Replica) -> None: ...

    def replica_leaves(self, replica: Replica) -> None: ...

    def refusal(self, group: WorkerGroup) -> str:
        return ""

    def group_has_room(self, group: BatchRunner) -> None: ...

    def group_replied(self, group: WorkerGroup) -> None: ...

    def group_ended(self, group: WorkerGroup) -> None:
        self.ended.append(group)

    def batches_finished(self, batches: list[Finished]) -> None: ...

    def jobs_returned(self, jobs: list[Job]) -> None:
        self.returned += jobs

    def guests_arrived(self, group: BatchRunner, jobs: Sequence[Job]) -> None: ...

    def forms_arrived(self, forms: list[MetricInfo]) -> None: ...

    def samples_arrived(self, group: WorkerGroup, samples: list[MetricSample]) -> None: ...


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0)


@asynccontextmanager
async def replica_of(launcher: FakeLauncher, ranks: int = 1) -> AsyncIterator[tuple[Replica, Owner]]:
    owner, metrics = Owner(), ModelMetrics(ServerMetrics(), "m", "1.0")
    claim = resources_of(0).claim("m:1.0", ModelConfig(), lambda: None)
    replica = Replica(9000, claim, Recipe(launcher, ranks), Backoff(100), owner, metrics)
    try:
        yield replica, owner
    finally:
        await replica.stop(0)
        assert all(rank.ended.done() for group in launcher.groups for rank in group)


def predict(replica: Replica, *bodies: bytes) -> list[Job]:
    assert replica.group is not None
    jobs = [make_job(body=body) for body in bodies]
    replica.group.runner.predict(jobs)
    replica.group.runner.flush()
    replica.group.runner.flush()
    return jobs


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_replica_from_start_to_end(ranks: int) -> None:
    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher, ranks) as (replica, owner):
            await until(lambda: replica.state is ReplicaState.READY)
            group = replica.group
            assert group is not None
            assert (group.pid, group.memory, group.own_memory) == (PID, ranks * MEMORY, ranks * MEMORY)
            assert [rank.describe()["pid"] for rank in group.ranks] == [PID + rank for rank in range(ranks)]
            one, two = predict(replica, b"one", b"two")
            leader, *others = launcher.ranks
            assert [body for _, body in leader.requests.values()] == [b"one", b"two"]
            assert not any(other.requests for other in others)
            leader.answer()
            assert [sink_of(job).events for job in (one, two)] == [[200, b"one", "end"], [200, b"two", "end"]]
        assert owner.ended == [group]
        assert (group.pid, group.memory) == (None, 0)
        assert replica.state is ReplicaState.STOPPED

    run(test())


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_group_without_a_process_has_no_pid(ranks: int) -> None:
    """Not 0 either, which `kill` takes for its caller's own group; and not that of a process that has ended."""

    async def test() -> None:
        launcher = FakeLauncher()
        launcher.may_start.clear()
        async with replica_of(launcher, ranks) as (replica, _):
            await until(lambda: launcher.specs)
            group = replica.group
            assert group is not None
            assert group.pid is None
            assert not any("pid" in rank.describe() for rank in group.ranks)
            launcher.may_start.set()
            await until(lambda: replica.state is ReplicaState.READY)
            assert group.pid == PID
            launcher.ranks[-1].end(3)
            await until(lambda: group.ranks[ranks - 1].exited)
            described = group.ranks[ranks - 1].describe()
            assert (described["state"], "pid" in described) == ("ENDED", False)

    run(test())


def test_a_crash_and_the_next_generation() -> None:
    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher) as (replica, owner):
            await until(lambda: replica.state is ReplicaState.READY)
            (running,) = predict(replica, b"x")
            (waiting,) = predict(replica, b"y")
            launcher.ranks[0].stderr.say(b"out of cards\n")
            launcher.ranks[0].end(3)
            await until(lambda: len(launcher.groups) == 2 and replica.state is ReplicaState.READY)
            words = f"Rank 0 (pid {PID}) exited with code 3. Its last words: out of cards"
            assert error_of(running).message == worker_died(words)
            assert owner.returned == [waiting]
            assert replica.last_end is not None
            assert replica.last_end.reason == words
            assert [(spec.worker, spec.generation) for spec in launcher.specs] == [(9000, 1), (9000, 2)]

    run(test())


@pytest.mark.parametrize(("ranks", "named"), [(1, ""), (2, " because of rank 1")])
def test_a_rank_that_cannot_serve_any_more_is_replaced(ranks: int, named: str) -> None:
    """Requests that wait behind the failing call are served by the next group, as after a crash."""

    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher, ranks) as (replica, owner):
            await until(lambda: replica.state is ReplicaState.READY)
            (running,) = predict(replica, b"x")
            (waiting,) = predict(replica, b"y")
            launcher.ranks[-1].say(Broken("no call succeeds after Error: no context"))
            await until(lambda: len(launcher.groups) == 2 and replica.state is ReplicaState.READY)
            words = f"The worker is replaced{named}: no call succeeds after Error: no context."
            assert error_of(running).message == worker_died(words)
            assert error_of(running).status == 500
            assert owner.returned == [waiting]
            assert replica.last_end is not None
            assert replica.last_end.reason == words
            assert all(rank.ended.result().code == -9 for rank in launcher.groups[0])

    run(test())


def test_a_rank_whose_node_is_lost() -> None:
    """Output of its last moments is not waited for, and nobody says that it was killed."""

    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher) as (replica, _):
            await until(lambda: replica.state is ReplicaState.READY)
            (running,) = predict(replica, b"x")
            launcher.ranks[0].ended.set_result(ExitStatus(-9, "node node-a has not answered for 15 s"))
            await until(lambda: running.done)
            assert error_of(running).message == worker_died("Rank 0 was lost: node node-a has not answered for 15 s.")
            assert error_of(running).status == 500

    run(test())


def test_a_cancel_reaches_the_rank() -> None:
    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher) as (replica, _):
            await until(lambda: replica.state is ReplicaState.READY)
            (job,) = predict(replica, b"x")
            job.cancel()
            assert launcher.ranks[0].cancelled == [job.number]

    run(test())


def test_a_drain_waits_for_what_runs() -> None:
    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher) as (replica, _):
            await until(lambda: replica.state is ReplicaState.READY)
            (job,) = predict(replica, b"x")
            stopped = asyncio.ensure_future(replica.stop(30))
            await until(lambda: launcher.ranks[0].draining)
            launcher.ranks[0].answer()
            await stopped
            assert job.status == 200
            assert replica.last_end is not None
            assert replica.last_end.expected

    run(test())


def test_what_was_read_before_the_end_counts() -> None:
    """The launcher may tell the end of a rank before its last reply has arrived."""

    async def test() -> None:
        launcher = FakeLauncher()
        async with replica_of(launcher) as (replica, owner):
            await until(lambda: replica.state is ReplicaState.READY)
            (job,) = predict(replica, b"x")
            rank = launcher.ranks[0]
            rank.ended.set_result(ExitStatus(code=0))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not owner.ended
            rank.answer()
            rank.data.end()
            await until(lambda: owner.ended)
            assert job.status == 200

    run(test())


def test_a_group_whose_ranks_cannot_be_started() -> None:
    async def test() -> None:
        launcher, owner = FakeLauncher(), Owner()
        launcher.refusal = OSError("no more machines")
        group = WorkerGroup(spec_of(2), launcher, owner)
        end = await group.start()
        assert end is not None
        assert end.reason == "The worker's process could not be started: no more machines."
        assert (group.pid, group.memory, owner.ended) == (None, 0, [group])
        await group.wait_ended()

    run(test())


def test_a_group_that_is_stopped_while_it_is_launched_ends_the_launch() -> None:
    """It may take long: a launcher of several machines waits for them."""

    async def test() -> None:
        launcher, owner = FakeLauncher(), Owner()
        launcher.may_start.clear()
        group = WorkerGroup(spec_of(), launcher, owner)
        start = asyncio.ensure_future(group.start())
        await until(lambda: launcher.specs)
        await group.drain(0)
        assert await start == await group.wait_ended()
        assert launcher.cancelled == 1
        assert launcher.groups == []

    run(test())


def test_a_group_that_is_stopped_when_its_ranks_have_just_been_started_kills_them() -> None:
    async def test() -> None:
        launcher = FakeLauncher()
        group = WorkerGroup(spec_of(2), launcher, Owner())
        start = asyncio.ensure_future(group.start())
        await until(lambda: launcher.groups)
        await asyncio.gather(group.drain(0), start)
        await group.wait_ended()
        assert [rank.ended.result().code for rank in launcher.ranks] == [-9, -9]

    run(test())


def test_a_rank_that_has_ended_before_it_is_connected() -> None:
    class Stillborn(FakeRank):
        def __init__(self, spec: RankSpec) -> None:
            super().__init__(spec)
            self.end(1)

    async def test() -> None:
        group = WorkerGroup(spec_of(), FakeLauncher(Stillborn), Owner())
        end = await group.start()
        assert end is not None
        assert end.reason == f"Rank 0 (pid {PID}) exited with code 1."
        assert await group.wait_ended() is end

    run(test())


def test_what_a_rank_says_while_it_loads_is_seen() -> None:
    class Slow(FakeRank):
        def begin_to_load(self) -> None:
            self.say(LoadProgress("reading the weights"))

    async def test() -> None:
        launcher = FakeLauncher(Slow)
        group = WorkerGroup(spec_of(), launcher, Owner())
        start = asyncio.ensure_future(group.start())
        await until(lambda: group.phase == "reading the weights")
        assert group.state is GroupState.LOADING
        launcher.ranks[0].fail_to_load("no weights", "Traceback")
        end = await start
        assert end is not None
        assert (end.reason, end.traceback) == ("The model could not be loaded: no weights", "Traceback")
        assert isinstance(end.error, WorkerDied)
        await group.wait_ended()

    run(test())


def test_nothing_is_started_or_opened_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, socket, pipe or folder; the process table is not read either."""
    places = (subprocess, "Popen"), (socket, "socketpair"), (psutil, "Process"), (Path, "mkdir")
    calls = (os, "pipe"), (os, "kill"), (os, "killpg")

    async def test() -> None:
        for owner, name in (*places, *calls):
            monkeypatch.setattr(owner, name, _forbidden)
        async with replica_of(launcher := FakeLauncher()) as (replica, _):
            await until(lambda: replica.state is ReplicaState.READY)
            predict(replica, b"x")
            launcher.ranks[0].end(-11)
            await until(lambda: len(launcher.groups) == 2)

    run(test())


def _forbidden(*args: object, **options: object) -> None:
    pytest.fail("a group knows what its ranks run as")


LOCAL = {
    *("confine", "confinement", "local", "local_rank", "local_streams", "own_memory", "shared_files", "worker_process"),
    *("group_handover", "guests", "handed_group", "handover_line", "kept_groups", "stage_sharing"),  # sockets go over
}


def test_only_the_local_launcher_knows_processes() -> None:
    words = ("import subprocess", "import socket", "import psutil", "import signal", "os.kill", "/proc/", "os.pipe")
    knowing = {file.stem for file in FOLDER.glob("*.py") if any(word in file.read_text() for word in words)}
    assert knowing - {"group_end"} <= LOCAL, "group_end names signals by their numbers"


class SlowRank(FakeRank):
    """Loads until the test says how that ends."""

    began = False

    def begin_to_load(self) -> None:
        self.began = True
        self.say(LoadProgress("initializing"))


async def loading(launcher: FakeLauncher) -> list[FakeRank]:
    await until(lambda: launcher.groups and all(rank.began for rank in launcher.ranks if isinstance(rank, SlowRank)))
    return launcher.ranks


def test_a_rank_that_was_killed_is_the_cause_of_what_the_others_raise() -> None:
    """Their collectives break with it, and they say so before its end is known."""

    async def test() -> None:
        launcher = FakeLauncher(SlowRank)
        async with replica_of(launcher, ranks=3) as (replica, _):
            ranks = await loading(launcher)
            ranks[0].fail_to_load("connection reset by peer", "Traceback")
            ranks[0].end(1)
            await asyncio.sleep(0)
            assert replica.last_end is None
            ranks[1].end(-signal.SIGKILL)
            await until(lambda: replica.last_end)
            assert replica.last_end is not None
            assert replica.last_end.brief == "rank 1: killed by SIGKILL, perhaps out of memory"
            assert replica.excused

    run(test())


def test_an_error_of_all_ranks_is_told_at_once() -> None:
    async def test() -> None:
        launcher = FakeLauncher(SlowRank)
        async with replica_of(launcher, ranks=2) as (replica, _):
            for number, rank in enumerate(await loading(launcher)):
                rank.fail_to_load(f"no weights {number}", "Traceback")
            await until(lambda: replica.last_end)
            assert replica.last_end is not None
            assert replica.last_end.brief == "rank 0: no weights 0"

    run(test())


def test_an_error_of_one_rank_alone_is_told_when_no_other_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_errors, "PATIENCE", 0.001)

    async def test() -> None:
        launcher = FakeLauncher(SlowRank)
        async with replica_of(launcher, ranks=2) as (replica, _):
            ranks = await loading(launcher)
            ranks[1].fail_to_load("no weights", "Traceback")
            ranks[1].end(1)
            await until(lambda: replica.last_end)
            assert replica.last_end is not None
            assert replica.last_end.brief == "rank 1: no weights"

    run(test())
