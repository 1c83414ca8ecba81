"""HCCL's ports of groups that share devices, which must differ: it listens at the same ones otherwise."""

from __future__ import annotations

from collections.abc import Mapping

HOST, NPU = "HCCL_IF_BASE_PORT", "HCCL_NPU_SOCKET_PORT_RANGE"
HOST_RANGE = "HCCL_HOST_SOCKET_PORT_RANGE"
"""Beats HOST; CANN recommends it, or NPU, where several processes use one device."""

_HOST_BASE, _HOST_PORTS = 60000, 32
"""CANN's default, and how many it takes from there on."""
_NPU_BASE, _NPU_PORTS = 16666, 64
"""Likewise; as many as HCCL processes on one device at least."""


def hccl_ports(block: int, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables of the group that has the `block`-th part of the ports; what the operator has chosen is left alone."""
    base = inherited.get(HOST, "")
    host = (int(base) if base.isdecimal() else _HOST_BASE) + block * _HOST_PORTS
    first = _NPU_BASE + block * _NPU_PORTS
    ports = {} if HOST_RANGE in inherited else {HOST: str(host)}
    return ports if NPU in inherited else {**ports, NPU: f"{first}-{first + _NPU_PORTS - 1}"}
