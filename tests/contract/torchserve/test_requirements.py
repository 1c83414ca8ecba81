"""Packages and interpreters of a model's workers.

contract#requirements-of-models
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.contract.torchserve.setup import Setup, register, serving
from tests.contract.torchserve.shapes import assert_error
from tests.e2e.server import RunningServer, wait_until
from tests.processes import children_of, command_of
from tests.torch_archiver import torch_archive
from tests.wheels import make_slow_source, make_wheel, pip_environment

pytestmark = pytest.mark.e2e

HANDLER = """
import json, sys

def handle(data, context):
    try:
        import parcel
        found = [parcel.VERSION, parcel.__file__]
    except ImportError:
        found = None
    return [json.dumps({"parcel": found, "python": sys.executable, "prefix": sys.prefix})] * len(data)
"""
FAILED = "Custom pip package installation failed for model"
ON = "install_py_dep_per_model=true\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "parcel", "1.0")
    make_wheel(folder, "parcel", "2.0", requires=("ribbon",))
    make_wheel(folder, "ribbon", "1.0")
    return folder


@pytest.fixture(scope="module")
def server(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    setup = Setup(services=("echo",), load=("echo.mar",), properties=ON, env=pip_environment(wheels))
    with serving(setup, tmp_path_factory.mktemp("requirements")) as running:
        yield running


def archive(server: RunningServer, name: str, requirements: str, *, venv: bool = False, more: str = "") -> str:
    files = {"h.py": HANDLER, "c.yaml": f"useVenv: {str(venv).lower()}\n", "more.txt": more}
    content: dict[str, bytes | str] = {**files, "requirements.txt": requirements}
    model = {"requirementsFile": "requirements.txt", "configFile": "c.yaml"}
    return torch_archive(server.store, name, content, **model).name


def told(server: RunningServer, name: str) -> dict[str, Any]:
    reply: dict[str, Any] = server.predict(name).json()
    return reply


def environments(server: RunningServer) -> list[Path]:
    folder = server.store / ".msx" / "environments"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def unregister(server: RunningServer, *names: str) -> None:
    for name in names:
        assert server.management.delete(f"/models/{name}").status_code == 200
    assert environments(server) == []


def test_a_folder(server: RunningServer) -> None:
    """Each model its own version of a package, on the server's Python; gone with the model."""
    assert register(server, archive(server, "one", "parcel==1.0\n")).status_code == 200
    assert register(server, archive(server, "two", "parcel==2.0\n")).status_code == 200
    one, two = told(server, "one"), told(server, "two")
    assert (one["parcel"][0], two["parcel"][0]) == ("1.0", "2.0")
    assert one["python"] == two["python"] == sys.executable
    folders = environments(server)
    assert len(folders) == 2
    assert {Path(reply["parcel"][1]).parents[1] for reply in (one, two)} == set(folders)
    assert sum((folder / "site" / "ribbon.py").exists() for folder in folders) == 1
    assert server.describe("one")["useVenv"] is False
    unregister(server, "one", "two")


def test_a_virtual_environment(server: RunningServer) -> None:
    """Its Python runs the workers; the server's packages are there too, and need not be installed again."""
    assert register(server, archive(server, "venv", "parcel==2.0\nmsgspec\n", venv=True)).status_code == 200
    reply = told(server, "venv")
    (folder,) = environments(server)
    assert reply["parcel"][0] == "2.0"
    assert reply["python"] == str(folder / "venv" / "bin" / "python")
    assert reply["prefix"] == str(folder / "venv")
    assert not list(folder.glob("venv/lib/python*/site-packages/msgspec*"))
    assert server.describe("venv")["useVenv"] is True
    unregister(server, "venv")


def test_models_with_the_same_requirements_share_them(server: RunningServer) -> None:
    with ThreadPoolExecutor(2) as pool:
        names = [archive(server, name, "parcel==1.0\n") for name in ("left", "right")]
        replies = list(pool.map(lambda name: register(server, name), names))
    assert [reply.status_code for reply in replies] == [200, 200]
    assert told(server, "left")["parcel"] == told(server, "right")["parcel"]
    (folder,) = environments(server)
    assert server.management.delete("/models/left").status_code == 200
    assert environments(server) == [folder]
    unregister(server, "right")


def test_requirements_that_name_files_of_the_archive(server: RunningServer) -> None:
    url = archive(server, "nested", "-r more.txt\n", more="parcel==1.0\n")
    assert register(server, url).status_code == 200
    assert told(server, "nested")["parcel"][0] == "1.0"
    unregister(server, "nested")


@pytest.mark.parametrize(("venv", "workers"), [(False, 1), (True, 0)])
def test_what_cannot_be_installed(server: RunningServer, venv: bool, workers: int) -> None:
    """TorchServe's type and first words, and pip's last ones; nothing stays."""
    url = archive(server, "absent", "no-such-package-anywhere\n", venv=venv)
    reply = register(server, url, initial_workers=workers)
    message = f"{FAILED} absent: ERROR: "
    assert_error(reply, 400, "ModelException", message, exact=False)
    assert "No matching distribution found for no-such-package-anywhere" in reply.json()["message"]
    assert server.management.get("/models/absent").status_code == 404
    assert environments(server) == []


def test_a_registration_in_the_background(server: RunningServer) -> None:
    """describe says what went wrong, with pip's output, and the others serve."""
    url = archive(server, "later", "no-such-package-anywhere\n")
    assert register(server, url, synchronous="false").status_code == 202

    def failed() -> Any:
        described = server.describe("later")
        return described if "reason" in described else None

    described = wait_until(failed, "pip has failed", server.tail)
    assert described["reason"].startswith(f"{FAILED} later: ERROR: ")
    assert "No matching distribution" in described["traceback"]
    assert server.predict("echo", b"x").content == b"x"
    unregister(server, "later")


