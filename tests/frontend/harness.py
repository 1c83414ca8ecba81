"""All of the server behind its listeners, on fake worker groups: they load, answer and end as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig, Snapshot
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.devices.accelerator import Accelerator
from msx_frontend.devices.ascend import Ascend, Npu
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.pool import DevicePool
from msx_frontend.job import Job
from msx_frontend.metrics import ServerMetrics
from msx_frontend.models.health import Health
from msx_frontend.models.host_processes import host_processes
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.registry import Registry
from msx_frontend.models.startup.servable_folders import PackedServables
from msx_frontend.models.startup.startup import Startup
from msx_frontend.models.state.state import PersistentState
from msx_frontend.models.state.store import StateStore, StoredVersion
from msx_frontend.models.versions.spawn import Spawner
from msx_frontend.queueing.enqueued import EnqueuedRequests
from msx_frontend.resources import limits
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.model_resources import ModelResources
from msx_frontend.resources.processes import Processes
from msx_frontend.resources.starts import Starts
from msx_frontend.resources.supply import Supply
from msx_frontend.snapshots.restore import versions_of
from msx_frontend.workers import group_end, replica
from msx_frontend.workers.group import GroupEvents, WorkerGroup
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.launcher import GroupSpec
from msx_protocol import Loaded, LoadProgress
from msx_sdk.generation import Capabilities
from tests.frontend.jobs import make_job
from tests.frontend.packing import pack_model
from tests.frontend.workers.fake_launcher import FakeLauncher, FakeRank
from tests.loops import run
from tests.loops import until as until

FAILED = GroupEnd(
    "The model could not be loaded: no weights", group_end.load_too_slow(1, "").error, traceback="Traceback: no weights"
)

SEQUENTIAL = "it is a fake"
"""Why batches of a model do not overlap."""


class HarnessRank(FakeRank):
    """Loads at once, unless its model is in `failing` or `loading` of FakeGroup."""

    def begin_to_load(self) -> None:
        self.say(LoadProgress("initializing"))
        self._task = asyncio.ensure_future(self._load())

    async def _load(self) -> None:
        model = self.load.model_name
        while model in FakeGroup.loading and not self.ended.done():
            await asyncio.sleep(0.001)
        if model in FakeGroup.failing:
            self.fail_to_load("no weights", FAILED.traceback)
        elif not self.ended.done():
            offers = FakeGroup.offers.get(model, Capabilities())
            overlaps, offered = model in FakeGroup.overlapping, msgspec.to_builtins(offers)
            self.say(Loaded(False, 0.1, offered, overlap=overlaps, sequential="" if overlaps else SEQUENTIAL))


class FakeGroup(WorkerGroup):
    """A group of fake ranks: it holds its jobs until `answer`."""

    failing: set[str] = set()
    loading: set[str] = set()
    offers: dict[str, Capabilities] = {}
    overlapping: set[str] = set()
    """Models whose batches overlap."""
    living: list[FakeGroup] = []

    def __init__(self, spec: GroupSpec, launcher: FakeLauncher, events: GroupEvents) -> None:
        super().__init__(spec, launcher, events)
        self.model = spec.load.model_name
        self._fakes = launcher
        self.living.append(self)

    @property
    def jobs(self) -> list[Job]:
        return self.runner.in_flight.jobs()

    def end(self, end: GroupEnd) -> None:
        self._end(end)

    def answer(self) -> None:
        for ranks in self._fakes.groups:
            if ranks[0].load is self.spec.load:
                ranks[0].answer()

    def _end(self, end: GroupEnd) -> GroupEnd:
        if self in self.living:
            self.living.remove(self)
        return super()._end(end)


class Harness:
    def __init__(
        self,
        folder: Path,
        npus: int = 0,
        accelerator: Accelerator | None = None,
        env: Mapping[str, str] | None = None,
        supply: Supply | None = None,
        **config: Any,
    ) -> None:
        self.folder, self.root = folder, folder / "store"
        self.root.mkdir(exist_ok=True)
        state = StateFolder(self.root / ".msx", self.root)
        self.config = ServerConfig(model_store=self.root, **config)
        self.metrics = ServerMetrics()
        self.registry = Registry(self.metrics, EnqueuedRequests(10_000))
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
            self.config,
            FakeLauncher(HarnessRank),
            state.compiled,
            env or {},
            host_processes=lambda: host_processes(self.registry.all_versions()),
        )
        self.management = Management(
            self.config,
            self.registry,
            self.store,
            supply or partial(ModelResources, self.resources),
            self.state,
            spawner,
            self.metrics,
            changed=self._changed,
        )
        self.on_change: list[Callable[[], None]] = []

    def _changed(self) -> None:
        for call in self.on_change:
            call()

    def _shares(self, lease: Lease, others: Sequence[Lease]) -> None:
        self.shared.append((lease.model_key, [other.model_key for other in others]))

    def pack(self, model: str = "m", version: str = "1.0", **options: Any) -> Path:
        return pack_model(self.root, model, version, **options)

    async def register(self, model: str = "m", version: str = "1.0", config: str = "", **wanted: Any) -> None:
        """Pack an archive and register it, with one worker unless told otherwise."""
        self.pack(model, version, config=config)
        await self.management.register(Registration(**{"url": f"{model}.mar", "initial_workers": 1, **wanted}))

    async def start(
        self, *models: str, snapshot: Snapshot | None = None, servables: PackedServables | None = None
    ) -> str:
        """Returns the account of it."""
        adopted = versions_of(snapshot, state_is_new=self.state.new)
        startup = Startup(self.management, self.state, models, adopted, servables)
        await startup.load()
        return startup.account.text()

    async def stored(self) -> dict[tuple[str, str], StoredVersion]:
        return {(one.name, one.version): one for one in await self.state.load()}

    def submit(self, model: str = "m", **options: Any) -> Job:
        job = make_job(**options)
        job.model_name = model
        self.registry.submit(job)
        self.registry.find(model).queue.dispatcher.pump()  # not only at the end of this turn of the loop
        return job

    def groups(self, model: str = "m") -> list[FakeGroup]:
        return [group for group in FakeGroup.living if group.model == model]

    def devices_of(self, model: str) -> list[tuple[int, ...]]:
        """Devices of each of its workers that is not waiting for some."""
        return [replica.lease.numbers for replica in self.registry.find(model).workers.all if replica.lease]

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
        patch.multiple(FakeGroup, failing=set(), loading=set(), offers={}, overlapping=set(), living=[]),
    ):
        harness = Harness(folder, **options)
        try:
            yield harness
        finally:
            await harness.close()
        assert FakeGroup.living == []
