"""`msx_frontend.plugins`: what packages import that extend the server."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

from msx_frontend import plugins
from msx_frontend.installed_plugins import load_plugin
from msx_frontend.workers.workplace import LAUNCHERS

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()


def names() -> dict[str, set[str]]:
    modules = [
        "msx_frontend.plugins",
        *(f"msx_frontend.plugins.{one.name}" for one in pkgutil.iter_modules(plugins.__path__)),
    ]
    return {name: set(importlib.import_module(name).__all__) for name in modules}


def test_the_page_says_of_each_name_how_stable_it_is() -> None:
    rows = re.findall(r"^\| `(msx_frontend\.plugins[.\w]*)` \| (.*) \|$", PAGE, re.MULTILINE)
    said = {name: re.findall(r"`(\w+)`", text) for name, text in rows}
    assert {name: set(found) for name, found in said.items()} == names()
    assert all(len(set(found)) == len(found) for found in said.values()), "one word for each name"


def test_rays_launcher_is_found_by_its_entry_point() -> None:
    from msx_ray.workplace import open_cluster

    assert load_plugin(LAUNCHERS, "ray", "cluster_address").value is open_cluster


def test_an_agent_loads_nothing_of_http() -> None:
    """It is started on each node for each group."""
    code = "import sys, msx_ray.agent.agent; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name for name in loaded if name.split(".")[0] in ("starlette", "uvicorn", "grpc", "hpack")}
    assert not {name for name in loaded if name.startswith(("msx_net.http", "msx_net.grpc", "msx_frontend.models"))}
