"""One worker as an operator counts them: generations, back-off, giving up, stopping. The groups here only pretend."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from unittest.mock import patch

import pytest

from msx_core.config import ModelConfig
from msx_frontend.devices.lease import Lease
from msx_frontend.management_errors import RequirementsFailed
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.resources import starts
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.processes import Processes
from msx_frontend.resources.starts import Starts
from msx_frontend.workers import group_end, replica
from msx_frontend.workers.backoff import Backoff
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.launcher import GroupSpec, Launcher
from msx_frontend.workers.replica import Replica, ReplicaOwner, ReplicaState
from msx_protocol import LoadFailed
from tests.frontend.devices.fake_accelerator import npu_pool
from tests.frontend.workers.fake_launcher import FakeLauncher, spec_of
from tests.loops import run

DIED = group_end.exited(0, 1, 3, "")
STOPPED = group_end.asked_to_stop()


class FakeGroup(WorkerGroup):
    """Loads when the test says so, and ends when it says so."""

    def __init__(self, spec: GroupSpec, launcher: Launcher, owner: ReplicaOwner) -> None:
        super().__init__(spec, launcher, owner)
        self.load_seconds = 0.5
        self.loaded: asyncio.Future[GroupEnd | None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[GroupEnd] = asyncio.get_running_loop().create_future()
        self.drained_for: list[float | None] = []

    async def start(self) -> GroupEnd | None:
        return await asyncio.shield(self.loaded)

    async def wait_ended(self) -> GroupEnd:
        return await asyncio.shield(self.ended)

    async def drain(self, limit: float | None, end: GroupEnd | None = None) -> None:
        self.drained_for.append(limit)
        self.end(end or STOPPED)
        await asyncio.sleep(0)

    def load(self) -> None:
        self.loaded.set_result(None)

    def end(self, end: GroupEnd = DIED) -> None:
        if not self.loaded.done():
            self.loaded.set_result(end)
        if not self.ended.done():
            self.ended.set_result(end)


class Recipe:
    """Recipe whose missing parts do nothing."""

    def __init__(
        self,
        made: Callable[[int], None] = lambda generation: None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.launcher = FakeLauncher()
        self._made, self._prepare = made, prepare
        self.running = 0
        """Generation that runs already."""

    async def prepare(self) -> None:
        if self._prepare is not None:
            await self._prepare()

    def spec(self, lease: Lease, worker: int, generation: int) -> GroupSpec:
        self._made(generation)
        return spec_of(worker=worker, generation=generation)

    def runs(self, lease: Lease, worker: int, generation: int) -> bool:
        return generation == self.running


class Owner:
    def __init__(self) -> None:
        self.states: list[ReplicaState] = []
        self.room: list[BatchRunner] = []
        self.changed = asyncio.Event()
        self.refused = ""

    def replica_changed(self, replica: Replica) -> None:
        self.states.append(replica.state)
        self.changed.set()

    def group_has_room(self, group: BatchRunner) -> None:
        self.room.append(group)

    def refusal(self, group: WorkerGroup) -> str:
        return self.refused


class FakeBackoff:
    """Pauses as the test wants them; then None: give up."""

    def __init__(self, *pauses: float) -> None:
        self.pauses, self.calls = list(pauses), list[str]()

    def pause(self) -> None:
        self.counting = False

    def resume(self) -> None:
        self.counting = True

    def ready(self) -> None:
        self.calls.append("ready")

    def reset(self) -> None:
        self.calls.append("reset")

    def failed(self) -> float | None:
        self.calls.append("failed")
        return self.pauses.pop(0) if self.pauses else None


def resources_of(npus: int, available: Callable[[], int] = lambda: 1 << 40) -> Resources:
    return Resources(npu_pool(npus), Processes(64), Starts(8, available))


class Bench:
    def __init__(
        self,
        *pauses: float,
        backoff: Any = None,
        recipe: Recipe | None = None,
        resources: Resources | None = None,
        config: ModelConfig | None = None,
        sibling: Callable[[], int | None] = lambda: None,
        **more: Any,
    ) -> None:
        self.owner, self.backoff = Owner(), backoff or FakeBackoff(*pauses)
        self.resources = resources or resources_of(0)
        self.server_metrics = ServerMetrics()
        self.replica = Replica(
            9000,
            self.resources.claim("m:1.0", config or ModelConfig(), sibling),
            recipe or Recipe(),
            cast(Backoff, self.backoff),
            cast(ReplicaOwner, self.owner),
            ModelMetrics(self.server_metrics, "m", "1.0"),
            **more,
        )

    @property
    def restarts(self) -> float | None:
        return self.server_metrics.registry.get_sample_value(
            "msx_worker_restarts_total", {"model": "m", "version": "1.0"}
        )

    async def group(self, generation: int = 1) -> FakeGroup:
        while self.replica.group is None or self.replica.generation != generation:
            await asyncio.sleep(0)
        return cast(FakeGroup, self.replica.group)

    async def until(self, state: ReplicaState) -> None:
        while self.replica.state is not state:
            self.owner.changed.clear()
            await self.owner.changed.wait()


@asynccontextmanager
async def bench_of(*pauses: float, **options: Any) -> AsyncIterator[Bench]:
    bench = Bench(*pauses, **options)
    yield bench
    await bench.replica.stop(0)
    assert bench.replica.state in (ReplicaState.STOPPED, ReplicaState.FAILED)


@pytest.fixture(autouse=True)
def _fake_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "WorkerGroup", FakeGroup)


def test_a_worker_whose_group_has_not_started_has_taken_no_memory() -> None:
    async def test() -> None:
        async with bench_of() as bench:
            assert bench.replica.group is None
            assert bench.replica.own_memory() == 0

    run(test())


def test_from_start_to_stop() -> None:
    async def test() -> None:
        async with bench_of() as bench:
            assert bench.replica.state is ReplicaState.STARTING
            group = await bench.group()
            group.load()
            await bench.until(ReplicaState.READY)
            assert bench.owner.room == [group.runner]
            await bench.replica.stop(12)
            assert group.drained_for == [12]
        assert bench.owner.states == [ReplicaState.READY, ReplicaState.STOPPED]
        assert bench.replica.last_end is STOPPED
        assert bench.restarts == 0

    run(test())


def test_a_group_that_ended_is_followed_by_another() -> None:
    async def test() -> None:
        async with bench_of(0.0) as bench:
            first = await bench.group()
            first.load()
            await bench.until(ReplicaState.READY)
            first.end()
            second = await bench.group(2)
            assert second is not first
            assert second.spec.generation == 2
            assert bench.replica.last_end is DIED
            second.load()
            await bench.until(ReplicaState.READY)
            assert bench.restarts == 1
        assert bench.owner.states[:3] == [ReplicaState.READY, ReplicaState.RESTARTING, ReplicaState.READY]
        assert bench.backoff.calls == ["ready", "failed", "ready"]

    run(test())


def test_it_gives_up_when_the_back_off_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with bench_of(0.0) as bench:
            for generation in (1, 2):
                (await bench.group(generation)).end()
            await bench.until(ReplicaState.FAILED)
            assert bench.replica.group is None
            assert bench.replica.last_end is DIED
        assert bench.replica.state is ReplicaState.FAILED
        assert bench.owner.states == [ReplicaState.RESTARTING, ReplicaState.FAILED]

    run(test())
    assert "worker 9000 is given up: it failed for longer than maxRetryTimeoutInSec" in caplog.messages


def test_a_worker_whose_model_may_not_serve_ends(caplog: pytest.LogCaptureFixture) -> None:
    """The next one is tried later: the other model may have gone."""

    async def test() -> None:
        async with bench_of(0.0) as bench:
            bench.owner.refused = "Model m answers /v1/embeddings."
            (await bench.group()).load()
            group = await bench.group(2)
            bench.owner.refused = ""
            group.load()
            await bench.until(ReplicaState.READY)
            assert bench.owner.states.count(ReplicaState.READY) == 1

    run(test())
    assert "worker 9000 ended: Model m answers /v1/embeddings." in caplog.messages


def test_torchserves_lines(caplog: pytest.LogCaptureFixture) -> None:
    """A worker that dies, whose successor cannot load, and the next one, which is stopped."""
    caplog.set_level(logging.INFO, "org.pytorch.serve.wlm.WorkerThread")

    async def test() -> None:
        async with bench_of(0.0, 0.0) as bench:
            group = await bench.group()
            group.load()
            await bench.until(ReplicaState.READY)
            group.end()
            (await bench.group(2)).end(group_end.load_failed(LoadFailed("no luck", "", False)))
            (await bench.group(3)).load()
            await bench.until(ReplicaState.READY)

    run(test())
    records = [record for record in caplog.records if record.name == "org.pytorch.serve.wlm.WorkerThread"]
    assert [re.sub(r"\d{13}", "MS", record.getMessage()) for record in records] == [
        "9000 Worker disconnected. WORKER_MODEL_LOADED",
        "Backend worker error: Rank 0 (pid 1) exited with code 3.",
        "Auto recovery start timestamp: MS",
        "Retry worker: 9000 in 0 seconds.",
        "9000 Worker disconnected. WORKER_STARTED",
        "Backend worker error: The model could not be loaded: no luck",
        "Auto recovery failed again",
        "Retry worker: 9000 in 0 seconds.",
        "Auto recovery succeeded, reset recoveryStartTS",
        "9000 Worker disconnected. WORKER_SCALED_DOWN",
    ]
    assert {(record.__dict__["model"], record.__dict__["worker"]) for record in records} == {("m", 9000)}


def test_the_real_back_off_by_an_injected_clock() -> None:
    now = 0.0

    async def test() -> None:
        nonlocal now
        async with bench_of(backoff=Backoff(10, clock=lambda: now)) as bench:
            (await bench.group(1)).end()
            await bench.until(ReplicaState.RESTARTING)
            now = 11.0
            (await bench.group(2)).end()
            await bench.until(ReplicaState.FAILED)

    run(test())


def test_its_pause_is_kept() -> None:
    async def test() -> None:
        async with bench_of(1000.0) as bench:
            (await bench.group()).end()
            await bench.until(ReplicaState.RESTARTING)
            for _ in range(20):
                await asyncio.sleep(0)
            assert bench.replica.generation == 1
            assert bench.replica.group is None
        assert bench.owner.states == [ReplicaState.RESTARTING, ReplicaState.STOPPED]

    run(test())


def test_why_it_ended_is_logged_with_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    end = GroupEnd("It could not be loaded.", DIED.error, traceback="Traceback: line 7")

    async def test() -> None:
        async with bench_of() as bench:
            (await bench.group()).end(end)
            await bench.until(ReplicaState.FAILED)

    run(test())
    assert "worker 9000 ended: It could not be loaded.\nTraceback: line 7" in caplog.messages


def test_a_good_reply_resets_the_back_off() -> None:
    async def test() -> None:
        async with bench_of() as bench:
            bench.replica.replied()
            assert bench.backoff.calls == ["reset"]

    run(test())


def test_it_may_be_stopped_before_its_group_exists() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.replica.stop(5)
        assert bench.replica.state is ReplicaState.STOPPED
        assert bench.replica.generation == 0

    run(test())


def test_it_may_be_stopped_while_it_loads() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.group()
        await bench.replica.stop(5)
        assert bench.owner.states == [ReplicaState.STOPPED]

    run(test())


def test_one_that_is_loaded_while_it_is_stopped_is_not_offered_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drain(group: FakeGroup, limit: float) -> None:
        await asyncio.sleep(0.001)  # it finishes what it has
        group.end(STOPPED)

    async def test() -> None:
        monkeypatch.setattr(FakeGroup, "drain", drain)
        bench = Bench()
        (await bench.group()).load()
        await bench.replica.stop(5)
        assert bench.owner.states == [ReplicaState.STOPPED]
        assert bench.owner.room == []

    run(test())


def test_what_cannot_be_started_is_a_failure_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    def made(generation: int) -> None:
        raise OverflowError("an integer of the model's config is too large")

    async def test() -> None:
        async with bench_of(recipe=Recipe(made)) as bench:
            await bench.until(ReplicaState.FAILED)
            assert bench.replica.last_end is not None
            assert "an integer of the model's config is too large" in bench.replica.last_end.reason

    run(test())
    assert any(one.levelno == logging.ERROR and one.exc_info for one in caplog.records)


def test_a_group_that_broke_off_while_it_started_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(group: FakeGroup) -> None:
        raise OverflowError("too large")

    async def test() -> None:
        monkeypatch.setattr(FakeGroup, "start", start)
        drained: list[float] = []

        async def drain(group: FakeGroup, limit: float) -> None:
            drained.append(limit)

        monkeypatch.setattr(FakeGroup, "drain", drain)
        async with bench_of() as bench:
            await bench.until(ReplicaState.FAILED)
            assert drained == [0]
            assert bench.replica.group is None

    run(test())


def test_what_is_to_be_prepared_comes_first_and_may_fail() -> None:
    order: list[str] = []

    async def prepare() -> None:
        order.append("prepare")
        if len(order) == 1:
            raise RequirementsFailed("no parcel", "pip's lines", "m")

    def made(generation: int) -> None:
        order.append(f"start {generation}")

    async def test() -> None:
        async with bench_of(0, recipe=Recipe(made, prepare)) as bench:
            await bench.group(generation=1)
            assert order == ["prepare", "prepare", "start 1"]
            assert bench.replica.last_end is not None
            assert bench.replica.last_end.reason.endswith("for model m: no parcel")
            assert bench.replica.last_end.traceback == "pip's lines"

    run(test())


def test_a_replica_that_is_stopped_does_not_wait_for_what_is_prepared() -> None:
    preparing = asyncio.Event()

    async def prepare() -> None:
        preparing.set()
        await asyncio.Event().wait()

    async def test() -> None:
        async with bench_of(recipe=Recipe(prepare=prepare)) as bench:
            await preparing.wait()
            await bench.replica.stop(0)
            assert bench.replica.state is ReplicaState.STOPPED
            assert bench.replica.group is None

    run(test())


# -- waiting for what is missing --

ALONE = ModelConfig(exclusive_devices=True)


def test_it_waits_for_what_another_holds_and_goes_on_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a failure nor a pause: the back-off is not asked."""

    async def test() -> None:
        resources = resources_of(1)
        other = resources.claim("other:1.0", ALONE)
        async with bench_of(resources=resources, config=ALONE) as bench:
            assert bench.replica.state is ReplicaState.WAITING
            assert bench.replica.shortage is not None
            assert bench.replica.shortage.resource == "devices"
            for _ in range(20):
                await asyncio.sleep(0)
            assert (bench.replica.generation, bench.replica.lease) == (0, None)
            other.release()
            (await bench.group()).load()
            await bench.until(ReplicaState.READY)
            assert bench.replica.lease is not None
            assert bench.replica.lease.numbers == (0,)
            bench.replica.release()
        assert bench.owner.states == [ReplicaState.STARTING, ReplicaState.READY, ReplicaState.STOPPED]
        assert (bench.backoff.calls, bench.restarts) == (["ready"], 0)

    run(test())
    assert any("worker 9000 waits for devices: m:1.0 needs 1 device of its own" in one for one in caplog.messages)


