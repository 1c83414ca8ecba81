"""`start_servable`, with a server that is not there."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server import starting
from msx_mindspore_serving.packages.mindspore_serving.server.distributed import (
    agents,
    start,
    start_servable,
    startup_agents,
)
from msx_mindspore_serving.packages.mindspore_serving.server.server_process import ServerError
from tests.compat.mindspore_serving.packages.distributed.test_agents import in_thread, wait_for_agents_to_end
from tests.compat.mindspore_serving.packages.distributed.test_declare import MATMUL
from tests.compat.mindspore_serving.packages.servables import ADD, write
from tests.compat.mindspore_serving.packages.test_starting import NoServer
from tests.core.test_mindir import DATA


class NoServerAtEnd(NoServer):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[], None]] = []
        self.has_cluster = False

    def ask(self, what: str, **arguments: Any) -> None:
        if what != "need_cluster":
            super().ask(what, **arguments)
        elif not self.has_cluster:
            raise ServerError("cluster", "it has none")

    def at_end(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def stop(self) -> None:
        super().stop()
        for call in self.calls:
            call()


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NoServerAtEnd:
    """The servable `matmul` of two ranks, and a rank table for it."""
    fake = NoServerAtEnd()
    for module in (start, starting):
        monkeypatch.setattr(module, "SERVER", fake)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "serving_server.py")])
    monkeypatch.setattr(agents, "WAIT", 0.05)
    write(tmp_path, MATMUL.replace("rank_size=8, stage_size=2", "rank_size=2, stage_size=1"), "matmul")
    write_table(tmp_path, "127.0.0.1", "127.0.0.1")
    return fake


def write_table(folder: Path, *hosts: str) -> None:
    devices = [
        {"server_id": host, "device": [{"device_id": str(rank), "rank_id": str(rank)}]}
        for rank, host in enumerate(hosts)
    ]
    (folder / "table.json").write_text(json.dumps({"server_list": devices}))


def arguments(address: str = "127.0.0.1:19877", **other: Any) -> dict[str, Any]:
    return {
        "servable_directory": ".",
        "servable_name": "matmul",
        "rank_table_json_file": "table.json",
        "distributed_address": address,
        "wait_agents_time_in_seconds": 30,
        **other,
    }


def refused(server: NoServerAtEnd, **other: Any) -> str:
    """The text; the server is stopped before it is raised."""
    before = server.stopped
    with pytest.raises(RuntimeError) as raised:
        start_servable(**arguments(**other))
    assert server.stopped == before + 1
    return str(raised.value)


EARLY: list[tuple[dict[str, Any], str]] = [
    ({"servable_directory": 1}, "Parameter 'servable_directory' should be str, but actually <class 'int'>"),
    ({"servable_name": ""}, "Parameter 'servable_name' should not be empty str"),
    ({"rank_table_json_file": None}, "Parameter 'rank_table_json_file' should be str, but actually <class 'NoneType'>"),
    ({"version_number": -1}, "Parameter 'version_number' should be >= 0"),
    ({"distributed_address": ""}, "Parameter 'distributed_address' should not be empty str"),
    ({"wait_agents_time_in_seconds": -1}, "Parameter 'wait_agents_time_in_seconds' should be >= 0"),
]


@pytest.mark.parametrize(("other", "text"), EARLY, ids=[text for _, text in EARLY])
def test_arguments_that_are_refused(server: NoServerAtEnd, other: dict[str, Any], text: str) -> None:
    assert refused(server, **other) == text


def failed(text: str, name: str = "matmul") -> str:
    return f"Fail to start workers: {{distributed servable:{name}, Raise failed: {text}}}"


def test_what_is_wrong_with_the_servable_or_its_ranks(server: NoServerAtEnd, tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    assert refused(server, servable_name="absent") == (
        f"Check servable config failed, directory '{folder}' not exist, servable directory '{tmp_path}', "
        "servable name 'absent'"
    )
    table = tmp_path / "table.json"
    write_table(tmp_path, "127.0.0.1")
    text = f"Rank size 1 declared in rank table file '{table}' not equal to 2 declared in servable config"
    assert refused(server) == failed(text)
    write_table(tmp_path, "127.0.0.1", "192.0.2.7")
    assert refused(server).startswith(
        failed(f"The rank table file '{table}' names the host 192.0.2.7, which is not an")[:-1]
    )
    write(tmp_path, ADD)
    assert "declared number: 0" in refused(server, servable_name="add")
    write_table(tmp_path, "127.0.0.1", "127.0.0.1")
    assert refused(server, distributed_address="x") == failed(
        "Serving Error: The format of the Distributed gRPC address 'x' is illegal"
    )
    assert refused(server, wait_agents_time_in_seconds=1) == failed(
        "Failed to wait for ready of all agents, current agents count: 0, rank size: 2"
    )
    assert not server.asked


def test_it_may_not_follow_another_start(server: NoServerAtEnd) -> None:
    server.asked.append(("load", {}))
    server.has_servables = True
    assert refused(server) == "Raise failed: Serving Error: Master gRPC server is already running"


def test_a_start(server: NoServerAtEnd, tmp_path: Path) -> None:
    address = "127.0.0.1:19878"
    models = [str(DATA / "dynamic.mindir"), str(DATA / ".." / "data" / "dynamic.mindir")]
    thread, errors = in_thread(lambda: startup_agents(address, models, dec_key=b"k" * 16, dec_mode="AES-CBC"))
    start_servable(**arguments(address, version_number=0))
    thread.join(30)
    assert not errors
    [(what, asked)] = server.asked
    [servable] = asked["servables"]
    assert (what, servable.pop("dec_key")) == ("load", base64.b64encode(b"k" * 16).decode())
    assert servable == {
        "directory": str(tmp_path),
        "name": "matmul",
        "version": 1,
        "num_parallel_workers": 1,
        "dec_mode": "AES-CBC",
        "ranks": {
            "stage_size": 1,
            "models": [[str(DATA / "dynamic.mindir")]] * 2,
            "groups": [[], []],
            "device_ids": [0, 1],
            "nodes": 1,
        },
    }
    server.stop()
    wait_for_agents_to_end()
    assert not [one for one in threading.enumerate() if one.name == "agents" and one.is_alive() and not one.daemon]


def test_hosts_of_the_table_are_nodes_of_a_cluster(server: NoServerAtEnd, tmp_path: Path) -> None:
    server.has_cluster = True
    write_table(tmp_path, "192.0.2.7", "192.0.2.8")
    address = "127.0.0.1:19881"
    models = [str(DATA / "dynamic.mindir"), str(DATA / ".." / "data" / "dynamic.mindir")]
    thread, errors = in_thread(lambda: startup_agents(address, models))
    start_servable(**arguments(address))
    thread.join(30)
    assert not errors
    [(_, asked)] = server.asked
    assert asked["servables"][0]["ranks"]["nodes"] == 2
    server.stop()
    wait_for_agents_to_end()


def test_nodes_have_the_same_number_of_ranks(server: NoServerAtEnd, tmp_path: Path) -> None:
    server.has_cluster = True
    write(tmp_path, MATMUL.replace("rank_size=8, stage_size=2", "rank_size=3, stage_size=1"), "matmul")
    hosts = [("192.0.2.7", 0), ("192.0.2.7", 1), ("192.0.2.8", 2)]
    devices = [{"device_id": str(rank), "rank_id": str(rank)} for _, rank in hosts]
    servers = [
        {"server_id": "192.0.2.7", "device": devices[:2]},
        {"server_id": "192.0.2.8", "device": devices[2:]},
    ]
    (tmp_path / "table.json").write_text(json.dumps({"server_list": servers}))
    assert "has 2 on 192.0.2.7, 1 on 192.0.2.8: in a cluster each machine has the same number of ranks" in refused(
        server
    )


def test_models_that_do_not_fit_and_ranks_that_do_not_start(server: NoServerAtEnd) -> None:
    """Both scripts hear why."""
    address = "127.0.0.1:19879"
    one, other = str(DATA / "dynamic.mindir"), str(DATA / "scalar.mindir")
    thread, errors = in_thread(lambda: startup_agents(address, [one, other]))
    text = refused(server, address=address)
    thread.join(30)
    assert text.startswith(failed("Rank 1 input infos not match rank 0, subgraph: 0, ")[:-1])
    assert failed(errors[0]) == text
    server.answer = ServerError("worker", "rank 1 has no memory", {"name": "matmul"})
    thread, errors = in_thread(lambda: startup_agents(address, [[one], [one]]))
    assert refused(server, address=address) == failed("rank 1 has no memory")
    thread.join(30)
    assert errors == ["rank 1 has no memory"]
