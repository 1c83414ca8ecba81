"""A whole server over fake workers, whose management is called by REST and gRPC, and whose disk may be full."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from unittest.mock import patch

import msgspec
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import ServiceError
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.assembly.grpc_services import ManagesAll, grpc_services
from msx_frontend.models import loaded_adapters
from msx_frontend.models.adapter_folder import FILES
from msx_frontend.models.registration import Registration
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.grpc.context import CallContext
from msx_net.grpc.messages import POOL
from msx_net.grpc.service import Method
from msx_net.http.family import JobRoute, Route
from msx_sdk.generation import Capabilities, LoadAdapterReply
from tests.archiver.conftest import write_zip
from tests.archiver.test_workflows import FILES as WORKFLOW_FILES
from tests.frontend.front import front_of, workflows_of
from tests.frontend.harness import FakeGroup, Harness, open_harness
from tests.frontend.packing import pack_model
from tests.net.http.client import FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

LANGUAGE_MODEL = Capabilities(generate=True, sleep=True, load_adapter=True)


class Call(NamedTuple):
    """`target` is a method, a path and a query; or a method of gRPC, whose request has the members of `body`."""

    target: str
    body: Any = None


class Served:
    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.workflows = workflows_of(harness)
        front = front_of(harness, workflows=self.workflows)
        self.routes = [route for family in front.families for route in family.routes]
        self._app = exchange_of(*front.families, log=FakeAccessLog(), limit=1 << 20)
        api = cast(ManagesAll, front.model_api)
        services = grpc_services(
            harness.config,
            harness.registry,
            harness.health,
            api,
            front.repository,
            None,
            HeldBytes(),
            WorkflowRegistry(),
            installed_apis(),
        )
        self.methods = {method.target: method for service in services for method in service.methods}

    def changing_routes(self) -> Iterator[Route]:
        """Routes of operators that change what is served."""
        for route in self.routes:
            if (
                route.key == "management"
                and route.method not in ("GET", "OPTIONS")
                and not route.path.startswith("/management/")  # requests, which are not what is served
                and not isinstance(route.answer, JobRoute)
            ):
                yield route

    def managing_methods(self) -> Iterator[Method]:
        return (method for method in self.methods.values() if method.key == "management")

    async def call(self, call: Call) -> tuple[int, str]:
        """Its status and its text, when what it has begun is over. All workers do as they are told."""
        asked = asyncio.ensure_future(self._by_grpc(call) if call.target in self.methods else self._by_rest(call))
        while not asked.done():
            for group in list(FakeGroup.living):
                group.answer()
            await asyncio.sleep(0)
        await asyncio.gather(*self.harness.management.operations._background, return_exceptions=True)
        await self.settled()
        return asked.result()

    async def settled(self) -> None:
        for version in self.harness.registry.all_versions():
            await version.workers.settled()

    async def _by_rest(self, call: Call) -> tuple[int, str]:
        method, target = call.target.split(" ")
        body = (
            call.body if isinstance(call.body, bytes) else b"" if call.body is None else msgspec.json.encode(call.body)
        )
        reply = await ask(self._app, method, target, body)
        return reply.status, reply.body.decode()

    async def _by_grpc(self, call: Call) -> tuple[int, str]:
        method = self.methods[call.target]
        found = POOL.FindServiceByName(method.service).methods_by_name[method.name]
        request = ParseDict(call.body, GetMessageClass(found.input_type)())
        context = SimpleNamespace(admitted=SimpleNamespace(id="r", headers=()))
        try:
            return 200, str(await method.answer(request, cast(CallContext, context)))
        except ServiceError as error:
            return error.status, error.message

    def in_force(self) -> dict[str, Any]:
        registry = self.harness.registry
        versions = {
            " ".join(version.labels): {
                "workers": (
                    version.workers.least,
                    version.workers.most,
                    sum(not r.leaving for r in version.workers.all),
                ),
                "autoscaling": version.workers.follow_load,
                "sleep": version.sleep.level,
                "adapters": sorted(version.schema.adapters),
                "aliases": version.aliases,
                "batch": version.config.batch_size,
                "share": version.figures.traffic_share,
                "default": registry.is_default(version),
            }
            for version in registry.all_versions()
        }
        return {"versions": versions, "workflows": self.workflows.registry.names(), "workers": len(FakeGroup.living)}

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """SQLite refuses whatever is written."""
        database = self.harness.state._store._file.db
        database.execute("PRAGMA query_only = ON")
        try:
            yield
        finally:
            database.execute("PRAGMA query_only = OFF")


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[Served]:
    """A server that has what the state of the folder says."""
    config = {"enable_model_api": True, "console_upload": True, "adapters_path": folder / "adapters"}
    reply = LoadAdapterReply(stamp="s", rank=8)
    async with open_harness(folder, **config) as harness:
        FakeGroup.offers["m"] = LANGUAGE_MODEL
        served = Served(harness)
        with patch.object(loaded_adapters, "_checked", lambda *args: _at_once(reply)):
            await harness.start()
            await served.workflows.restore_all()
            yield served


async def _at_once(reply: LoadAdapterReply) -> LoadAdapterReply:
    return reply


async def arrange(folder: Path, served: Served) -> None:
    """Versions 1.0 and 2.0 of the language model `m`, `single` and `idle`; archives of others."""
    for name in FILES:
        (folder / "adapters" / "sql").mkdir(parents=True, exist_ok=True)
        (folder / "adapters" / "sql" / name).write_bytes(b"{}")
    for name, version, workers in (("m", "1.0", 1), ("m", "2.0", 1), ("single", "1.0", 1), ("idle", "1.0", 0)):
        file = served.harness.pack(name, version).rename(served.harness.root / f"{name}-{version}.mar")
        await served.harness.management.register(Registration(url=file.name, initial_workers=workers))
    served.harness.pack("new")
    served.harness.pack("a")
    write_zip(served.harness.root / "w.war", list(WORKFLOW_FILES.items()))


def archive(folder: Path) -> bytes:
    return pack_model(folder / "elsewhere", "uploaded").read_bytes()
