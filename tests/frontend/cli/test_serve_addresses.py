"""Where a path that is served as it is listens: by its flags, else its configuration, else near port 8080."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.cli.serve.session import Serving, Session
from msx_frontend.config.server_config import ServerConfigError
from tests.frontend.cli.test_commands import options

FILE = "model_store=/no/such/folder\ninference_address=http://0.0.0.0:9090\nmetrics_address=http://127.0.0.1:9095\ngrpc_inference_port=7777\n"


def chosen(tmp_path: Path, text: str = "", settings: tuple[str, ...] = (), **flags: Any) -> dict[str, str]:
    file = tmp_path / "config.properties"
    file.write_text(text)
    given = dataclasses.replace(options(ts_config=file), settings=settings, env={})
    session = Session(dataclasses.replace(Serving(tmp_path / "answers.py"), **flags), tmp_path)
    parts = (setting.partition("=") for setting in session.options(given).settings)
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize(
    ("flags", "inference", "management", "metrics"),
    [
        ({}, "http://127.0.0.1:8080", "http://127.0.0.1:8081", "http://127.0.0.1:8082"),
        ({"port": 0}, "http://127.0.0.1:0", "http://127.0.0.1:0", "http://127.0.0.1:0"),
        ({"host": "::1", "port": 90}, "http://[::1]:90", "http://[::1]:91", "http://[::1]:92"),
    ],
)
def test_without_a_word_of_the_file(
    tmp_path: Path, flags: dict[str, Any], inference: str, management: str, metrics: str
) -> None:
    found = chosen(tmp_path, **flags)
    assert [found[f"{name}_address"] for name in ("inference", "management", "metrics")] == [
        inference,
        management,
        metrics,
    ]
    assert found["grpc_inference_port"] == "0"


def test_the_file_says_where(tmp_path: Path) -> None:
    found = chosen(tmp_path, FILE)
    assert found == {
        "management_address": "http://127.0.0.1:8081",
        "grpc_management_port": "0",
        "default_workers_per_model": "1",
    }


@pytest.mark.parametrize("flags", [{"host": "127.0.0.1"}, {"port": 8000}])
def test_a_flag_beats_all_addresses_of_the_file(tmp_path: Path, flags: dict[str, Any]) -> None:
    found = chosen(tmp_path, FILE, **flags)
    assert found["inference_address"] == f"http://127.0.0.1:{flags.get('port', 8080)}"
    assert found["grpc_inference_port"] == "0"


def test_set_beats_both(tmp_path: Path) -> None:
    assert chosen(tmp_path, FILE, ("inference_address=http://127.0.0.1:1",))["inference_address"].endswith(":1")


def test_a_file_that_cannot_be_read_as_one(tmp_path: Path) -> None:
    with pytest.raises(ServerConfigError, match="inference_address"):
        chosen(tmp_path, "inference_address=nowhere:::\n")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:9000", "http://127.0.0.1", "unix:/run/msx.sock", "user@host", "host/path", "host?", "[::1", "", "::1]"],
)
def test_a_host_with_more_than_a_host(tmp_path: Path, host: str) -> None:
    with pytest.raises(ServerConfigError, match=r"^--host: "):
        chosen(tmp_path, host=host)


@pytest.mark.parametrize(
    ("host", "listens"),
    [
        ("localhost", "localhost"),
        ("GPU-3.example", "GPU-3.example"),
        ("0.0.0.0", "0.0.0.0"),
        ("[::1]", "[::1]"),
        ("fe80::1%eth0", "[fe80::1%eth0]"),
    ],
)
def test_hosts(tmp_path: Path, host: str, listens: str) -> None:
    assert chosen(tmp_path, host=host)["inference_address"] == f"http://{listens}:8080"


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    """The server would find it empty, and have the defaults."""
    os.mkfifo(pipe := tmp_path / "pipe")
    given = dataclasses.replace(options(ts_config=pipe), env={})
    with pytest.raises(ServerConfigError, match="is a pipe"):
        Session(Serving(tmp_path / "answers.py"), tmp_path).options(given)
