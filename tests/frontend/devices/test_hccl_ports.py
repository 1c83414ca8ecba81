"""The ports of several groups on one host."""

from __future__ import annotations

import socket

import pytest

from msx_frontend.devices import hccl_ports as module
from msx_frontend.devices.accelerator import NoMorePortsError
from msx_frontend.devices.hccl_ports import hccl_ports


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever listens on this machine."""
    monkeypatch.setattr(module, "_free", lambda first, count: True)


def test_they_differ() -> None:
    assert hccl_ports(0, {}, shared=True) == {
        "HCCL_IF_BASE_PORT": "60000",
        "HCCL_NPU_SOCKET_PORT_RANGE": "16666-16729",
    }
    assert hccl_ports(2, {}, shared=True) == {
        "HCCL_IF_BASE_PORT": "60064",
        "HCCL_NPU_SOCKET_PORT_RANGE": "16794-16857",
    }


def test_groups_with_devices_of_their_own_have_the_devices_ports_to_themselves() -> None:
    assert hccl_ports(1, {}, shared=False) == {"HCCL_IF_BASE_PORT": "60032"}


@pytest.mark.parametrize(
    ("inherited", "ports"),
    [
        ({"HCCL_IF_BASE_PORT": "50000"}, {"HCCL_IF_BASE_PORT": "50032", "HCCL_NPU_SOCKET_PORT_RANGE": "16730-16793"}),
        ({"HCCL_HOST_SOCKET_PORT_RANGE": "auto"}, {"HCCL_NPU_SOCKET_PORT_RANGE": "16730-16793"}),
        ({"HCCL_NPU_SOCKET_PORT_RANGE": "auto"}, {"HCCL_IF_BASE_PORT": "60032"}),
    ],
)
def test_what_the_operator_has_chosen_stays(inherited: dict[str, str], ports: dict[str, str]) -> None:
    assert hccl_ports(1, inherited, shared=True) == ports


@pytest.mark.parametrize(("inherited", "blocks"), [({}, 173), ({"HCCL_IF_BASE_PORT": "65400"}, 4)])
def test_ports_end_at_65535(inherited: dict[str, str], blocks: int) -> None:
    last = hccl_ports(blocks - 1, inherited, shared=False)
    assert last is not None
    assert int(last["HCCL_IF_BASE_PORT"]) + 31 <= 65535
    with pytest.raises(NoMorePortsError, match=rf"\(HCCL_IF_BASE_PORT\) HCCL has ports for {blocks} worker groups"):
        hccl_ports(blocks, inherited, shared=False)


def test_ports_where_another_process_listens_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = int(other.getsockname()[1])
        first = min(port - 5, 65535 - 31)
        inherited = {"HCCL_IF_BASE_PORT": str(first)}
        assert hccl_ports(0, inherited, shared=False) is None
        operators = {**inherited, "HCCL_HOST_SOCKET_PORT_RANGE": "auto"}
        assert hccl_ports(0, operators, shared=False) == {}, "HCCL looks for a free one itself"
