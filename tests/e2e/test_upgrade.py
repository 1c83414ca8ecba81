"""Another server in the place of the one that runs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from msx_frontend import __version__
from tests.e2e.server import (
    RunningServer,
    client_of,
    new_store,
    pack_service,
    run_server,
    server_environment,
    wait_until,
)
from tests.e2e.test_supervisor import crash
from tests.forked import run_forked
from tests.plugins import install_module
from tests.processes import is_alive, unreaped

pytestmark = pytest.mark.e2e

SUPERVISED = "supervisor=true\n"


@contextmanager
def supervised(folder: Path, *models: str, properties: str = "", tokens: bool = False) -> Iterator[RunningServer]:
    for model in models:
        pack_service(model, new_store(folder), config="minWorkers: 2\nmaxWorkers: 2\n")
    given = SUPERVISED + properties
    with run_server(folder, "--models", "all", properties=given, tokens=tokens, fork=False) as server:
        yield server


def upgrade(server: RunningServer, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msx_frontend.cli.main", "upgrade", "--state-dir", str(server.state), *flags]
    return run_forked(command, env=server_environment(server.folder))


def frontend(server: RunningServer) -> int:
    return int(json.loads((server.state / "server.json").read_text())["frontend"])


class Load:
    """Clients that ask again and again, each on one connection while the server keeps it."""

    def __init__(self, server: RunningServer, clients: int = 8) -> None:
        self.answers, self.lost = 0, list[str]()
        self._address, self._over = server.info["inference"], threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        with client_of(self._address) as client:
            while not self._over.is_set():
                try:
                    reply = client.post("/predictions/echo", content=b"x")
                    assert (reply.status_code, reply.text) == (200, "x"), reply.text
                    self.answers += 1
                except (httpx.TransportError, AssertionError) as error:
                    self.lost.append(repr(error))

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def test_nobody_notices(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo") as server:
        workers, first = server.worker_pids("echo"), frontend(server)
        load = Load(server)
        for _ in range(2):
            before = frontend(server)
            done = upgrade(server)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == f"The new frontend (pid {frontend(server)}) has taken over.\n"
            assert frontend(server) != before
            wait_until(lambda so_far=load.answers: load.answers > so_far + 20, "it answers")  # type: ignore[misc]
        load.end()
        assert load.lost == []
        assert server.worker_pids("echo") == workers
        wait_until(lambda: not unreaped([first]), "the first frontend has ended")


def test_what_takes_longer_is_cut(tmp_path: Path) -> None:
    with supervised(tmp_path, "slow", properties="upgrade_timeout=0.5\n") as server:
        mark, told = tmp_path / "mark", list[str]()

        def ask() -> None:
            try:
                server.predict("slow", {"seconds": 60, "mark": str(mark)})
            except httpx.TransportError as error:
                told.append(repr(error))

        thread = threading.Thread(target=ask)
        thread.start()
        wait_until(mark.exists, "the handler works")
        assert upgrade(server).returncode == 0
        thread.join()
        assert len(told) == 1
        wait_until(lambda: "cancelled" in mark.read_text(), "the handler hears that its client has left")
        server.wait_serving()


def test_a_server_that_does_not_come_up_changes_nothing(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo") as server:
        before, workers = frontend(server), server.worker_pids("echo")
        config = tmp_path / "config.properties"
        good = config.read_text()
        config.write_text(good + "job_queue_size=none\n")
        done = upgrade(server)
        assert done.returncode == 1
        assert done.stderr.startswith("Not upgraded: ")
        assert "job_queue_size" in done.stderr
        config.write_text(good + "job_queue_size=7\n")
        assert upgrade(server).returncode == 0
        assert frontend(server) != before
        server.wait_serving()
        assert server.worker_pids("echo") == workers


@pytest.mark.parametrize("key", ["management_address=http://127.0.0.1:", "grpc_inference_port="])
def test_an_address_that_is_taken_changes_nothing(tmp_path: Path, key: str) -> None:
    with supervised(tmp_path, "echo") as server, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"{key}{other.getsockname()[1]}\n"
        config = tmp_path / "config.properties"
        refused = refused_upgrade(server, lambda: config.write_text(config.read_text() + taken))
        assert f"127.0.0.1:{other.getsockname()[1]}" in refused


FAILS_LATE = """
from msx_core.start_errors import StartError
from msx_frontend.assembly.served_models import ServedModels

async def load(self):
    raise StartError("The plugin cannot go on.")

ServedModels.load = load

async def app(scope, receive, send):
    pass
