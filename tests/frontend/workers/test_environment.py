"""Environment that a worker inherits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from msx_core.sequences import SequenceKeys
from msx_frontend.devices.nodes import OnNode
from msx_frontend.workers.environment import node_environment, worker_environment

MODEL = Path("/models/abc")
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")


def environment(inherited: dict[str, str] | None = None, **options: Any) -> dict[str, str]:
    return worker_environment(inherited or {}, MODEL, **{"devices": {}, **options})


def test_a_rank_of_its_own() -> None:
    env = environment({"PATH": "/bin", "RANK": "7"})
    assert env["PATH"] == "/bin"
    assert [env[name] for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID")] == ["0", "1", "0"]
    assert not set(TORCHRUN) & env.keys(), "libraries of torch that find them would wait for other ranks"


@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (0, 2), (1, 2)])
def test_a_rank_of_a_group_has_torchruns_variables(rank: int, world_size: int) -> None:
    env = environment({"LOCAL_RANK": "7"}, rank=rank, world_size=world_size, meets=True)
    assert [env[name] for name in TORCHRUN] == [str(value) for value in (rank, rank, world_size, world_size)]
    assert [env[name] for name in ("RANK_ID", "RANK_SIZE")] == [str(rank), str(world_size)]
    assert "RANK_TABLE_FILE" not in env, "they meet without one"


def test_a_rank_finds_no_agent_of_torchrun() -> None:
    env = environment(rank=1, world_size=2, meets=True)
    assert not [name for name in env if name.startswith(("GROUP_", "ROLE_", "TORCHELASTIC_"))]


def test_variables_of_nccl_are_inherited() -> None:
    given = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3", "NCCL_DEBUG": "INFO"}
    assert given.items() <= environment(given, rank=1, world_size=2, meets=True).items()
    assert not given.keys() & environment(rank=1, world_size=2, meets=True).keys(), "torch has its own default"


def test_the_headers_of_sequences() -> None:
    env = environment({"TS_REQUEST_SEQUENCE_ID": "inherited"}, sequence_keys=SequenceKeys("a", "b", "c"))
    assert SequenceKeys.from_env(env) == ("a", "b", "c")
    assert SequenceKeys.from_env(environment()) == SequenceKeys()


def test_devices() -> None:
    assert environment({"SEEN": "0,1"}, devices={"SEEN": "3"})["SEEN"] == "3"
    assert environment(blocked=re.compile("SEEN"), devices={"SEEN": "3"})["SEEN"] == "3"


def test_threads_are_set_only_where_they_are_asked_for() -> None:
    assert "OMP_NUM_THREADS" not in environment()
    assert environment({"OMP_NUM_THREADS": "8"})["OMP_NUM_THREADS"] == "8"
    assert environment({"OMP_NUM_THREADS": "8"}, omp_threads=2)["OMP_NUM_THREADS"] == "2"


def test_the_models_modules_come_last() -> None:
    assert environment()["PYTHONPATH"] == "/models/abc"
    assert environment({"PYTHONPATH": "/a:/b"})["PYTHONPATH"] == "/a:/b:/models/abc"
    assert environment({"PYTHONPATH": ""})["PYTHONPATH"] == "/models/abc"


def test_what_the_server_withholds() -> None:
    inherited = {"AWS_KEY": "1", "AWS": "2", "MY_AWS_KEY": "3", "PYTHONPATH": "/a"}
    env = environment(inherited, blocked=re.compile("AWS.*|PYTHONPATH"))
    assert "AWS_KEY" not in env
    assert "AWS" not in env
    assert env["MY_AWS_KEY"] == "3"  # the whole name must match
    assert env["PYTHONPATH"] == "/models/abc"


def test_what_a_rank_needs_cannot_be_withheld() -> None:
    assert environment(meets=True, blocked=re.compile(".*"))["RANK"] == "0"


def test_the_servers_own_is_left_alone() -> None:
    inherited = {"PATH": "/bin"}
    environment(inherited, devices={"SEEN": "1"})
    assert inherited == {"PATH": "/bin"}


def test_a_rank_on_another_machine_gets_nothing_of_this_one() -> None:
    here = {
        "PATH": "/bin",
        "HOME": "/root",
        "PYTHONPATH": "/x",
        "LD_LIBRARY_PATH": "/cann",
        "MSX_STATE_DIR": "/s",
        "HCCL_IF_IP": "10.0.0.1",
        "ASCEND_HOME_PATH": "/usr/local",
        "TS_CONFIG_FILE": "/c",
        "TS_SECRET": "x",
        "TS_DECODE_INPUT_REQUEST": "true",
    }
    place = OnNode(1, 2, ("2", "3"))
    blocked = re.compile("TS_SECRET")
    rank: Any = {"rank": 3, "world_size": 4, "meets": True, "omp_threads": 2}
    env = node_environment(here, place, devices={"SEEN": "2,3"}, blocked=blocked, **rank)
    sequences = SequenceKeys().to_env()
    assert {name: value for name, value in env.items() if name not in sequences} == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "RANK_ID": "3",
        "RANK_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "DEVICE_ID": "1",
        "SEEN": "2,3",
        "TS_DECODE_INPUT_REQUEST": "true",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "2",
    }
