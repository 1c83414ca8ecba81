"""One server: its parts are started one after the other, and stopped in reverse order."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.assembly.context import ServerContext, open_context
from msx_frontend.assembly.free_memory import of_glibc
from msx_frontend.assembly.http_front import HttpFront
from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.instance import Instance, InstanceError
from msx_frontend.assembly.instance_info import Addresses, instance_info
from msx_frontend.assembly.jobs_elsewhere import watch_jobs
from msx_frontend.assembly.preparation import prepare
from msx_frontend.assembly.served_models import ServedModels, open_models
from msx_frontend.assembly.status_socket import NAME as STATUS_SOCKET
from msx_frontend.assembly.status_socket import Status, StatusSocket
from msx_frontend.assembly.upgrade_orders import NAME as ORDERS
from msx_frontend.assembly.upgrade_orders import take_orders
from msx_frontend.assembly.without_keys import what_is_open
from msx_frontend.config.load import GivenSettings
from msx_frontend.config.tls_listeners import GRPC, HTTP
from msx_frontend.logs.output import LogOutput
from msx_frontend.models.describe import describe
from msx_frontend.models.health import Health
from msx_frontend.models.startup.readiness import why_not_ready
from msx_frontend.supervision.client import SupervisorClient, connect
from msx_net.listening.listener import Listener
from msx_net.tls.listeners import ServerTls

if TYPE_CHECKING:
    from msx_frontend.assembly.grpc_server import GrpcServer
    from msx_net.grpc.direct.port_calls import PortCalls

log = logging.getLogger("msx.server")

LISTENER_LIMIT = 1.0
"""Seconds in which connections may end when the server stops: what they asked for has been answered."""

UNFINISHED = "The server is shutting down and could not wait any longer for the request to finish (drain_timeout)."


@dataclass(frozen=True)
class Server:
    """A running server. The stack that it was started with stops it."""

    info: InstanceInfo
    health: Health
    models: ServedModels
    front: HttpFront
    grpc: GrpcServer
    listeners: Sequence[Listener]
    calls: Sequence[PortCalls]
    """gRPC on the ports of HTTP."""
    status: StatusSocket

    async def why_not_ready(self, limit: float) -> list[str]:
        """Wait up to `limit` seconds for the models of the start; returns why some do not serve."""
        return await why_not_ready(self.models.context.registry.all_versions(), limit)

    async def drain(self, limit: float) -> None:
        """Become not ready, and refuse new requests; accepted ones may finish for `limit` seconds."""
        self.health.draining = True
        self.front.late.pause()
        self.models.refuse_new()
        apps = self.models.context.apps
        apps.draining = True
        await self._until_idle(time.monotonic() + limit)

    async def _until_idle(self, deadline: float) -> None:
        while self.is_busy and time.monotonic() < deadline:  # noqa: ASYNC110  # once, at the end
            await asyncio.sleep(0.05)

    @property
    def is_busy(self) -> bool:
        """Requests are queued or running."""
        return self.models.busy() or self.models.context.apps.busy or self.front.late.is_busy


async def start_server(
    settings: GivenSettings,
    output: LogOutput,
    parts: AsyncExitStack,
    listeners: Collection[str] = (*HTTP, *GRPC),
    script: str = "",
) -> Server:
    """Returns when every listener answers and every model is registered; workers may still be loading.

    `listeners` are those to open, by how their keys begin; `script` is the
    start script whose server it is. Each started part is pushed to the stack `parts`, which stops them in order:
    unfinished requests fail, then HTTP, gRPC, workers and state end. Raises StartError, and StartedTooFar.
    """
    if (supervisor := connect()) is not None:
        parts.callback(supervisor.close)
    try:
        return await _started(settings, output, parts, supervisor, listeners, script)
    except Exception as error:
        if supervisor is not None and supervisor.turn.follows:
            raise StartedTooFar from error
        raise


class StartedTooFar(Exception):
    """The start has failed, for its cause, when the server before had left: workers and their folders belong to the
    server after this one, and `parts` must not be closed."""


async def _started(
    settings: GivenSettings,
    output: LogOutput,
    parts: AsyncExitStack,
    supervisor: SupervisorClient | None,
    listeners: Collection[str],
    script: str,
) -> Server:
    prepared = await prepare(settings.config, supervisor, parts)
    context = open_context(settings, output, parts, supervisor, script)
    status = StatusSocket(context.folder.path / STATUS_SOCKET)
    parts.callback(status.close)  # after the workers have ended, which it shows
    models = await open_models(context, prepared, parts)
    context.apps.start()
    parts.push_async_callback(context.apps.stop)  # after the listeners
    front = HttpFront(context, models)
    async with AsyncExitStack() as ports:  # which are free again at once where a model cannot be loaded
        http = front.listen(listeners)
        ports.push_async_callback(_stop, http)
        await context.state.begin()
        not_loaded = await models.load()
        await models.adopt()
        front.predictions.only_model = models.only_model()
        grpc = await _start_grpc(context, front, models, parts, listeners)
        parts.push_async_exit(ports.pop_all())
    port_calls = [*front.answer_calls(grpc.calls_of)]
    for calls in port_calls:
        parts.push_async_callback(calls.stop)
        parts.callback(calls.end_watches)
    parts.callback(models.cancel_all, ServiceUnavailable(UNFINISHED))
    models.begin()
    socket = status.path if await status.start(partial(_status, models)) else None
    info = instance_info(context, models.account, not_loaded, _addresses(http, grpc, listeners), socket)
    context.instance.publish(info)
    await context.state.commit()
    await front.late.load()
    for listener in http:
        await listener.start()
    await front.begin_late_work(() if context.supervisor is None else context.supervisor.turn.jobs)
    if models.kept is not None and front.late.jobs is not None:
        parts.callback(asyncio.create_task(watch_jobs(front.late.jobs, models.kept), name="jobs-elsewhere").cancel)
    parts.push_async_callback(front.late.close)
    if (console := front.console) is not None:
        console.start({listener.name: str(listener.address) for listener in http})
        parts.push_async_callback(console.close)  # before the listeners, whose streams it ends
    _watch(context, info, parts)
    if context.supervisor is not None:
        take_orders(context.supervisor, orders := context.folder.path / ORDERS)
        parts.callback(orders.unlink, missing_ok=True)
        context.supervisor.started(context.config.keep_groups, settings.content)
        if context.supervisor.turn.renews:
            parts.callback(asyncio.create_task(models.renew_workers(), name="renew-workers").cancel)
    gc.freeze()  # modules and models live as long as the server: not worth a look at each collection
    return Server(info, models.health, models, front, grpc, http, port_calls, status)


async def _stop(listeners: list[Listener]) -> None:
    """All at the same time: each of them may have a second for requests that are on their way."""
    await asyncio.gather(*(listener.stop(LISTENER_LIMIT) for listener in listeners))


def _status(models: ServedModels) -> Status:
    versions = models.context.registry.all_versions()
    supervisor = models.context.supervisor
    described = None if supervisor is None else supervisor.describe()
    return Status([describe(version) for version in versions], models.not_loaded(), models.devices(), described)


async def _start_grpc(
    context: ServerContext, front: HttpFront, models: ServedModels, parts: AsyncExitStack, listeners: Collection[str]
) -> GrpcServer:
    from msx_frontend.assembly.grpc_server import GrpcServer  # takes a while, in which the first workers start
    from msx_frontend.assembly.grpc_services import grpc_services

    config, registry, health, held = context.config, context.registry, models.health, context.held
    calls = context.monitoring.counted_calls(context.access_log) if context.keys.named else context.access_log
    workflows = models.workflows.registry
    services = grpc_services(
        config, registry, health, front.model_api, front.repository, calls, held, workflows, context.apis
    )
    grpc = GrpcServer(
        config,
        services,
        registry,
        health,
        context.keys.tokens,
        context.tls,
        held,
        context.connections,
        front.guard,
        context.heartbeats,
        context.kept_sockets,
    )
    parts.push_async_callback(grpc.stop, 0.5)
    await grpc.start(listeners)
    return grpc


def _addresses(listeners: list[Listener], grpc: GrpcServer, opened: Collection[str]) -> Addresses:
    http = {listener.name: str(listener.address) for listener in listeners}
    inference = http.get("inference", "")
    return Addresses(
        inference=inference,
        management=http.get("management", inference),
        metrics=http.get("metrics"),
        grpc_inference=grpc.inference.address if grpc.inference.keys in opened else "",
        grpc_management=grpc.management.address if grpc.management.keys in opened else "",
    )


def _watch(context: ServerContext, info: InstanceInfo, parts: AsyncExitStack) -> None:
    """Start the periodic tasks of a running server: memory, keys, snapshots, certificates."""
    if context.hint:
        log.warning("%s", context.hint)
    if context.keys.tokens is None and not context.script:
        log.warning("%s", what_is_open(context.config, info))
    if (free_memory := of_glibc()) is not None:
        parts.callback(asyncio.create_task(free_memory.run(), name="free-memory").cancel)
    context.keys.watch()
    context.snapshots.startup()
    parts.push_async_callback(context.snapshots.close)
    if (tls := context.tls) is not None:
        changed = partial(_republish, context.instance, info, tls)
        parts.callback(asyncio.create_task(tls.watch(changed), name="tls-watch").cancel)


def _republish(instance: Instance, info: InstanceInfo, tls: ServerTls) -> None:
    """Publish the new certificate."""
    try:
        instance.publish(msgspec.structs.replace(info, certificate=tls.identity.chain.decode()))
    except InstanceError as error:
        log.warning("%s", error)
