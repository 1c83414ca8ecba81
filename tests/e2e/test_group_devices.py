"""Which devices the ranks of a group see, with simulated NPUs, and when others may have them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.groups import LAYOUTS, Recorder, ask, fault_model, ranks, scale
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, server_environment, wait_until

pytestmark = pytest.mark.e2e

EIGHT = "simulate_devices=8\n"
TP4 = "parallelType: tp\nmsrun: {nproc-per-node: 4}\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    new_store(tmp_path)
    with run_server(tmp_path, properties=EIGHT) as running:
        yield running


def visible(records: Path) -> list[tuple[int, str, str]]:
    """Rank, ASCEND_RT_VISIBLE_DEVICES and DEVICE_ID of all ranks that have started."""
    seen = []
    for file in sorted(records.iterdir()):
        for line in file.read_text().splitlines():
            if env := json.loads(line).get("env"):
                seen.append((int(env["RANK_ID"]), env["ASCEND_RT_VISIBLE_DEVICES"], env["DEVICE_ID"]))
    return seen


def register(server: RunningServer, archive: Path, workers: int = 1) -> tuple[int, str]:
    reply = server.register(archive, initial_workers=workers)
    body = reply.json()
    return reply.status_code, "" if reply.status_code == 200 else body.get("message") or body["status"]


def recorded(folder: Path, model: str, config: str) -> tuple[Path, Path]:
    """Archive and folder of its records."""
    records = folder / f"records-{model}"
    records.mkdir()
    text = f"{config}folder: {records}\n"
    return pack_service("parallel_record", new_store(folder), model=model, config=text), records


def devices(server: RunningServer, model: str) -> list[str | None]:
    return [worker.get("devices") for worker in server.describe(model)["workers"]]


SEEDS = {
    "nproc-per-node 4 on 8 devices": (TP4, ["0,1,2,3", "4,5,6,7"]),
    "deviceIds [2, 3, 4, 5], nproc-per-node 2": (LAYOUTS["tp2"] + "deviceIds: [2, 3, 4, 5]\n", ["2,3", "4,5"]),
    "deviceIds [2, 3, 4, 5, 6, 7, 0, 1], pptp 4": (
        LAYOUTS["pptp4"] + "deviceIds: [2, 3, 4, 5, 6, 7, 0, 1]\n",
        ["2,3,4,5", "0,1,6,7"],
    ),
}


@pytest.mark.parametrize("case", SEEDS)
def test_the_devices_of_every_rank(server: RunningServer, case: str) -> None:
    config, expected = SEEDS[case]
    archive, records = recorded(server.folder, "m", config)
    assert register(server, archive, 2) == (200, "")
    assert devices(server, "m") == expected
    number = len(server.describe("m")["workers"][0]["ranks"])
    seen = visible(records)
    print(f"\n{case}")
    for rank, numbers, index in seen:
        print(f"  rank {rank}: ASCEND_RT_VISIBLE_DEVICES={numbers} DEVICE_ID={index}")
    assert sorted(seen) == sorted((rank, numbers, str(rank)) for rank in range(number) for numbers in expected)


def test_the_order_of_device_ids_is_said_in_the_log(server: RunningServer) -> None:
    archive, _ = recorded(server.folder, "m", LAYOUTS["tp2"] + "deviceIds: [5, 2]\n")
    assert register(server, archive) == (200, "")
    assert devices(server, "m") == ["2,5"]
    words = "m:1.0: devices 5,2 are given in ascending order, as the driver needs them: 2,5"
    assert words in [line.get("message", "") for line in server.log_lines()]


def test_custom_is_one_process_with_several_devices(server: RunningServer) -> None:
    archive, records = recorded(server.folder, "m", LAYOUTS["custom"])
    assert register(server, archive, 2) == (200, "")
    assert sorted(visible(records)) == [(0, "0,1", "0"), (0, "2,3", "0")]
    assert "ranks" not in server.describe("m")["workers"][0]


def test_a_group_on_the_cpu_gets_none(server: RunningServer) -> None:
    recorder = Recorder(server.folder, "tp2", "deviceType: cpu\n")
    assert register(server, recorder.archive, 2) == (200, "")
    assert devices(server, "tp2") == [None, None]
    assert [lines[0]["env"]["ASCEND_RT_VISIBLE_DEVICES"] for lines in recorder.of_all()] == ["", ""]
    assert server.describe("tp2")["deviceType"] == "cpu"


# -- capacity --


def test_more_workers_than_fit_are_capped(server: RunningServer) -> None:
    """As under TorchServe: the reply says what was asked for, describe what there is."""
    archive, _ = recorded(server.folder, "m", TP4)
    assert register(server, archive, 5) == (200, "")
    described = server.describe("m")
    assert (described["minWorkers"], described["maxWorkers"], len(described["workers"])) == (2, 2, 2)
    assert scale(server, "m", 3).status_code == 200
    assert len(server.describe("m")["workers"]) == 2
    warnings = [line.get("message", "") for line in server.log_lines() if line.get("level") == "WARNING"]
    assert "model m 1.0: the devices are enough for 2 workers of 4 devices each, not for 5" in warnings


def test_a_model_at_start_has_as_many_groups_as_fit(tmp_path: Path) -> None:
    recorded(tmp_path, "m", TP4)
    with run_server(tmp_path, "--models", "m.mar", properties=EIGHT) as server:
        assert devices(server, "m") == ["0,1,2,3", "4,5,6,7"]
        assert not [
            line for line in server.log_lines() if line.get("level") == "WARNING" and "fit" in line.get("message", "")
        ]


def test_a_group_beside_a_worker_of_one_process(server: RunningServer) -> None:
    pack_service("echo", server.store)
    assert register(server, Path("echo.mar")) == (200, "")
    archive, _ = recorded(server.folder, "m", TP4)
    assert register(server, archive, 2) == (200, "")
    assert devices(server, "m") == ["4,5,6,7", "0,1,2,3"]
    words = "m:1.0 shares device 0 with echo:1.0 (how much memory is left on it is not known)"
    wait_until(lambda: words in [line.get("message") for line in server.log_lines()], "it is said", server.tail)


def test_part_of_what_was_asked_for(server: RunningServer) -> None:
    """Devices that others hold are waited for, and taken when they give it back."""
    other, _ = recorded(server.folder, "other", LAYOUTS["tp2"] + "deviceIds: [2, 3]\n")
    archive, _ = recorded(server.folder, "m", TP4)
    assert register(server, other) == (200, "")
    status, message = register(server, archive, 2)
    assert status == 202
    words = (
        "m:1.0 needs 4 devices that no other group has, and 2 of 8 devices are left for it: 2 and 3 are held by other"
    )
    assert f"registered with 2 initial workers; 1 of 2 wait for devices: {words}" in message
    described = server.describe("m")
    assert (described["state"], described["minWorkers"]) == ("DEGRADED", 2)
    assert devices(server, "m") == ["4,5,6,7", None]
    assert server.management.delete("/models/other").status_code == 200
    wait_until(lambda: server.describe("m")["state"] == "READY", "it goes on", server.tail)
    assert devices(server, "m") == ["4,5,6,7", "0,1,2,3"]


def test_nothing_fits(server: RunningServer) -> None:
    archive, _ = recorded(server.folder, "big", "parallelType: tp\nmsrun: {nproc-per-node: 9}\n")
    reply = server.register(archive, initial_workers=1)
    assert (reply.status_code, reply.json()["type"]) == (500, "WorkerInitializationException")
    assert reply.json()["message"].partition(". ")[2] == "big:1.0 needs 9 devices, and this server has 8."
    assert server.management.get("/models/big").status_code == 404


# -- coming back --


def test_devices_come_back_after_the_last_process(server: RunningServer) -> None:
    """A rank that ignores all other signals and never closes keeps the devices of its group until SIGKILL."""
    archive = fault_model(server.folder, "tp2", "deviceIds: [0, 1]\nresponseTimeout: 600\ndeaf: 1\n")
    other, _ = recorded(server.folder, "other", LAYOUTS["tp2"] + "deviceIds: [1, 0]\n")
    assert register(server, archive) == (200, "")
    deaf = ranks(server, "tp2")[1]["pid"]
    with ThreadPoolExecutor(1) as pool:
        gone = pool.submit(server.management.delete, "/models/tp2")
        wait_until(lambda: server.management.get("/models/tp2").status_code == 404, "it is going")
        status, message = register(server, other)
        assert status == 202
        assert "0 and 1 are held by tp2:1.0" in message
        refused = server.predict("other", b"x")
        assert (refused.status_code, "it waits for devices: other:1.0 needs" in refused.text) == (503, True)
        assert server.describe("other")["state"] == "WAITING"
        assert "other  " in (shown := status_of(server))
        assert "WAITING" in shown
        os.kill(deaf, signal.SIGKILL)
        assert gone.result().status_code == 200
    wait_until(lambda: server.describe("other")["state"] == "READY", "it goes on", server.tail)


def test_a_group_that_is_given_up_has_no_devices(server: RunningServer) -> None:
    faults = "deviceIds: [0, 1]\nmaxRetryTimeoutInSec: 1\nminWorkers: 1\nmaxWorkers: 1\nload: {rank: 1, way: exit}\n"
    archive = fault_model(server.folder, "tp2", faults)
    reply = server.management.post("/models", params={"url": archive.name, "synchronous": "false"})
    assert reply.status_code == 202
    wait_until(lambda: server.describe("tp2")["state"] == "FAILED", "it is given up", server.tail)
    assert devices(server, "tp2") == [None]
    other, _ = recorded(server.folder, "other", LAYOUTS["tp2"] + "deviceIds: [0, 1]\n")
    assert register(server, other) == (200, "")
    assert scale(server, "tp2", 1).status_code == 202, "its devices are another's now"
    assert server.describe("tp2")["state"] == "WAITING"


def test_a_crash_keeps_them(server: RunningServer) -> None:
    archive = fault_model(server.folder, "tp2")
    assert register(server, archive, 2) == (200, "")
    assert devices(server, "tp2") == ["0,1", "2,3"]
    assert ask(server, "tp2", rank=1, way="exit", others="wait")[0] == 500
    wait_until(lambda: server.describe("tp2")["state"] == "READY", "it serves again")
    assert devices(server, "tp2") == ["0,1", "2,3"]


def test_status_shows_ranks_and_devices(server: RunningServer) -> None:
    archive, _ = recorded(server.folder, "m", LAYOUTS["tp2"])
    assert register(server, archive) == (200, "")
    shown = status_of(server)
    worker = server.describe("m")["workers"][0]["id"]
    first, second = (row_of(shown, f"{worker} rank {rank}") for rank in (0, 1))
    pids = [str(one["pid"]) for one in ranks(server, "m")]
    assert [first[3], second[3]] == pids
    assert first[4] == second[4] == "READY"
    assert "0,1" in row_of(shown, "m ")


def status_of(server: RunningServer) -> str:
    return subprocess.run(
        [sys.executable, "-m", "msx_frontend.cli.main", "--status"],
        env=server_environment(server.folder),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def row_of(shown: str, words: str) -> list[Any]:
    return next(line.split() for line in shown.splitlines() if words in line)
