"""What a worker inherits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msx_frontend.workers.environment import worker_environment
from msx_sdk._internal.sequences import SequenceKeys

MODEL = Path("/models/abc")


def environment(inherited: dict[str, str] | None = None, **options: Any) -> dict[str, str]:
    return worker_environment(inherited or {}, MODEL, **{"devices": {}, **options})


def test_a_rank_of_its_own() -> None:
    env = environment({"PATH": "/bin", "RANK": "7"})
    assert env["PATH"] == "/bin"
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK_ID", "RANK_SIZE", "DEVICE_ID")
    assert [env[name] for name in names] == ["0", "0", "1", "1", "0", "1", "0"]


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
    assert environment(blocked=re.compile(".*"))["RANK"] == "0"


def test_the_servers_own_is_left_alone() -> None:
    inherited = {"PATH": "/bin"}
    environment(inherited, devices={"SEEN": "1"})
    assert inherited == {"PATH": "/bin"}
