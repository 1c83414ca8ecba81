"""Errors of the driver where there is not a cluster, or one that does not fit."""

from __future__ import annotations

import socket
from typing import Any

import pytest

pytest.importorskip("ray")

from msx_ray.driver.connection import NotConnectedError, RayConnection
from tests.free_ports import free_port


def refused(address: str) -> NotConnectedError:
    with pytest.raises(NotConnectedError) as caught:
        RayConnection(address).open()
    return caught.value


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nothing_answers(scheme: str) -> None:
    port = free_port()
    error = refused(f"{scheme}127.0.0.1:{port}")
    assert str(error) == f"Nothing answers at {scheme}127.0.0.1:{port} (cluster_address): is Ray's head running there?"


def test_it_is_not_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.init", raises(ConnectionError("no\n  GCS")))
    error = refused("auto")
    assert str(error) == "There is not a Ray cluster at auto (cluster_address): no GCS"


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "Version mismatch: The cluster was started with: Ray: 2.9.0 Python: 3.9.1"
    monkeypatch.setattr("ray.init", raises(RuntimeError(told)))
    error = refused("auto")
    assert told in str(error)
    assert "Use the same Ray and Python on all machines" in str(error)


def test_a_head_that_is_gone_is_told_after_two_looks() -> None:
    ours = RayConnection("auto")
    with socket.create_server(("127.0.0.1", free_port())) as head:
        ours.gcs = f"127.0.0.1:{head.getsockname()[1]}"
        assert ours.problem() == ""
    assert ours.problem() == ""
    assert ours.problem() == f"Ray's head at {ours.gcs} does not answer: nothing can be placed until it is back."


def raises(error: Exception) -> Any:
    def init(*arguments: object, **options: object) -> None:
        raise error

    return init
