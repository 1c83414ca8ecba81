"""State of a server: after SIGKILL the next start has the same models, versions, defaults and worker counts."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.server import (
    RunningServer,
    new_store,
    pack_service,
    run_server,
    server_environment,
    start_server,
    wait_until,
)
from tests.processes import alive, children_of

pytestmark = pytest.mark.e2e

SLOW_TO_LOAD = """
import pathlib, time

pathlib.Path({mark!r}).touch()
time.sleep(600)
"""


def kill(server: RunningServer) -> None:
    """SIGKILL, and no worker survives it."""
    workers = children_of(server.process.pid, recursive=True)
    server.kill()
    server.close()
    wait_until(lambda: not alive(workers), "the workers ended")


def summary(server: RunningServer) -> dict[str, Any]:
    """Everything that must be the same again."""
    found: dict[str, Any] = {}
    for model in server.management.get("/models").json()["models"]:
        name = model["modelName"]
        versions = server.versions(name)
        kept = ("modelUrl", "minWorkers", "maxWorkers", "batchSize", "responseTimeout")
        found[name] = {v["modelVersion"]: {**{k: v[k] for k in kept}, "alive": len(v["workers"])} for v in versions}
        found[name]["default"] = server.describe(name)["modelVersion"]
    return found


def pack_all(folder: Path) -> Path:
    store = new_store(folder)
    pack_service("echo", store, config="minWorkers: 1\nmaxWorkers: 1\n")
    pack_service("echo", store, version="2.0", model="next")
    pack_service("env", store)
    return store


def arrange(server: RunningServer) -> dict[str, Any]:
    """Changes of every kind."""
    server.register(Path("next.mar"), model_name="echo", batch_size=4, response_timeout=33)
    server.register(Path("env.mar"), model_name="mine", initial_workers=0)
    server.register(Path("env.mar"), initial_workers=1)
    assert server.management.put("/models/echo/1.0?min_worker=2&max_worker=3&synchronous=true").status_code == 200
    assert server.management.put("/models/echo/2.0/set-default").status_code == 200
    assert server.management.delete("/models/env").status_code == 200
    return summary(server)


def test_the_next_start_has_the_same(tmp_path: Path) -> None:
    """Twice, because a restart must not change what it restores."""
    pack_all(tmp_path)
    server = start_server(tmp_path, "--models", "echo.mar")
    server.wait_ready()
    before = arrange(server)
    assert before == {
        "echo": {
            "1.0": {
                "modelUrl": "echo.mar",
                "minWorkers": 2,
                "maxWorkers": 3,
                "batchSize": 1,
                "responseTimeout": 120,
                "alive": 2,
            },
            "2.0": {
                "modelUrl": "next.mar",
                "minWorkers": 1,
                "maxWorkers": 1,
                "batchSize": 4,
                "responseTimeout": 33,
                "alive": 1,
            },
            "default": "2.0",
        },
        "mine": {
            "1.0": {
                "modelUrl": "env.mar",
                "minWorkers": 0,
                "maxWorkers": 0,
                "batchSize": 1,
                "responseTimeout": 120,
                "alive": 0,
            },
            "default": "1.0",
        },
    }
    kill(server)
    for flags in (["--models", "echo.mar"], []):
        server = start_server(tmp_path, *flags)
        server.wait_ready()
        assert summary(server) == before
        assert server.predict("echo", b"again").content == b"again"
        kill(server)


def test_ncs_neither_reads_nor_writes(tmp_path: Path) -> None:
    store = pack_all(tmp_path)
    with run_server(tmp_path, "--models", "echo.mar") as server:
        before = summary(server)
    files = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    with run_server(tmp_path, "--ncs") as server:
        assert summary(server) == {}
        server.register(Path("env.mar"))
        assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == files, "nothing beside the models"
    with run_server(tmp_path) as server:
        assert summary(server) == before


def test_another_content_on_the_command_line_wins(tmp_path: Path) -> None:
    store = pack_all(tmp_path)
    with run_server(tmp_path, "--models", "echo.mar") as server:
        server.register(Path("next.mar"), model_name="echo")
        server.management.put("/models/echo/1.0?min_worker=2&synchronous=true")
        first = server.unpacked()
    pack_service("echo", store, config="minWorkers: 1\nmaxWorkers: 1\nbatchSize: 5\n")
    with run_server(tmp_path, "--models", "echo.mar") as server:
        described = server.describe("echo")
        assert (described["modelVersion"], described["batchSize"], described["minWorkers"]) == ("1.0", 5, 1)
        assert len(server.unpacked()) == 2
        assert set(server.unpacked()) != set(first)
    with run_server(tmp_path) as server:
        assert server.describe("echo")["batchSize"] == 5


def test_archives_that_changed_or_went(tmp_path: Path) -> None:
    """Their models are FAILED, and say why to each client; the others serve."""
    store = pack_all(tmp_path)
    with run_server(tmp_path, "--models", "all") as server:
        assert sorted(summary(server)) == ["echo", "env", "next"]
    (store / "next.mar").unlink()
    pack_service("env", store, version="3.0")
    with run_server(tmp_path, ready=False) as server:
        states = {"echo": "READY", "env": "FAILED", "next": "FAILED"}

        def found() -> dict[str, str]:
            return {name: server.describe(name)["state"] for name in summary(server)}

        wait_until(lambda: found() == states, "echo serves, and the others have failed", server.tail)
        refused = server.predict("next")
        assert (refused.status_code, "next.mar" in refused.text) == (503, True)
        errors = [line["message"] for line in server.log_lines() if line["level"] == "ERROR"]
        assert any("next 2.0 could not be restored" in error and "next.mar" in error for error in errors)
        assert any("env 1.0 could not be restored" in error and "env 3.0" in error for error in errors)


class Registration(threading.Thread):
    """A synchronous registration that the server's end meets."""

    def __init__(self, server: RunningServer, archive: str) -> None:
        super().__init__()
        self._server, self._archive = server, archive
        self.reply: httpx.Response | None = None
        self.start()

    def run(self) -> None:
        with contextlib.suppress(httpx.TransportError):
            self.reply = self._server.register(Path(self._archive))

    def answer(self) -> tuple[int, str] | None:
        self.join()
        return None if self.reply is None else (self.reply.status_code, self.reply.json()["message"])


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_the_end_in_the_middle_of_a_registration(tmp_path: Path, end: str) -> None:
    """It was not confirmed, so it has not been."""
    store = pack_all(tmp_path)
    mark = tmp_path / "loading"
    folder = store / "slow"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(SLOW_TO_LOAD.format(mark=str(mark)))
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "slow", "handler": "h.py"}}')
    server = start_server(tmp_path, "--models", "echo.mar")
    server.wait_ready()
    before = summary(server)
    call = Registration(server, "slow")
    wait_until(mark.exists, "the model is loading")
    if end == "kill":
        kill(server)
        assert call.answer() is None
    else:
        assert server.terminate() == 0
        assert call.answer() == (503, "The server is shutting down: models are not changed any more.")
        server.close()
    with run_server(tmp_path) as server:
        assert summary(server) == before


