"""A server whose workers outlive a frontend that crashes."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import httpx
import psutil
import pytest

from tests.e2e.groups import Recorder
from tests.e2e.server import (
    FREE_PORTS,
    RunningServer,
    new_store,
    pack_service,
    run_server,
    start_server,
    wait_until,
)
from tests.e2e.test_command_line import Terminal
from tests.other_user import UID, needs_root, open_folder, others_python
from tests.phrases import did_not_respond
from tests.processes import alive, children_of, command_of, is_alive, unreaped

pytestmark = pytest.mark.e2e

SUPERVISED = "supervisor=true\n"
MODELS = {
    "echo": ("echo", ""),
    "slow": ("slow", ""),
    "tasks": ("async_echo", ""),
    "numbers": ("gated_stream:generator", ""),
    "steps": ("three_steps", "overlap: true\nbatchSize: 4\n"),
    "turns": ("gated_stream:generator", "continuousBatching: true\nbatchSize: 2\n"),
}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("supervised")
    for model, (service, config) in MODELS.items():
        name, _, function = service.partition(":")
        pack_service(name, new_store(folder), model=model, function=function, config=f"{config}minWorkers: 1\n")
    with run_server(folder, "--models", "all", properties=SUPERVISED, fork=False) as running:
        yield running


def frontends(server: RunningServer) -> list[psutil.Process]:
    """Children of the supervisor. Those that have just ended are none."""
    return children_of(server.process.pid, "msx_frontend.cli.main")


def frontend(server: RunningServer) -> psutil.Process:
    return frontends(server)[0]


def crash(server: RunningServer) -> None:
    """SIGKILL; returns when another frontend answers."""
    killed = frontend(server)
    killed.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(killed), "the frontend has ended")
    wait_until(lambda: _is_ready(server), "another frontend answers", server.tail)
    server.wait_serving()


def _is_ready(server: RunningServer) -> bool:
    """A connection to the frontend that has crashed is reset."""
    try:
        return server.inference.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def workers(server: RunningServer) -> dict[str, list[int]]:
    return {model: server.worker_pids(model) for model in MODELS}


def test_workers_go_on_with_the_next_frontend(server: RunningServer) -> None:
    before = workers(server)
    for number in range(3):
        crash(server)
        assert server.predict("echo", str(number)).text == str(number)
    assert workers(server) == before


def test_the_supervisor_gives_back_what_the_start_needed(server: RunningServer) -> None:
    """It becomes a small program when the start is over, and goes on with its frontend and its workers."""
    supervisor, answers, before = psutil.Process(server.process.pid), frontend(server), workers(server)
    Path(supervisor.cwd(), "signal.py").write_text("raise SystemExit(9)")  # of a user, in the working folder
    wait_until(lambda: "msx_frontend.supervision" in command_of(supervisor), "it is small", server.tail)
    assert server.predict("echo", "x").text == "x"
    assert memory(supervisor.pid) < 20 << 20
    assert (frontends(server), workers(server)) == ([answers], before)
    crash(server)
    assert server.predict("echo", "y").text == "y"
    assert workers(server) == before
    assert "the supervisor" not in server.tail()


def test_each_kind_of_handler_answers_the_next_frontend(server: RunningServer, tmp_path: Path) -> None:
    before = workers(server)
    crash(server)
    assert server.predict("slow", {"seconds": 0}).json() == {"slept": 0}
    assert server.predict("tasks", {"seconds": 0}).status_code == 200
    assert server.predict("steps", b"x").json()[0] == "eA=="
    for model in ("numbers", "turns"):
        assert server.predict(model, {"count": 1, "dir": str(tmp_path)}).text == "1\n"
    assert workers(server) == before


@pytest.mark.parametrize("model", ["slow", "tasks"])
def test_requests_that_ran_are_told(server: RunningServer, tmp_path: Path, model: str) -> None:
    before, mark, told = workers(server), tmp_path / "mark", list[type[Exception]]()

    def ask() -> None:
        try:
            server.predict(model, {"seconds": 0.5, "hold": str(tmp_path / "hold"), "mark": str(mark)})
        except httpx.TransportError as error:
            told.append(type(error))

    thread = Thread(target=ask)
    thread.start()
    wait_until(mark.exists, "the handler works")
    crash_begun(server)
    (tmp_path / "hold").touch()
    thread.join()
    server.wait_ready()
    assert len(told) == 1
    assert server.predict(model, {"seconds": 0}).status_code == 200
    assert workers(server) == before


def crash_begun(server: RunningServer) -> None:
    """SIGKILL; returns when another frontend answers, whether its models do or not."""
    killed = frontend(server)
    killed.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(killed), "the frontend has ended")
    wait_until(lambda: _lives(server), "another frontend answers", server.tail)


def _lives(server: RunningServer) -> bool:
    try:
        return server.inference.get("/livez").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("model", ["numbers", "turns"])
def test_streams_break_off_and_the_handler_hears_that_nobody_reads(
    server: RunningServer, tmp_path: Path, model: str
) -> None:
    before = workers(server)
    order = {"count": 3, "dir": str(tmp_path)}
    with server.inference.stream("POST", f"/predictions/{model}", json=order) as reply:
        chunks = reply.iter_text()
        assert next(chunks) == "1\n"
        crash_begun(server)
        with pytest.raises(httpx.TransportError):
            next(chunks)
    (tmp_path / "2").touch()
    wait_until(lambda: "closed" in (tmp_path / "mark").read_text(), "the handler has ended", server.tail)
    server.wait_ready()
    assert server.predict(model, {"count": 1, "dir": str(tmp_path)}).text == "1\n"
    assert workers(server) == before


def test_a_worker_that_hangs_has_as_long_as_any_call(tmp_path: Path) -> None:
    """It does not even hear that its clients are gone; a start may take much longer."""
    mark, config = tmp_path / "mark", "minWorkers: 1\nresponseTimeout: 2\nstartupTimeout: 600\n"
    pack_service("hang", new_store(tmp_path), config=config)

    def ask(server: RunningServer) -> None:
        with contextlib.suppress(httpx.TransportError):
            server.predict("hang", str(mark))

    with run_server(tmp_path, "--models", "hang=hang.mar", properties=SUPERVISED, fork=False) as server:
        before, thread = server.worker_pids("hang"), Thread(target=ask, args=[server])
        thread.start()
        wait_until(mark.exists, "the handler hangs")
        crash_begun(server)
        thread.join()
        server.wait_ready()
        assert server.worker_pids("hang") != before
        assert did_not_respond("2 s") in server.log.read_text()


def test_ranks_of_a_group_go_on(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "tp2")
    with run_server(tmp_path, "--models", "tp2=tp2.mar", properties=SUPERVISED, fork=False) as server:
        ranks = ranks_of(server)
        for number in range(2):
            crash(server)
            assert server.predict("tp2", b"x").status_code == 200, number
        assert len(ranks) == 2
        assert ranks_of(server) == ranks
        assert len([line for line in recorder.of_rank(1) if "env" in line]) == 1


def ranks_of(server: RunningServer) -> list[int]:
    return sorted(one.pid for one in children_of(server.process.pid, "msx_backend.worker"))


def test_a_group_whose_settings_have_changed_starts_anew(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo=echo.mar", properties=SUPERVISED, fork=False) as server:
        before = server.worker_pids("echo")
        (tmp_path / "config.properties").write_text((tmp_path / "config.properties").read_text() + LARGER)
        crash(server)
        assert server.predict("echo", b"x").text == "x"
        assert server.worker_pids("echo") != before
        wait_until(lambda: not unreaped(before), "the worker before has ended")


LARGER = "max_response_size=7000000\n"


def test_a_frontend_that_does_not_come_back_ends_the_server(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    properties = f"{SUPERVISED}keep_groups=2\n"
    server = start_server(tmp_path, "--models", "echo=echo.mar", properties=properties, fork=False)
    server.wait_ready()
    below = children_of(server.process.pid, recursive=True)
    (server.store / "echo.mar").unlink()
    frontend(server).send_signal(signal.SIGKILL)
    assert server.process.wait(60) == 1
    server.close()
    assert "have waited for a frontend for longer than keep_groups" in server.log.read_text()
    wait_until(lambda: not alive(below), "nothing is left")


def test_the_death_of_the_supervisor_leaves_nothing(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    properties, models = SUPERVISED, ("--models", "echo=echo.mar")
    server = start_server(tmp_path, *models, properties=properties, fork=False)
    server.wait_ready()
    below = children_of(server.process.pid, recursive=True)
    assert len(below) >= 2  # the frontend and the worker, and a program that is tried
    os.kill(server.process.pid, signal.SIGKILL)
    wait_until(lambda: not alive(below), "nothing is left")
    server.process.wait()
    server.close()
    with run_server(tmp_path, *models, properties=properties, fork=False) as again:
        assert again.predict("echo", b"x").text == "x"


def memory(pid: int) -> int:
    """Resident bytes."""
    return int(psutil.Process(pid).memory_info().rss)


def test_the_supervisor_alone_may_have_more_open_files(tmp_path: Path) -> None:
    """It keeps some for each worker, which has the usual limit, whichever frontend has started it."""
    pack_service("echo", new_store(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (usual := min(soft, hard - 1), hard))
    try:
        server = start_server(tmp_path, "--models", "echo=echo.mar", properties=SUPERVISED, fork=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    server.wait_ready()
    assert _open_files(server.process.pid) == (hard, hard)
    for _ in range(2):
        (pid,) = server.worker_pids("echo")
        assert _open_files(pid) == (usual, hard)
        crash(server)
        assert server.worker_pids("echo") == [pid]
        server.kill_worker(pid, "echo")
    assert server.terminate() == 0
    server.close()


def _open_files(pid: int) -> tuple[int, int]:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)


@needs_root
def test_workers_of_another_user_go_on() -> None:
    with open_folder() as folder:
        python, env = others_python()
        pack_service("echo", new_store(folder), model="one")
        properties = f"{SUPERVISED}python={python}\nworker_user={UID}\n"
        with run_server(folder, "--models", "one.mar", properties=properties, env=env, fork=False) as server:
            (pid,) = server.worker_pids("one")
            crash(server)
            assert server.worker_pids("one") == [pid]
            assert psutil.Process(pid).uids().real == UID
            assert server.predict("one", b"x").text == "x"


def test_a_server_in_the_background(tmp_path: Path) -> None:
    pack_service("echo", tmp_path)
    (tmp_path / "config.properties").write_text(FREE_PORTS + SUPERVISED)
    terminal = Terminal(tmp_path)
    try:
        started = terminal.serve("--start", "--wait", "--models", "echo.mar", "--dt")
        assert (started.code, started.err) == (0, "")
        supervisor, killed = psutil.Process(started.pid), _frontend_of(tmp_path)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: _frontend_of(tmp_path) != killed, "another frontend answers")
        wait_until(lambda: "READY" in terminal.serve("--status").out, "its model serves")
        assert f"running (pid {started.pid})" in terminal.serve("--status").out
        assert terminal.serve("upgrade").code == 0
        assert terminal.serve("--stop").code == 0
        wait_until(lambda: not is_alive(supervisor), "the supervisor has ended")
        assert not [*(tmp_path / ".msx").glob("*.sock")]
    finally:
        terminal.close()


def _frontend_of(folder: Path) -> int:
    described: dict[str, int] = json.loads((folder / ".msx" / "server.json").read_text())
    return described["frontend"]


def test_a_server_that_cannot_come_up_is_stopped(tmp_path: Path) -> None:
    """It has crashed, and its supervisor tries again and again."""
    pack_service("echo", tmp_path)
    (tmp_path / "config.properties").write_text(FREE_PORTS)
    terminal = Terminal(tmp_path)
    try:
        started = terminal.serve("--start", "--wait", "--models", "echo.mar", "--dt")
        below = children_of(started.pid, recursive=True)
        (tmp_path / "echo.mar").unlink()
        os.kill(_frontend_of(tmp_path), signal.SIGKILL)
        log = tmp_path / ".msx" / "logs" / "msx.log"
        wait_until(lambda: log.read_text().count("another takes its workers over") > 2, "it crashes in a loop")
        assert f"running (pid {started.pid})" in terminal.serve("--status", "--model-store", ".").out
        (tmp_path / "other.properties").write_text(FREE_PORTS)
        assert "is already running" in terminal.serve("--start", "--ts-config", "other.properties").err
        stopped = terminal.serve("--stop")
        assert (stopped.code, stopped.out) == (0, "MSX has stopped.\n")
        wait_until(lambda: not alive(below), "nothing is left")
    finally:
        terminal.close()


def test_a_start_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.properties").write_text(FREE_PORTS + SUPERVISED + "accelerator=nothing\n")
    said = Terminal(tmp_path).serve("--start", "--dt")
    assert (said.code, said.out) == (1, "")
    assert "accelerator" in said.err
