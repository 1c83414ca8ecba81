"""All families of a server, to look at: no request reaches them."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from msx_frontend.apis.plugins.apps import AppLimits, UserApps
from msx_frontend.apis.plugins.family import PluginEndpoints
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.assembly.families import Parts, families
from msx_frontend.config import ServerConfig
from msx_net.http.family import Family


def all_families(*plugins: Any) -> list[Family]:
    unused: Any = MagicMock()
    parts = Parts(
        config=ServerConfig(),
        registry=unused,
        health=unused,
        tokens=unused,
        repository=unused,
        predictions=Predictions(unused, unused),
        texts=unused,
        adapters=unused,
        models=unused,
        workflows=unused,
        workflow_api=unused,
        metrics=unused,
        console=unused,
        apis=installed_apis(),
        plugins=PluginEndpoints(plugins, unused, 1.0),
        apps=UserApps([], AppLimits(1, 1, 1, 1), unused, merged=False),
    )
    return list(families(parts))


def of_listener(listener: str) -> list[Family]:
    return [family for family in all_families() if family.listener == listener]
