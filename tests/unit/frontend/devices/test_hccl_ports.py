"""The ports of groups that share devices."""

from __future__ import annotations

import pytest

from msx_frontend.devices.hccl_ports import hccl_ports


def test_they_differ() -> None:
    assert hccl_ports(0, {}) == {"HCCL_IF_BASE_PORT": "60000", "HCCL_NPU_SOCKET_PORT_RANGE": "16666-16729"}
    assert hccl_ports(2, {}) == {"HCCL_IF_BASE_PORT": "60064", "HCCL_NPU_SOCKET_PORT_RANGE": "16794-16857"}


@pytest.mark.parametrize(
    ("inherited", "ports"),
    [
        ({"HCCL_IF_BASE_PORT": "50000"}, {"HCCL_IF_BASE_PORT": "50032", "HCCL_NPU_SOCKET_PORT_RANGE": "16730-16793"}),
        ({"HCCL_HOST_SOCKET_PORT_RANGE": "auto"}, {"HCCL_NPU_SOCKET_PORT_RANGE": "16730-16793"}),
        ({"HCCL_NPU_SOCKET_PORT_RANGE": "auto"}, {"HCCL_IF_BASE_PORT": "60032"}),
    ],
)
def test_what_the_operator_has_chosen_stays(inherited: dict[str, str], ports: dict[str, str]) -> None:
    assert hccl_ports(1, inherited) == ports
