"""The ports of several groups on one node."""

from __future__ import annotations

import pytest

from msx_frontend.devices import hccl_ports as module
from msx_frontend.devices.ascend import Ascend
from msx_ray.agent.collective_ports import CollectivePorts

BASE = {"HCCL_IF_BASE_PORT": "65440"}
"""From which there are ports for three groups."""


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever listens on this machine."""
    monkeypatch.setattr(module, "_free", lambda first, count: True)


def base_of(ports: CollectivePorts) -> str:
    return ports.environment["HCCL_IF_BASE_PORT"]


def test_each_group_has_ports_of_its_own() -> None:
    several = [CollectivePorts(Ascend(env=BASE)) for _ in range(3)]
    try:
        assert list(map(base_of, several)) == ["65440", "65472", "65504"]
        with pytest.raises(
            OSError, match=r"HCCL has ports for 3 worker groups on this host, 32 for each; all are taken"
        ):
            CollectivePorts(Ascend(env=BASE))
        several[1].close()
        several.append(CollectivePorts(Ascend(env=BASE)))
        assert base_of(several[3]) == "65472", "given back"
    finally:
        for one in several:
            one.close()


def test_ports_where_another_process_listens_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_free", lambda first, count: first > 65440)
    ports = CollectivePorts(Ascend(env=BASE))
    assert base_of(ports) == "65472"
    ports.close()
    ports.close()


def test_what_the_operator_has_chosen_stays() -> None:
    chosen = [CollectivePorts(Ascend(env={"HCCL_HOST_SOCKET_PORT_RANGE": "auto"})) for _ in range(2)]
    assert [one.environment for one in chosen] == [{}, {}]