def test_a_group_that_runs_already_waits_for_no_start() -> None:
    """One of a server before this one: another group takes all starts meanwhile."""

    async def test() -> None:
        resources = Resources(npu_pool(0), Processes(64), Starts(1))
        (recipe := Recipe()).running = 1
        async with bench_of(resources=resources) as loads:
            await loads.group()
            async with bench_of(resources=resources, recipe=recipe) as runs:
                (await runs.group()).load()
                await runs.until(ReplicaState.READY)

    run(test())


def test_one_that_waits_may_be_stopped() -> None:
    async def test() -> None:
        resources = resources_of(1)
        resources.claim("other:1.0", ALONE)
        prepared: list[str] = []

        async def prepare() -> None:
            prepared.append("now")

        bench = Bench(resources=resources, config=ALONE, recipe=Recipe(prepare=prepare))
        await asyncio.sleep(0)
        await bench.replica.stop(0)
        assert (bench.replica.state, bench.replica.generation, prepared) == (ReplicaState.STOPPED, 0, [])

    run(test())


def test_the_time_that_it_waits_does_not_count() -> None:
    now, free = 0.0, 1 << 40

    async def test() -> None:
        nonlocal now, free
        backoff = Backoff(10, clock=lambda: now)
        async with bench_of(resources=resources_of(0, lambda: free), backoff=backoff, sibling=lambda: 1 << 20) as bench:
            (await bench.group(1)).end()
            free = 0
            await bench.until(ReplicaState.WAITING)
            now, free = 1000.0, 1 << 40
            (await bench.group(2)).end()
            while bench.replica.group is not None:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert bench.replica.state is ReplicaState.RESTARTING

    with patch.object(starts, "LOOK", 0.001):
        run(test())
