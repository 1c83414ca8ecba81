"""`msx-serve upgrade --python`, from the wheel of this commit to that of a later version under load, and back."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, start_server, wait_until
from tests.e2e.test_upgrade import SUPERVISED, Load, frontend, upgrade

pytest.importorskip("hatchling", reason="in a clean environment with the extra dev it is there")

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
VERSION, LATER = "0.2.0.dev0", "0.2.0.dev1"
NAMED_VERSION = "pyproject.toml", "frontend/msx_frontend/__init__.py"
LOAD_SECONDS = 20
LOADS_LONG = f"""
import time
from msx_sdk import Handler

class LoadsLong(Handler):
    def initialize(self, context):
        time.sleep({LOAD_SECONDS})

    def handle(self, data, context):
        return [b"x" for _ in data]
"""


def installed(folder: Path, version: str) -> Path:
    """The interpreter of an environment that has the wheel of this commit, under this version."""
    source, site = folder / "source", folder / "wheel"
    done = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tree:
        tree.extractall(source)
    for path in (source / name for name in NAMED_VERSION):
        path.write_text(path.read_text().replace(f'"{VERSION}"', f'"{version}"', 1))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(site)]
    subprocess.run(build, cwd=source, capture_output=True, check=True)
    (wheel,) = site.glob("*.whl")
    with zipfile.ZipFile(wheel) as plain:
        plain.extractall(site)
    return environment(folder / "env", site)


def environment(folder: Path, site: Path) -> Path:
    """It has the packages of `site`, and what they need of the environment of the tests."""
    venv.create(folder, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "msx.pth").write_text(f"{site}\n{sysconfig.get_paths()['purelib']}\n")
    return folder / "bin" / "python"


def started(folder: Path, python: Path) -> RunningServer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        return start_server(folder, "--models", "echo.mar", properties=SUPERVISED, fork=False)


def version_of(server: RunningServer) -> str:
    """Asked on a new connection: what comes on those that were kept, the server before answers."""
    with httpx.Client(base_url=server.inference.base_url, headers=server.inference.headers) as client:
        return str(client.get("/v2").json()["version"])


def python_of(server: RunningServer) -> str:
    return psutil.Process(frontend(server)).cmdline()[0]


def test_nobody_notices(tmp_path_factory: pytest.TempPathFactory) -> None:
    now, later = (installed(tmp_path_factory.mktemp("release"), version) for version in (VERSION, LATER))
    folder = tmp_path_factory.mktemp("served")
    (folder / "loads_long.py").write_text(LOADS_LONG)
    pack_service(str(folder / "loads_long"), new_store(folder), model="echo", config="minWorkers: 1\nmaxWorkers: 1\n")
    server = started(folder, now)
    try:
        server.wait_serving()
        workers, load = server.worker_pids("echo"), Load(server)
        for python, version in ((later, LATER), (now, VERSION), (later, LATER)):
            done = upgrade(server, "--python", str(python))
            assert (done.returncode, done.stderr) == (0, "")
            assert (version_of(server), python_of(server)) == (version, str(python))
            assert psutil.Process(server.process.pid).cmdline()[0] == str(python)
            server.wait_serving(LOAD_SECONDS / 2)
            answers = load.answers
            wait_until(lambda so_far=answers: load.answers > so_far + 50, "it answers")  # type: ignore[misc]
            (worker,) = server.describe("echo")["workers"]
            assert (worker["pid"], worker["release"]) == (workers[0], VERSION)
        load.end()
        print(json.dumps({"answers": load.answers, "lost": len(load.lost)}))
        assert load.lost == []
        assert server.terminate() == 0
    finally:
        server.close()
