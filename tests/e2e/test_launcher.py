"""`ts.launcher` in a script of its own, where TorchServe is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from msx_torchserve import packages
from tests.e2e.server import FREE_PORTS, new_store, pack_service, server_environment

pytestmark = pytest.mark.e2e

SCRIPT = """
import json, pathlib, urllib.request
from ts import launcher

queue = launcher.start("store", "config.properties", True, disable_token=True, models="echo=echo.mar")
(info,) = pathlib.Path("cache").glob("msx-serve/stores/*/server.json")  # it runs without a state
server = json.loads(info.read_text())
url, headers = server["inference"] + "/predictions/echo", {"content-type": "text/plain"}
urllib.request.urlopen(urllib.request.Request(url, data=b"x", headers=headers)).read()
while "/predictions/echo" not in queue.get(timeout=60):
    pass
launcher.stop()
while queue.get(timeout=60) is not None:
    pass
launcher.stop()
print("the script has ended")
"""


def test_a_script(tmp_path: Path) -> None:
    """It gets the server's log by a queue, and None at the end; stopping what does not run is not an error."""
    pack_service("echo", new_store(tmp_path))
    (tmp_path / "config.properties").write_text(FREE_PORTS)
    env = {**server_environment(tmp_path), "PYTHONPATH": str(Path(packages.__file__).parent), "http_proxy": ""}
    options: dict[str, Any] = {"cwd": tmp_path, "env": env, "timeout": 120, "check": False}
    try:
        done = subprocess.run([sys.executable, "-c", SCRIPT], **options, capture_output=True, text=True)
    finally:
        command = [sys.executable, "-m", "msx_frontend.cli.main", "--stop", "--model-store", "store"]
        subprocess.run(command, **options)
    assert done.returncode == 0, done
    assert "Model server started (pid" in done.stdout
    assert done.stdout.count("MSX is not currently running.") == 2
    assert done.stdout.endswith("the script has ended\n")
