"""Output of `msx-serve --status`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.status_socket import Status
from msx_frontend.cli import status


def info(folder: Path) -> InstanceInfo:
    return InstanceInfo(
        pid=1,
        model_store=str(folder),
        inference="http://127.0.0.1:8080",
        management="http://127.0.0.1:8081",
        metrics=None,
        grpc_inference="127.0.0.1:7070",
        grpc_management="127.0.0.1:7071",
        key_file=None,
        status_socket=str(folder / "status.sock"),
        log_file=None,
        started_at=0.0,
    )


def test_without_models_it_says_how_to_load_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "ask", lambda path: Status([]))
    assert status.show(info(tmp_path))
    assert capsys.readouterr().out.splitlines()[-1] == (
        "  no models are registered: start with --models FILE.mar, or with --enable-model-api and register one"
    )


def test_a_model_that_is_not_there_is_named_as_long_as_that_is_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why, shown = "model n.mar could not be loaded: \x1b[2J", r"model n.mar could not be loaded: \x1b[2J"
    running = msgspec.structs.replace(info(tmp_path), not_loaded=[why])
    monkeypatch.setattr(status, "ask", lambda path: Status([], [why]))
    assert not status.show(running)
    assert f"  {shown}\n" in capsys.readouterr().out
    monkeypatch.setattr(status, "ask", lambda path: Status([]))
    assert status.show(running)
    assert shown not in capsys.readouterr().out


def test_unhealthy_devices_are_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"modelName": "m", "modelVersion": "1.0", "state": "READY", "workers": []}
    unhealthy = {**one, "unhealthyDevices": [{"device": 3, "id": "7", "health": "Critical"}]}
    monkeypatch.setattr(status, "ask", lambda path: Status([unhealthy, {**unhealthy, "modelName": "n"}, one]))
    assert status.show(info(tmp_path))
    assert capsys.readouterr().out.splitlines()[-1] == "  device 3 (id 7) is unhealthy: Critical"
    monkeypatch.setattr(status, "ask", lambda path: Status([one]))
    assert status.show(info(tmp_path))
    assert "unhealthy" not in capsys.readouterr().out


def test_devices_follow_the_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = {"device": 1, "id": "GPU-8a1f", "name": "NVIDIA H100", "temperature": 41, "healthy": True, "holders": []}
    monkeypatch.setattr(status, "ask", lambda path: Status([], [], [device]))
    assert status.show(info(tmp_path))
    head, row = capsys.readouterr().out.splitlines()[-2:]
    assert head.split() == ["device", "id", "name", "load", "memory", "temperature", "ECC", "errors"]
    assert row.split() == ["1", "GPU-8a1f", "NVIDIA", "H100", "-", "-", "41", "°C", "-"]


def test_ranks_on_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [
        {"rank": 0, "pid": 7, "state": "READY", "memoryUsage": 1e6, "host": "node-a"},
        {"rank": 1, "pid": 7, "state": "READY", "memoryUsage": 1e6, "host": "node-b"},
        {"rank": 2, "state": "LOADING", "memoryUsage": 0},
    ]
    worker = {"id": "9000", "pid": 7, "status": "READY", "memoryUsage": 2e6, "devices": "0,3", "ranks": ranks}
    nodes = {"node-a": ["0"], "node-b": ["3"]}
    one = {"modelName": "m", "modelVersion": "1.0", "state": "READY", "workers": [{**worker, "nodes": nodes}]}
    monkeypatch.setattr(status, "ask", lambda path: Status([one]))
    assert status.show(info(tmp_path))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-4:]]
    assert [row[-4:-2] for row in rows[:3]] == [["node-a:0", "node-b:3"], ["READY", "node-a"], ["READY", "node-b"]]
    assert rows[3][-4:-2] == ["-", "LOADING"]


def test_a_supervisor_of_another_release_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = {"pid": 7, "release": "0.2.0", "python": "/opt/msx-0.2/bin/python", "another": True}
    monkeypatch.setattr(status, "ask", lambda path: Status([], supervisor=supervisor))
    status.show(info(tmp_path))
    line = "The supervisor (pid 7) is that of release 0.2.0 (/opt/msx-0.2/bin/python): keep that environment."
    assert line in capsys.readouterr().out
    supervisor["another"] = False
    status.show(info(tmp_path))
    assert "supervisor" not in capsys.readouterr().out
