"""The two scripts of a distributed servable, of which each has a thread here."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server.distributed import agents, link, startup_agents
from msx_mindspore_serving.packages.mindspore_serving.server.distributed.link import AgentConfiguration, RankFiles
from msx_mindspore_serving.packages.mindspore_serving.server.distributed.listener import AgentListener
from tests.free_ports import free_port


@pytest.fixture
def address() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(agents, "TRIES", 1)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "serving_agent.py")])


def models(folder: Path, ranks: int) -> list[str]:
    names = [f"device{rank}.mindir" for rank in range(ranks)]
    for name in [*names, *(f"group{rank}.pb" for rank in range(ranks))]:
        (folder / name).touch()
    return names


class Server:
    """The side of `start_servable`."""

    def __init__(self, address: str, places: list[tuple[str, int]]) -> None:
        self.lost = threading.Event()
        self.listener = AgentListener(address, AgentConfiguration("matmul", places, 1), self.lost.set)


@contextlib.contextmanager
def server(address: str, *hosts: str) -> Iterator[Server]:
    one = Server(address, [(host, device) for device, host in enumerate(hosts or ("127.0.0.1",) * 2)])
    try:
        yield one
    finally:
        one.listener.close()


def in_thread(call: Callable[[], None]) -> tuple[threading.Thread, list[str]]:
    errors: list[str] = []

    def run() -> None:
        try:
            call()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def wait_for_agents_to_end() -> None:
    for thread in threading.enumerate():
        if thread.name == "agents" and not thread.daemon:
            thread.join(30)


def test_files_are_handed_over(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = models(tmp_path, 2)
    with server(address) as one:
        groups = [["group0.pb"], "group1.pb"]
        thread, errors = in_thread(lambda: startup_agents(address, names, groups, dec_key=b"k" * 16))
        registration = one.listener.wait(30)
        assert not listens(address), "it names a Unix socket"
        one.listener.announce()
        thread.join(30)
        one.listener.check()
    wait_for_agents_to_end()
    assert not errors
    assert not one.lost.is_set()
    assert registration.ranks == {
        rank: RankFiles([f"{tmp_path}/device{rank}.mindir"], [f"{tmp_path}/group{rank}.pb"]) for rank in range(2)
    }
    assert (registration.dec_key, registration.dec_mode) == (b"k" * 16, "AES-GCM")
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"Success to start agents, distributed worker_address: {address}"
    assert "stopped" in last


def test_two_scripts_with_a_part_of_the_ranks_each(address: str, tmp_path: Path) -> None:
    names = models(tmp_path, 2)
    with server(address, "127.0.0.1", "127.0.0.2") as one:
        threads = [
            in_thread(partial(startup_agents, address, [names[rank]], agent_ip="127.0.0.1", rank_start=rank))
            for rank in range(2)
        ]
        assert list(one.listener.wait(30).ranks) == [0, 1]
        one.listener.announce()
        for thread, errors in threads:
            thread.join(30)
            assert not errors
    wait_for_agents_to_end()


def test_the_servable_hears_that_a_script_has_ended(address: str) -> None:
    with server(address) as one, registered(address) as connection:
        one.listener.wait(30)
        connection.close()
        assert one.lost.wait(30)
        with pytest.raises(RuntimeError, match=r"^Worker or Agents has stopped$"):
            one.listener.check()


def test_a_script_that_ends_before_all_ranks_are_there(address: str) -> None:
    with server(address, *("127.0.0.1",) * 3) as one:
        with registered(address):
            pass
        with pytest.raises(RuntimeError, match=r"^Failed to starting all agents, maybe some error reported$"):
            one.listener.wait(30)
        assert not one.lost.is_set()


@contextlib.contextmanager
def registered(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(link.socket_name(address))
        assert isinstance(link.receive(connection), AgentConfiguration)
        link.send(connection, link.AgentRegistration({rank: RankFiles(["m"], []) for rank in range(2)}))
        yield connection


def test_the_time_to_wait_ends(address: str) -> None:
    with server(address) as one, pytest.raises(RuntimeError) as raised:
        one.listener.wait(1)
    assert str(raised.value) == "Failed to wait for ready of all agents, current agents count: 0, rank size: 2"


def test_the_server_says_why_it_did_not_start(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = models(tmp_path, 2)
    with server(address) as one:
        thread, errors = in_thread(lambda: startup_agents(address, names))
        one.listener.wait(30)
        one.listener.announce("no device is left")
        thread.join(30)
    assert errors == ["no device is left"]
    assert capsys.readouterr().out == "Failed to start agents, no device is left\n"


def test_ctrl_c(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(connection: socket.socket) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(agents, "_wait_until_ready", interrupt)
    with server(address) as one:
        with pytest.raises(RuntimeError, match=r"^Fail to start agents because of Ctrl\+C$"):
            startup_agents(address, models(tmp_path, 2))
        assert one.lost.wait(30)
        with pytest.raises(RuntimeError, match=r"^Worker or Agents has stopped$"):
            one.listener.check()


LOCAL = ("127.0.0.1", "127.0.0.1")
BOTH = (
    "Parameter 'agent_ip' and parameter 'rank_start' must have values at the same time, or both None at the same time."
)
TWO = ["device0.mindir", "device1.mindir"]
LATE: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    (LOCAL, {"agent_ip": "127.0.0.1"}, BOTH),
    (LOCAL, {"rank_start": 0}, BOTH),
    (
        LOCAL,
        {"agent_ip": "127.0.0.1", "rank_start": 2},
        "Parameter 'rank_start' cannot equal or larger than rank size 2.",
    ),
    (LOCAL, {"agent_ip": "192.0.2.1", "rank_start": 0}, "Check ip 'agent_ip' valid failed, agent_ip: 192.0.2.1"),
    (("192.0.2.1",), {}, "Get local machine ip failed, rank table ips: {'192.0.2.1'}, bind port 7000"),
    (
        LOCAL,
        {"model_files": TWO[:1]},
        "Card count [0, 1] described rank table does not equal to model files size 1, "
        "model files: [['device0.mindir']]",
    ),
    (
        LOCAL,
        {"group_config_files": ["group0.pb"]},
        "Model files count 2 does not equal to group config files count 1 when group_config_files is not None, "
        f"model files: [['{TWO[0]}'], ['{TWO[1]}']], group config files: [['group0.pb']]",
    ),
    (
        LOCAL,
        {"model_files": [TWO, "device0.mindir"]},
        "please check the number of  model files and group config files, "
        f"model files: [['{TWO[0]}', '{TWO[1]}'], ['{TWO[0]}']], group config files: None",
    ),
    (
        LOCAL,
        {"group_config_files": [["group0.pb", "group1.pb"], ["group1.pb", "group0.pb"]]},
        "please check the number of  group config files, currently only support one at most",
    ),
    (LOCAL, {"model_files": ["device0.mindir", "absent"]}, "Cannot access model file 'absent'"),
    (LOCAL, {"group_config_files": ["group0.pb", "."]}, "Cannot access group config file '.'"),
]


@pytest.mark.parametrize(("hosts", "arguments", "text"), LATE, ids=[text for *_, text in LATE])
def test_what_is_refused_once_the_rank_table_is_known(
    address: str, tmp_path: Path, hosts: tuple[str, ...], arguments: dict[str, Any], text: str
) -> None:
    models(tmp_path, 2)
    with server(address, *hosts) as one:
        with pytest.raises(RuntimeError) as raised:
            startup_agents(**{"distributed_address": address, "model_files": TWO, **arguments})
        assert str(raised.value) == text
        with pytest.raises(RuntimeError, match=r"^Failed to starting all agents, maybe some error reported$"):
            one.listener.wait(30)


OF = "Distributed gRPC address"
SERVING = "Raise failed: Serving Error:"
LISTS = "should be str or tuple/list of str, but actually"
INNER = "The inner of parameter 'model_files' should"
EARLY: list[tuple[dict[str, Any], str]] = [
    ({"distributed_address": 1}, "Parameter 'distributed_address' should be str, but actually <class 'int'>"),
    ({"agent_start_port": 0}, "Parameter 'agent_start_port' should be in range [1,65528]"),
    ({"agent_start_port": 65529}, "Parameter 'agent_start_port' should be in range [1,65528]"),
    ({"model_files": 1}, f"Parameter 'model_files' {LISTS} <class 'int'>"),
    ({"model_files": [1]}, "The item of parameter 'model_files' should be str, but actually <class 'int'>"),
    ({"model_files": [""]}, "The item of parameter 'model_files' should not be empty str"),
    ({"model_files": ["a", "a"]}, "The item value 'a' in parameter 'model_files' should not be repeated"),
    ({"model_files": [["a", 1]]}, f"{INNER} be str, but actually <class 'int'>"),
    ({"model_files": [[""]]}, f"{INNER} not be empty str"),
    ({"model_files": [["a", "a"]]}, "The inner value 'a' in parameter 'model_files' should not be repeated"),
    ({"group_config_files": 1.5}, f"Parameter 'group_config_files' {LISTS} <class 'float'>"),
    ({"agent_ip": ""}, "Parameter 'agent_ip' should not be empty str"),
    ({"rank_start": -1}, "Parameter 'rank_start' should be >= 0"),
    ({"dec_key": b"1"}, "Parameter 'dec_key' length 1 expected to be 16, 24 or 32"),
    ({"dec_mode": "x"}, "Parameter 'dec_mode' expected to be 'AES-GCM' or 'AES-CBC'"),
    ({"distributed_address": "127.0.0.1"}, f"{SERVING} The format of the {OF} '127.0.0.1' is illegal"),
    ({"distributed_address": ":1"}, f"{SERVING} Missing ip or port of the {OF} ':1'"),
    ({"distributed_address": "a:b"}, f"{SERVING} The type of {OF} 'a:b' port is not a number"),
    (
        {"distributed_address": "a:65536"},
        f"{SERVING} The port of the {OF} 'a:65536' is out of legal range [1 ~ 65535]",
    ),
    ({}, "Raise failed: Failed to get Agents configs from Worker, worker is not available."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), EARLY, ids=[text for _, text in EARLY])
def test_what_is_refused_at_once(address: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        startup_agents(**{"distributed_address": address, "model_files": ["a"], **arguments})
    assert str(raised.value) == text


def test_an_address_that_is_taken(address: str) -> None:
    text = f"Raise failed: Serving Error: Distributed gRPC server start failed, create server failed, address {address}"
    with server(address), pytest.raises(RuntimeError) as raised:
        Server(address, [])
    assert str(raised.value) == text


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", struct.pack("<I", 3) + b"abc", b"\x01"])
def test_a_script_that_speaks_otherwise_is_shown_out(address: str, data: bytes) -> None:
    with server(address), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(link.socket_name(address))
        link.receive(connection)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_another_user_is_not_listened_to(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides ask the kernel who the other one is."""
    with server(address):
        other = os.geteuid() + 1
        monkeypatch.setattr("os.geteuid", lambda: other)
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(link.socket_name(address))
            assert stranger.recv(1) == b""
        with pytest.raises(RuntimeError, match=r"belongs to user \d+, not to user \d+"):
            startup_agents(address, models(tmp_path, 2))
