"""A server without a cluster loads nothing of clusters, and one with a cluster leaves Ray to its driver process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest

from msx_frontend.assembly import workplace
from msx_frontend.config import ServerConfig
from msx_frontend.installed_plugins import Plugin
from msx_frontend.workers.workplace import ClusterSettings, Workplace

OPEN = """
import asyncio, sys
from contextlib import AsyncExitStack
from types import SimpleNamespace

import msx_frontend.cli.main
import msx_frontend.assembly.server
from msx_frontend.assembly.workplace import open_workplace

async def opened():
    async with AsyncExitStack() as parts:
        config = SimpleNamespace(cluster_address=None)
        open_workplace(config, SimpleNamespace(), SimpleNamespace(), parts)

asyncio.run(opened())
print(*sys.modules)
"""
PARTS = """
import sys

import msx_ray.workplace

print(*sys.modules)
"""


def test_without_a_cluster_nothing_of_it_is_loaded() -> None:
    loaded = modules(OPEN)
    assert "msx_frontend.assembly.workplace" in loaded
    assert not {name for name in loaded if name.split(".")[0] == "ray" or name.startswith("msx_ray")}


def test_the_server_of_a_cluster_does_not_load_ray() -> None:
    loaded = modules(PARTS)
    assert "msx_ray.cluster" in loaded
    assert not {name for name in loaded if name.split(".")[0] == "ray"}


def test_a_cluster_is_opened_by_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[ClusterSettings] = []
    opened = Workplace(cast(Any, None), cast(Any, None))

    def open_cluster(settings: ClusterSettings) -> Workplace:
        given.append(settings)
        return opened

    plugin = Plugin("ray", "ray", open_cluster)
    monkeypatch.setattr(workplace, "load_plugin", lambda *names: plugin)
    keys: Any = {
        "cluster_address": "ray.example:6379",
        "cluster_agent_address": "10.0.0.1",
        "cluster_start_timeout": 7.0,
    }
    assert workplace.open_workplace(ServerConfig(**keys), cast(Any, None), cast(Any, None), AsyncExitStack()) is opened
    (settings,) = given
    assert (settings.address, settings.agent_address, settings.start_timeout) == (*keys.values(),)


def modules(code: str) -> set[str]:
    """Modules that a new process has loaded after this code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
