"""`msx-serve upgrade --python`: the supervisor becomes that of the new release, in place."""

from __future__ import annotations

import os
import signal
import sys
import venv
from pathlib import Path

import psutil
import pytest

from msx_frontend.assembly.status_socket import ask
from tests.e2e.server import RunningServer, new_store, pack_service, start_server, wait_until
from tests.e2e.test_supervisor import crash, memory
from tests.e2e.test_upgrade import Load, supervised, upgrade
from tests.processes import alive, children_of, command_of

pytestmark = pytest.mark.e2e

UNREADABLE = """
import sys
if "msx_frontend.supervision" in sys.orig_argv and any(one.startswith("--state") for one in sys.orig_argv):
    from msx_frontend.supervision import state
    def restore(self, given):
        raise KeyError("an odd state")
    state.SupervisorState.restore = restore
"""
OTHER_STATES = """
import msx_frontend.supervision.wire
msx_frontend.supervision.wire.STATES = (9,)
"""


def release(folder: Path, code: str = "") -> Path:
    """The interpreter of another environment, which has the packages of this one, and runs `code` first."""
    venv.create(folder, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "of_this_release.py").write_text(code)
    paths = [path for path in sys.path if Path(path).is_dir()]
    (own / "msx.pth").write_text("\n".join([*paths, "import of_this_release", ""]))
    return folder / "bin" / "python"


def python_of(server: RunningServer) -> str:
    """The interpreter of its supervisor."""
    return command_of(server.process.pid).partition(" ")[0]


def test_the_supervisor_becomes_that_of_the_new_release(tmp_path: Path) -> None:
    other = str(release(tmp_path / "other"))
    with supervised(tmp_path, "echo") as server:
        workers, load, descriptors = server.worker_pids("echo"), Load(server, 2), list[int]()
        for python in (other, sys.executable, other):
            done = upgrade(server, "--python", python)
            assert (done.returncode, done.stderr) == (0, "")
            assert python_of(server) == python
            wait_until(lambda so_far=load.answers: load.answers > so_far + 20, "it answers")  # type: ignore[misc]
            wait_until(lambda: len(children_of(server.process.pid)) == 3, "the one before has ended")
            descriptors.append(psutil.Process(server.process.pid).num_fds())
            wait_until(lambda: psutil.Process(server.process.pid).num_fds() <= descriptors[0], "it has no more of them")
        load.end()
        assert load.lost == []
        assert server.worker_pids("echo") == workers
        assert memory(server.process.pid) < 20 << 20
        crash(server)
        assert server.predict("echo", b"x").text == "x"
        assert server.worker_pids("echo") == workers


def test_its_death_leaves_nothing(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    server = start_server(tmp_path, "--models", "echo.mar", properties="supervisor=true\n", fork=False)
    server.wait_ready()
    assert upgrade(server, "--python", str(release(tmp_path / "other"))).returncode == 0
    below = children_of(server.process.pid, recursive=True)
    os.kill(server.process.pid, signal.SIGKILL)
    wait_until(lambda: not alive(below), "nothing is left")
    server.process.wait()
    server.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (UNREADABLE, "does not go on with the server as it runs: 'an odd state'"),
        (OTHER_STATES, "does not go on with its state"),
    ],
    ids=["unreadable", "of another version"],
)
def test_one_that_cannot_go_on_changes_nothing_but_the_frontend(tmp_path: Path, code: str, reason: str) -> None:
    other = str(release(tmp_path / "other", code))
    with supervised(tmp_path, "echo") as server:
        workers = server.worker_pids("echo")
        done = upgrade(server, "--python", other)
        assert done.returncode == 0
        assert done.stderr.startswith("The supervisor stays ")
        assert reason in done.stderr
        assert f"({sys.executable})" in done.stderr
        assert "Keep that environment until the server is stopped" in done.stderr
        assert python_of(server) == sys.executable
        server.wait_serving()
        shown = ask(Path(server.info["status_socket"])).supervisor
        assert shown is not None
        assert (shown["pid"], shown["python"], shown["another"]) == (server.process.pid, sys.executable, True)
        crash(server)
        assert server.predict("echo", b"x").text == "x"
        assert server.worker_pids("echo") == workers