def begin_to_unpack(server: RunningServer, cache: Path) -> Registration:
    """Stop the server in the middle. A busy machine may unpack between two looks: then it is done again."""
    call, process = Registration(server, "big.mar"), psutil.Process(server.process.pid)
    wait_until(lambda: list(cache.glob(".tmp-*/weights.bin")) or not call.is_alive(), "the archive is unpacked")
    process.suspend()
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "the server stands still")
    if list(cache.glob(".tmp-*")):
        return call
    process.resume()
    call.join()
    assert server.management.delete("/models/big").status_code == 200
    return begin_to_unpack(server, cache)


def test_sigkill_while_unpacking(tmp_path: Path) -> None:
    """Half unpacked archives are thrown away at the next start."""
    store = pack_all(tmp_path)
    server = start_server(tmp_path, "--models", "echo.mar")
    server.wait_ready()
    before = summary(server)
    make_big_archive(store / "big.mar", megabytes=200)
    cache = store / ".msx" / "models"
    call = begin_to_unpack(server, cache)
    kill(server)
    assert call.answer() is None
    assert list(cache.glob(".tmp-*")), "the kill came too late to prove anything"
    with run_server(tmp_path) as server:
        assert summary(server) == before
        assert not list(cache.glob(".tmp-*"))
        assert len(server.unpacked()) == 1


def test_a_backup_of_a_running_server_is_restored(tmp_path: Path) -> None:
    """By the command, by SQLite's own way to copy, which `sqlite3 .backup` is, and by a plain copy of the file."""
    pack_all(tmp_path)
    with run_server(tmp_path, "--models", "echo.mar") as server:
        before = arrange(server)
        state = server.store / ".msx" / "state.db"
        command = [sys.executable, "-m", "msx_frontend.cli.main", "--backup", "b", "--model-store", "store"]
        env = server_environment(tmp_path)
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (
            f"b/state.db: 3 versions of models, 0 workflows (schema 5), of {state}. "
            "The archives that it names are not in it.\n"
        )
        with closing(sqlite3.connect(state)) as source, closing(sqlite3.connect(tmp_path / "plain.db")) as copy:
            source.backup(copy)
        shutil.copy(state, tmp_path / "copy.db")
        assert server.management.delete("/models/mine").status_code == 200
    with (
        closing(sqlite3.connect(tmp_path / "plain.db")) as plain,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        assert list(plain.iterdump()) == list(copy.iterdump())
    shutil.copy(tmp_path / "b" / "state.db", state)
    with run_server(tmp_path) as server:
        assert summary(server) == before


def make_big_archive(path: Path, megabytes: int) -> None:
    manifest = {"model": {"modelName": "big", "handler": "h.py"}}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
        file.writestr("h.py", "def handle(data, context):\n    return data\n")
        with file.open("weights.bin", "w", force_zip64=True) as member:
            for _ in range(megabytes):
                member.write(bytes(1 << 20))


def test_a_full_disk_under_the_state(tmp_path: Path) -> None:
    """Changes that cannot be remembered are not done; a limit on the size of files stands for the disk."""
    pack_all(tmp_path)
    with run_server(tmp_path, "--models", "echo.mar") as server:
        before = summary(server)
        page = 4096  # SQLite notes one and its own header before it changes anything
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (page, resource.RLIM_INFINITY))
        refused = [
            server.register(Path("env.mar")),
            server.register(Path("next.mar"), model_name="echo"),
            server.management.delete("/models/echo"),
            server.management.put("/models/echo?min_worker=2"),
            server.management.put("/models/echo?min_worker=2&synchronous=true"),
        ]
        for reply in refused:
            assert (reply.status_code, reply.json()["type"]) == (500, "InternalServerException")
            assert "state.db: the server's state cannot be written" in reply.json()["message"]
        assert summary(server) == before
        assert server.predict("echo", b"x").status_code == 200
        assert len(server.unpacked()) == 1
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert server.register(Path("env.mar")).status_code == 200
    with run_server(tmp_path) as server:
        assert sorted(summary(server)) == ["echo", "env"]
