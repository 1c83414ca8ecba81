"""A supervised server where it is not started from a terminal: as a container's first process, and where one folder can
be written, as another user."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.confined import confined
from tests.e2e.server import FREE_PORTS, RunningServer, pack_service, server_environment, wait_until
from tests.e2e.test_upgrade import SUPERVISED
from tests.frontend.cli.test_first_process import NAMESPACE
from tests.processes import alive, children_of, command_of

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(300)]

CLI = (sys.executable, "-m", "msx_frontend.cli.main")


@contextmanager
def served(folder: Path, before: Sequence[str], *flags: str) -> Iterator[RunningServer]:
    """`before` it stands on the command line; `folder/state` is what it may write. At the end nothing is left."""
    (store := folder / "store").mkdir()
    (state := folder / "state").mkdir(exist_ok=True)
    (config := folder / "config.properties").write_text(FREE_PORTS + SUPERVISED)
    pack_service("echo", store)
    places = ["--model-store", str(store), "--state-dir", str(state), "--ts-config", str(config)]
    command = [*before, *CLI, *flags, *places, "--models", "echo.mar", "--disable-token-auth"]
    with (log := folder / "server.log").open("w") as output:
        process = subprocess.Popen(command, env=server_environment(state), stdout=output, stderr=output)
    stack = contextlib.ExitStack()
    try:
        info = wait_until(lambda: _read(state / "server.json"), "it answers", log.read_text)
        server = RunningServer(process, json.loads(info), folder, log)
        stack.callback(server.close)
        server.wait_ready()
        below = children_of(process.pid, recursive=True)
        yield server
        below += children_of(process.pid, recursive=True)
        first_of(process).terminate()
        assert process.wait(60) == 0, log.read_text()
        wait_until(lambda: not alive(below), "nothing is left")
        assert not {"run", "server.json"} & {path.name for path in state.iterdir()}
    finally:
        stack.close()
        process.kill()
        process.wait()


def first_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    """The process that a container's end signals."""
    own = psutil.Process(process.pid)
    return children_of(own)[0] if own.name() == "unshare" else own


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def supervisor(server: RunningServer) -> psutil.Process:
    own = first_of(server.process)
    names = (" msx_frontend.supervision ", " msx_frontend.cli.main ")
    below = [own, *children_of(own, recursive=True)]
    return next(one for one in below if any(name in command_of(one) for name in names))


def frontends(server: RunningServer) -> list[psutil.Process]:
    return children_of(supervisor(server), " msx_frontend.cli.main ")


def is_replaced(server: RunningServer, before: psutil.Process) -> bool:
    """By one that serves."""
    if before in (now := frontends(server)) or len(now) != 1:
        return False
    with contextlib.suppress(httpx.TransportError):
        return server.predict("echo", b"x").text == "x"
    return False


def goes_on(server: RunningServer, upgrade: Sequence[str]) -> None:
    """By the same worker, after a crash of the frontend, and after an upgrade by this command."""
    workers, (first,) = server.worker_pids("echo"), frontends(server)
    first.kill()
    wait_until(lambda: is_replaced(server, first), "another frontend serves", server.tail)
    (second,) = frontends(server)
    done = subprocess.run(upgrade, env=server_environment(server.folder / "state"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: is_replaced(server, second), "the next one serves", server.tail)
    assert server.worker_pids("echo") == workers


def test_a_user_who_may_write_one_folder(tmp_path: Path) -> None:
    (state := tmp_path / "state").mkdir()
    for folder in (tmp_path, *tmp_path.parents):  # else pytest's, which are root's alone
        if folder.is_relative_to("/tmp/pytest-of-root"):
            folder.chmod(0o755)
    with served(tmp_path, confined(state), "--foreground") as server:
        assert {one.uids().real for one in (supervisor(server), *frontends(server))} == {65534}
        goes_on(server, [*CLI, "restart", "--state-dir", str(state)])


@pytest.mark.skipif(NAMESPACE is None, reason="this user cannot make a pid namespace")
def test_the_first_process_of_a_container(tmp_path: Path) -> None:
    assert NAMESPACE is not None
    with served(tmp_path, NAMESPACE, "--start") as server:
        target = str(first_of(server.process).pid)
        enter = [shutil.which("nsenter") or "nsenter", "--target", target, "--pid", "--mount"]
        goes_on(server, [*enter, *CLI, "restart", "--state-dir", str(tmp_path / "state")])
