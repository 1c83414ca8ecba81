"""All API families of a server over a harness, as `assembly` puts them together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from msx_core.held_bytes import HeldBytes
from msx_frontend.apis.plugins.apps import AppLimits, UserApps
from msx_frontend.apis.plugins.family import PluginEndpoints
from msx_frontend.apis.plugins.view import View
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.http_front import HttpFront
from msx_frontend.assembly.served_models import ServedModels
from msx_frontend.keys.tokens import Tokens
from msx_frontend.workflows.management import WorkflowManagement
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.connections.open_connections import OpenConnections
from msx_net.heartbeats import OFF
from msx_net.listening.kept import KEEPS_NONE
from msx_net.tls.listeners import ListenerTls
from tests.frontend.harness import Harness
from tests.net.http.client import FakeAccessLog


def no_apps() -> UserApps:
    return UserApps([], AppLimits(1, 1, 1, 1), cast(Any, None), merged=False)


def workflows_of(harness: Harness) -> WorkflowManagement:
    return WorkflowManagement(harness.management, WorkflowRegistry(), harness.state, harness.config)


def front_of(
    harness: Harness,
    tokens: Tokens | None = None,
    tls: ListenerTls | None = None,
    held: HeldBytes | None = None,
    workflows: WorkflowManagement | None = None,
) -> HttpFront:
    workflows = workflows or workflows_of(harness)
    context = SimpleNamespace(
        config=harness.config,
        registry=harness.registry,
        keys=SimpleNamespace(tokens=tokens, named=False),
        tls=SimpleNamespace(of=lambda listener: tls),
        plugins=PluginEndpoints([], View(harness.config, harness.registry), 10),
        apis=installed_apis(),
        apps=no_apps(),
        monitoring=SimpleNamespace(metrics=harness.metrics, counted=lambda log, by_key: log),
        access_log=FakeAccessLog(),
        held=held or HeldBytes(),
        connections=OpenConnections(),
        heartbeats=OFF,
        kept_sockets=KEEPS_NONE,
        store=None,
    )
    models = SimpleNamespace(
        health=harness.health, management=harness.management, workflows=workflows, cluster_report=None, devices=list
    )
    return HttpFront(cast(ServerContext, context), cast(ServedModels, models))
