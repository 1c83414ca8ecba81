"""All of the server behind its listeners, on fake worker groups: they load, answer and end as the test says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig, Snapshot
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.devices.accelerator import Accelerator
from msx_frontend.devices.ascend import Ascend, Npu
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.pool import DevicePool
from msx_frontend.errors import ServiceError
from msx_frontend.job import Job
from msx_frontend.metrics import ServerMetrics
from msx_frontend.models.health import Health
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.registry import Registry
from msx_frontend.models.spawn import Spawner
from msx_frontend.models.startup import Startup
from msx_frontend.models.state import PersistentState
from msx_frontend.models.state_store import StateStore, StoredVersion
from msx_frontend.resources import limits
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.processes import Processes
from msx_frontend.resources.starts import Starts
from msx_frontend.snapshots.restore import versions_of
from msx_frontend.workers import endings, replica
from msx_frontend.workers.endings import GroupEnd
from msx_frontend.workers.group import GroupEvents, GroupSpec, GroupState
from msx_sdk.generation import Capabilities
from msx_sdk.kserve import Signature
from tests.unit.frontend.jobs import make_job, run
from tests.unit.frontend.packing import pack_model

FAILED = GroupEnd(
    "The model could not be loaded: no weights", endings.load_too_slow(1, "").error, traceback="Traceback: no weights"
)


class FakeGroup:
    """Loads at once, unless its model is in `failing` or `loading`; holds its jobs until `answer`."""

    failing: set[str] = set()
    loading: set[str] = set()
    offers: dict[str, Capabilities] = {}
    living: list[FakeGroup] = []

    def __init__(self, spec: GroupSpec, events: GroupEvents) -> None:
        self.spec, self.events = spec, events
        self.model = spec.load.model_name
        self.labels = {"model": self.model}
        self.state, self.phase = GroupState.LOADING, "initializing"
        self.signature = Signature()
        self.start_time, self.load_seconds, self.is_async = time.time(), 0.1, False
        self.capabilities = self.offers.get(self.model, Capabilities())
        self.pid, self.memory, self.number = 4711, 1 << 20, spec.ranks[0].worker
        self.ranks: list[Any] = []
        self.own_memory = 1 << 20
        self.jobs: list[Job] = []
        self.ended: asyncio.Future[GroupEnd] = asyncio.get_running_loop().create_future()
        self.living.append(self)

    async def start(self) -> GroupEnd | None:
        await asyncio.sleep(0)
        if self.model in self.failing:
            self.end(FAILED)
        while self.model in self.loading and not self.ended.done():
            await asyncio.sleep(0.001)
        if self.ended.done():
            return self.ended.result()
        self.state, self.phase = GroupState.READY, ""
        return None

    async def wait_ended(self) -> GroupEnd:
        return await asyncio.shield(self.ended)

    async def drain(self, limit: float, end: GroupEnd | None = None) -> None:
        if self.state is GroupState.READY:
            self.state = GroupState.DRAINING
        deadline = asyncio.get_running_loop().time() + limit
        while self.jobs and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.001)
        self.end(end or endings.asked_to_stop())

    def end(self, end: GroupEnd) -> None:
        if not self.ended.done():
            self.state = GroupState.ENDED
            self.living.remove(self)
            self.ended.set_result(end)
            self.events.group_ended(self)  # type: ignore[arg-type]
            jobs, self.jobs = self.jobs, []
            for job in jobs:
                job.fail(end.error)

    def flush(self) -> None:
        """What `predict` took has left."""

    @property
    def busy(self) -> int:
        return len(self.jobs)

    @property
    def awaited(self) -> bool:
        return any(not job.done for job in self.jobs)

    @property
    def idle(self) -> bool:
        return not self.jobs

    def room(self, *, ahead: bool = False) -> int:
        return self.spec.load.batch_size if self.state is GroupState.READY and not self.jobs else 0

    room_to_join = 0

    def predict(self, jobs: list[Job], *, joins: bool = False) -> None:
        for job in jobs:
            job.group = self
            job.started = time.monotonic()
        self.jobs += jobs

    def cancel(self, job: Job) -> None:
        return None

    def cancel_all(self, error: ServiceError) -> None:
        for job in self.jobs:
            job.cancel(error)

    def answer(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job.finish(200)
        self.events.group_has_room(self)  # type: ignore[arg-type]


class Harness:
    def __init__(
        self,
        folder: Path,
        npus: int = 0,
        accelerator: Accelerator | None = None,
        env: Mapping[str, str] | None = None,
        **config: Any,
    ) -> None:
        self.folder, self.root = folder, folder / "store"
        self.root.mkdir(exist_ok=True)
        state = StateFolder(self.root / ".msx", self.root)
        self.config = ServerConfig(model_store=self.root, **config)
        self.metrics = ServerMetrics()
        self.registry = Registry(self.metrics)
        self.health = Health(self.registry)
        self.store = ModelStore(self.root, state)
        self.shared: list[tuple[str, list[str]]] = []
        exclusive = self.config.exclusive_group_devices
        self.accelerator: Accelerator = accelerator or Ascend(env={})
        devices = accelerator.detect() if accelerator else [Npu(str(n), "910B") for n in range(npus)]
        self.devices = DevicePool(self.accelerator, devices, exclusive_groups=exclusive, shared=self._shares)
        self.memory = 1 << 40
        processes = Processes(limits.worker_processes(self.config, len(devices)))
        self.starts = Starts(self.config.parallel_starts or 64, lambda: self.memory)
        self.resources = Resources(self.devices, processes, self.starts)
        self.state = PersistentState(StateStore(state.database))
        spawner = Spawner(
            self.config, state.run, state.compiled, env or {}, device_variables=self.accelerator.variables
        )
        self.management = Management(
            self.config, self.registry, self.store, self.resources, self.state, spawner, self.metrics
        )

    def _shares(self, lease: Lease, others: Sequence[Lease]) -> None:
        self.shared.append((lease.model_key, [other.model_key for other in others]))

    def pack(self, model: str = "m", version: str = "1.0", **options: Any) -> Path:
        return pack_model(self.root, model, version, **options)

    async def register(self, model: str = "m", version: str = "1.0", config: str = "", **wanted: Any) -> None:
        """Pack an archive and register it, with one worker unless told otherwise."""
        self.pack(model, version, config=config)
        await self.management.register(Registration(**{"url": f"{model}.mar", "initial_workers": 1, **wanted}))

    async def start(self, *models: str, snapshot: Snapshot | None = None) -> str:
        """Returns the account of it."""
        adopted = versions_of(snapshot, state_is_new=self.state.new)
        startup = Startup(self.management, self.state, models, adopted)
        await startup.load()
        return startup.account.text()

    async def stored(self) -> dict[tuple[str, str], StoredVersion]:
        return {(one.name, one.version): one for one in await self.state.load()}

    def submit(self, model: str = "m", **options: Any) -> Job:
        job = make_job(**options)
        job.model_name = model
        self.registry.submit(job)
        self.registry.find(model).dispatcher.pump()  # not only at the end of this turn of the loop
        return job

    def groups(self, model: str = "m") -> list[FakeGroup]:
        return [group for group in FakeGroup.living if group.model == model]

    def devices_of(self, model: str) -> list[tuple[int, ...]]:
        """Of each of its workers that is not waiting for some."""
        return [replica.lease.numbers for replica in self.registry.find(model).replicas if replica.lease]

    @property
    def contents(self) -> int:
        """Archives that lie unpacked."""
        return sum(len(entry.name) == 64 for entry in (self.root / ".msx" / "models").iterdir())

    async def close(self) -> None:
        await self.management.close(0)
        self.state.close()


Scenario = Callable[[Harness], Coroutine[Any, Any, None]]


def in_harness(folder: Path, test: Scenario, **options: Any) -> None:
    async def call() -> None:
        async with open_harness(folder, **options) as harness:
            await test(harness)

    run(call())


@asynccontextmanager
async def open_harness(folder: Path, **options: Any) -> AsyncIterator[Harness]:
    """At its end no group may live."""
    with (
        patch.object(replica, "WorkerGroup", FakeGroup),
        patch.multiple(FakeGroup, failing=set(), loading=set(), offers={}, living=[]),
    ):
        harness = Harness(folder, **options)
        try:
            yield harness
        finally:
            await harness.close()
        assert FakeGroup.living == []


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.001)
