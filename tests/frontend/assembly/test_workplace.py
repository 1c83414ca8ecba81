"""A server without a cluster loads nothing of clusters, and one with a cluster leaves Ray to its driver process."""

from __future__ import annotations

import subprocess
import sys

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


def modules(code: str) -> set[str]:
    """Modules that a new process has loaded after this code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