"""


def test_one_that_fails_when_it_has_all_is_followed_by_one_with_the_configuration_before(tmp_path: Path) -> None:
    """The rehearsal has not found why."""
    install_module(tmp_path / "plugins", "fails", FAILS_LATE, apps={"fails": "fails:app"})
    with supervised(tmp_path, "echo", properties="job_queue_size=11\n") as server:
        workers, config = server.worker_pids("echo"), tmp_path / "config.properties"
        good = config.read_text()
        config.write_text(f"{good}job_queue_size=12\nplugins_path={tmp_path / 'plugins'}\n")
        load, done = Load(server, 2), upgrade(server)
        assert done.returncode == 1
        assert "The plugin cannot go on." in done.stderr
        assert "is started again with its configuration, and takes the workers over" in done.stderr
        wait_until(lambda so_far=load.answers: load.answers > so_far + 20, "it answers")  # type: ignore[misc]
        load.end()
        assert load.lost == []
        server.wait_serving()
        crash(server)
        assert (server.worker_pids("echo"), server.describe("echo")["jobQueueStatus"]["remainingCapacity"]) == (
            workers,
            11,
        )
        assert "is not read, because a server with it did not come up" in server.log.read_text()
        config.write_text(f"{good}job_queue_size=13\n")
        assert upgrade(server).returncode == 0
        server.wait_serving()
        assert (server.worker_pids("echo"), server.describe("echo")["jobQueueStatus"]["remainingCapacity"]) == (
            workers,
            13,
        )


def test_a_model_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    flags = "--models", "echo=echo.mar"
    with run_server(tmp_path, *flags, properties=SUPERVISED, fork=False) as server:
        assert "echo.mar is neither" in refused_upgrade(server, (server.store / "echo.mar").unlink)


def test_another_state_folder_changes_nothing(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo") as server:
        config, other = tmp_path / "config.properties", tmp_path / "other"
        refused = refused_upgrade(server, lambda: config.write_text(f"{config.read_text()}state_dir={other}\n"))
        assert refused.startswith(f"state_dir, model_store: the state folder {other} is not that of the server that")


def test_a_configuration_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    """An upgrade says so; a crash is followed with what it was."""
    with supervised(tmp_path, "echo", properties="job_queue_size=11\n") as server:
        workers, config = server.worker_pids("echo"), tmp_path / "config.properties"
        assert "file not found" in refused_upgrade(server, lambda: config.rename(tmp_path / "aside"))
        crash(server)
        assert (server.worker_pids("echo"), server.describe("echo")["jobQueueStatus"]["remainingCapacity"]) == (
            workers,
            11,
        )
        config.write_text((tmp_path / "aside").read_text())


def test_a_crash_keeps_the_state_folder(tmp_path: Path) -> None:
    """Another one is for the next start: a server there would have none of the models."""
    with supervised(tmp_path, "echo", properties="job_queue_size=11\n") as server:
        ready = lambda: server.describe("echo")["state"] == "READY"  # noqa: E731
        wait_until(ready, "both workers are ready: one that has not begun ends with its frontend", server.tail)
        workers, config, other = server.worker_pids("echo"), tmp_path / "config.properties", tmp_path / "other"
        good = config.read_text()
        (other / "run").mkdir(parents=True)  # of an earlier server
        config.write_text(f"{good}job_queue_size=12\nstate_dir={other}\n")
        crash(server)
        assert (server.worker_pids("echo"), server.describe("echo")["jobQueueStatus"]["remainingCapacity"]) == (
            workers,
            11,
        )
        said = f"state_dir, model_store: the state folder {other} is not that of the server that runs"
        assert said in server.log.read_text()
        config.write_text(good)


def refused_upgrade(server: RunningServer, change: Callable[[], object]) -> str:
    """Why, after a change that keeps another server from starting; the one that runs goes on."""
    before, workers = frontend(server), server.worker_pids("echo")
    change()
    done = upgrade(server)
    assert (done.returncode, done.stdout) == (1, "")
    assert (frontend(server), server.worker_pids("echo")) == (before, workers)
    assert server.predict("echo", b"x").text == "x"
    return done.stderr.removeprefix("Not upgraded: ")


def test_keys_stay(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo", tokens=True) as server:
        assert upgrade(server).returncode == 0
        assert server.predict("echo", b"x").text == "x"
    assert not Path(server.info["key_file"]).exists()


def test_without_a_supervisor_it_is_refused(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        done = upgrade(server)
        assert (done.returncode, done.stdout) == (1, "")
        assert "set supervisor=true" in done.stderr


def test_a_program_that_is_none_is_refused(tmp_path: Path) -> None:
    (none := tmp_path / "python").write_text("")
    with supervised(tmp_path, "echo") as server:
        done = upgrade(server, "--python", str(none))
        assert (done.returncode, done.stderr) == (1, f"Not upgraded: {none} cannot be run: Permission denied.\n")
        done = upgrade(server, "--python", "/bin/false")
        assert done.returncode == 1
        assert "The new server (/bin/false) ended with exit code 1 while starting" in done.stderr
        assert is_alive(frontend(server))


def test_workers_are_replaced_one_after_the_other(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo") as server:
        before = server.worker_pids("echo")
        load = Load(server)
        done = upgrade(server, "--workers")
        assert done.returncode == 0
        assert done.stdout.endswith("has taken over. Its workers are replaced one after the other.\n")
        wait_until(lambda: not {*before} & {*server.worker_pids("echo")}, "others are there", server.tail)
        wait_until(lambda: len(server.worker_pids("echo")) == 2, "there are two")
        load.end()
        assert load.lost == []


def test_a_restart_keeps_workers_which_say_who_started_them(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo") as server:
        before = server.worker_pids("echo")
        assert "release" not in server.describe("echo")["workers"][0]
        command = [sys.executable, "-m", "msx_frontend.cli.main", "restart", "--state-dir", str(server.state)]
        done = run_forked(command, env=server_environment(server.folder))
        assert (done.returncode, done.stderr) == (0, "")
        server.wait_serving()
        assert server.worker_pids("echo") == before
        assert {one["release"] for one in server.describe("echo")["workers"]} == {__version__}


SEQUENCES = "sequenceBatching: true\nmaxNumSequence: 8\nsequenceMaxIdleMSec: 60000\nminWorkers: 2\nmaxWorkers: 2\n"


def add(server: RunningServer, sequence: str, number: int, **headers: str) -> httpx.Response:
    of_sequence = {"ts_request_sequence_id": sequence, **headers}
    return server.predict("sums", str(number), headers=of_sequence)


def test_counters_and_open_sequences_go_on(tmp_path: Path) -> None:
    pack_service("sums", new_store(tmp_path), config=SEQUENCES)
    with supervised(tmp_path, "echo") as server:
        for number in range(1, 4):
            for sequence in "abcd":
                assert add(server, sequence, number).json() == {"sum": sum(range(number + 1))}
            assert server.predict("echo", b"x").text == "x"
            assert upgrade(server).returncode == 0
            assert server.metric("msx_requests_total", model="sums", code="200") == 4 * number
            assert server.metric("msx_request_seconds_count", model="echo") == number
            assert server.metric("ts_inference_requests_total", model_name="echo") == number
            with client_of(server.info["inference"]) as anew:
                (shown,) = anew.get("/v2/models/echo/stats").json()["model_stats"]
                assert (shown["inference_count"], shown["execution_count"]) == (number, number)
        assert add(server, "a", 4, ts_request_sequence_end="true").json() == {"total": 10}


def test_the_next_server_knows_what_late_requests_to_the_one_before_begin_and_end(tmp_path: Path) -> None:
    """On connections that it has kept, unless this machine is slow: then it has closed them."""
    pack_service("sums", new_store(tmp_path), config=SEQUENCES)
    with supervised(tmp_path) as server, ExitStack() as clients:
        kept = [clients.enter_context(client_of(server.info["inference"])) for _ in range(4)]

        def ask(client: httpx.Client, sequence: str, number: int, **headers: str) -> httpx.Response:
            given = {"ts_request_sequence_id": sequence, **headers}
            return client.post("/predictions/sums", content=str(number), headers=given)

        for client, sequence in zip(kept, "abcd", strict=True):
            assert ask(client, sequence, 1).json() == {"sum": 1}
        assert upgrade(server).returncode == 0
        assert ask(kept[0], "a", 2, ts_request_sequence_end="true").json() == {"total": 3}
        for client, begun in zip(kept[1:], "xyz", strict=True):
            assert ask(client, begun, 4).json() == {"sum": 4}
        with client_of(server.info["inference"]) as anew:
            ended = ask(anew, "a", 3)
            assert ended.status_code == 503
            assert "sequence a has ended: a request ended it" in ended.json()["message"]
            assert [ask(anew, begun, 5).json() for begun in "xyz"] == [{"sum": 9}] * 3


def test_sequences_that_a_crash_has_lost_are_told(tmp_path: Path) -> None:
    pack_service("sums", new_store(tmp_path), config=SEQUENCES)
    with supervised(tmp_path) as server:
        assert add(server, "a", 1).json() == {"sum": 1}
        crash(server)
        lost = add(server, "a", 2)
        assert lost.status_code == 503
        assert "sequence a has ended: the server or its worker was restarted" in lost.json()["message"]
        assert add(server, "b", 2, ts_request_sequence_start="true").json() == {"sum": 2}


def test_a_renewal_of_workers_goes_on_after_a_crash(tmp_path: Path) -> None:
    with supervised(tmp_path, "echo") as server:
        before = {*server.worker_pids("echo")}
        assert upgrade(server, "--workers").returncode == 0
        crash(server)
        wait_until(lambda: not before & {*server.worker_pids("echo")}, "others are there", server.tail)
        wait_until(lambda: len(server.worker_pids("echo")) == 2, "there are two")
        server.wait_serving()
        later = {*server.worker_pids("echo")}
        assert upgrade(server).returncode == 0
        server.wait_serving()
        assert {*server.worker_pids("echo")} == later


def test_a_stop_while_the_server_before_has_requests_leaves_nothing(tmp_path: Path) -> None:
    with supervised(tmp_path, "slow") as server:
        mark = tmp_path / "mark"
        thread = threading.Thread(target=ask_long, args=[server, mark])
        thread.start()
        wait_until(mark.exists, "the handler works")
        assert upgrade(server).returncode == 0
        assert server.terminate() == 0
        thread.join()
        assert not (server.state / "run").exists()
        assert not [*server.state.glob("*.sock")]


def ask_long(server: RunningServer, mark: Path) -> None:
    with suppress(httpx.TransportError):
        server.predict("slow", {"seconds": 5, "mark": str(mark)})