@pytest.mark.parametrize("synchronous", ["true", "false"])
def test_progress_and_unregistering_meanwhile(server: RunningServer, tmp_path: Path, synchronous: str) -> None:
    """A build that would take for ever: shown, no bar to other models, and ended with all its processes."""
    started, gate = tmp_path / "started", tmp_path / "gate"
    source = make_slow_source(tmp_path, "slow", started, gate)
    url = archive(server, "slow", f"slow @ file://{source}\n")
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(register, server, url, synchronous=synchronous)
        wait_until(started.exists, "pip builds", server.tail)
        assert server.describe("slow")["state"] == "LOADING"
        told_of = lambda: server.describe("slow")["workers"][0]["phase"].startswith("installing requirements: ")  # noqa: E731
        wait_until(told_of, "what pip does is told", server.tail)
        assert server.predict("echo", b"x").content == b"x"
        assert register(server, archive(server, "other", "parcel==1.0\n")).status_code == 200
        assert told(server, "other")["parcel"][0] == "1.0"
        assert server.management.delete("/models/slow").status_code == 200
        if synchronous == "true":
            message = f"{FAILED} slow: the model was unregistered meanwhile"
            assert_error(reply.result(), 400, "ModelException", message)
    wait_until(lambda: not children_of(server.process.pid, "pip", recursive=True), "pip has ended", server.tail)
    unregister(server, "other")


@pytest.mark.parametrize("end", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_the_server_ends_meanwhile(wheels: Path, tmp_path: Path, end: signal.Signals) -> None:
    """pip goes with it; the next start throws away what it left, and begins anew."""
    (folder := tmp_path / "server").mkdir()
    started = tmp_path / "started"
    source = make_slow_source(tmp_path, "slow", started, tmp_path / "gate")
    setup = Setup(properties=ON, env=pip_environment(wheels), ready=False)
    with serving(setup, folder) as server:
        url = archive(server, "slow", f"slow @ file://{source}\n")
        assert register(server, url, synchronous="false").status_code == 202
        wait_until(started.exists, "pip builds", server.tail)
        (first,) = environments(server)
        server.process.send_signal(end)
        server.process.wait(120)
        wait_until(lambda: not _builds_of(folder), "pip has ended")
    started.unlink()
    with serving(setup, folder) as server:
        wait_until(started.exists, "pip builds again", server.tail)
        assert first not in environments(server)
        unregister(server, "slow")


def _builds_of(folder: Path) -> list[psutil.Process]:
    """The processes that install what the server of this folder wants."""
    return [process for process in psutil.process_iter() if str(folder) in command_of(process)]


def test_it_takes_too_long(wheels: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "server").mkdir()
    source = make_slow_source(tmp_path, "slow", tmp_path / "started", tmp_path / "gate")
    setup = Setup(properties=ON + "install_py_dep_timeout=1\n", env=pip_environment(wheels))
    with serving(setup, folder) as server:
        reply = register(server, archive(server, "slow", f"slow @ file://{source}\n"))
        message = f"{FAILED} slow: it took longer than install_py_dep_timeout, 1 s"
        assert_error(reply, 400, "ModelException", message)
        assert environments(server) == []


def test_off_by_default(wheels: Path, tmp_path: Path) -> None:
    """Requirements are not installed, which a line in the log says."""
    with serving(Setup(env=pip_environment(wheels)), tmp_path) as server:
        assert register(server, archive(server, "plain", "parcel==1.0\n")).status_code == 200
        assert told(server, "plain")["parcel"] is None
        warnings = [line["message"] for line in server.log_lines() if line["level"] == "WARNING"]
        assert "plain: requirements.txt is not installed: install_py_dep_per_model is false" in warnings


def test_a_restart_installs_nothing(wheels: Path, tmp_path: Path) -> None:
    """Installed packages are found again, without pip; what no model needs is removed."""
    setup = Setup(properties=ON, env=pip_environment(wheels))
    with serving(setup, tmp_path) as server:
        assert register(server, archive(server, "kept", "parcel==1.0\n")).status_code == 200
        (folder,) = environments(server)
    (stale := folder.parent / f"{'0' * 40}-00000000").mkdir()
    (half := folder.parent / f"{'1' * 40}-00000000").mkdir()
    with serving(Setup(properties=ON, env=pip_environment(tmp_path / "nowhere")), tmp_path) as server:
        assert told(server, "kept")["parcel"][0] == "1.0"
        assert environments(server) == [folder]
        assert not stale.exists()
        assert not half.exists()
        unregister(server, "kept")


def test_the_key_python(tmp_path: Path) -> None:
    """The interpreter of the workers."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nMSX_TEST_PYTHON=$0 exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    handler = "import os\ndef handle(data, context):\n    return [os.environ['MSX_TEST_PYTHON']] * len(data)\n"
    (folder := tmp_path / "server").mkdir()
    with serving(Setup(properties=f"python={python}\n"), folder) as server:
        path = torch_archive(server.store, "here", {"h.py": handler})
        assert register(server, path.name).status_code == 200
        assert server.predict("here").text == str(python)


def test_a_python_that_cannot_run_workers(tmp_path: Path) -> None:
    """The server does not start, and says why."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    python.chmod(0o755)
    (folder := tmp_path / "server").mkdir()
    with (
        pytest.raises(AssertionError, match="the server ended") as caught,
        serving(Setup(properties=f"python={python}\n"), folder),
    ):
        raise RuntimeError
    assert f"python: {python} cannot run workers: msx-serve is not installed there; run `" in str(caught.value)
    assert not os.listdir(folder / "temp")
