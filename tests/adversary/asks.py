"""Targets of the attacks: every route of the list of API families, and every method of the list of gRPC services."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from msx_core.held_bytes import HeldBytes
from msx_frontend.apis.probes.grpc_health import HealthService
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.assembly.grpc_services import ManagesAll, grpc_services
from msx_frontend.keys.tokens import Tokens
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.grpc.reflection import ReflectionService
from msx_net.grpc.service import Method, Service
from msx_net.http.family import Family, Route
from tests.adversary.bodies import Schema, message, schema_of
from tests.frontend.front import front_of
from tests.frontend.harness import open_harness

VERSION = "1"
_GRPC = "application/grpc"
_NAMES = {"version": VERSION, "model_version": VERSION, "method": "same"}
"""Values for the names of a path; each that names a model is given, others are `x`."""
_MODELS = ("model", "model_name", "workflow_name", "model_id")


class Ask(NamedTuple):
    """One request that is not wrong, to one route or method, about one model."""

    family: str
    listener: str
    key: str | None
    """The kind of key that it needs; None: none."""
    method: str
    path: str
    body: bytes
    content_type: str
    schema: Schema | None = None
    """Schema of its JSON body."""
    streams: bool = False
    """The client may send any number of messages."""

    @property
    def grpc(self) -> bool:
        return self.content_type == _GRPC

    @property
    def name(self) -> str:
        return f"{self.family}: {self.method} {self.path}"


class Lists(NamedTuple):
    families: tuple[Family, ...]
    services: tuple[Service, ...]

    def asks(self, model: str) -> list[Ask]:
        """One for each route and method, about this model, in the order of the lists."""
        return [*_of_routes(self.families, model), *_of_methods(self.services, model)]


@asynccontextmanager
async def lists(folder: Path, **config: Any) -> AsyncIterator[Lists]:
    """The lists that a server has with this configuration."""
    async with open_harness(folder, **config) as harness:
        front = front_of(harness, Tokens(folder / "keys.json", 0))
        services = grpc_services(
            harness.config,
            harness.registry,
            harness.health,
            cast(ManagesAll, front.model_api),
            front.repository,
            None,
            HeldBytes(),
            WorkflowRegistry(),
            installed_apis(),
        )
        names = [one.name for one in services]
        probes = [HealthService(harness.registry, harness.health, names).service()]
        yield Lists(tuple(front.families), (*services, *probes, *ReflectionService(names).services()))


def _of_routes(families: Iterable[Family], model: str) -> Iterator[Ask]:
    for family in families:
        for route in family.routes:
            yield _of_route(family, route, model)


def _of_route(family: Family, route: Route, model: str) -> Ask:
    schema = schema_of(route.request_schema, route.queries)
    body, kind = b"", ""
    if route.method in ("POST", "PUT", "PATCH"):
        body, kind = b"hello", "text/plain"
        if route.example is not None:
            body, kind = msgspec.json.encode(_about(route.example, schema, model)), "application/json"
    path = re.sub(r"{(\w+)(?::path)?}", lambda name: _filled(name[1], model), route.path)
    return Ask(family.name, family.listener, route.key, route.method, path, body, kind, schema)


def _filled(name: str, model: str) -> str:
    return model if name in _MODELS else _NAMES.get(name, "x")


def _about(example: Any, schema: Schema, model: str) -> Any:
    """The example with the name of the model, where it has one."""
    known = [name for name in _MODELS if name in schema.get("properties", {})]
    return {**example, **dict.fromkeys(known[:1], model)} if isinstance(example, dict) else example


def _of_methods(services: Iterable[Service], model: str) -> Iterator[Ask]:
    for service in services:
        for method in service.methods:
            yield _of_method(service, method, model)


def _of_method(service: Service, method: Method, model: str) -> Ask:
    body, path = message(service.name, method.name, model, VERSION), f"/{method.target}"
    return Ask(service.name, service.listener, method.key, "POST", path, body, _GRPC, streams=method.client_streams)
