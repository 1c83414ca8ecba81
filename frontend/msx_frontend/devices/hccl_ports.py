"""Ports for the HCCL of several worker groups on one host: each group has a block of its own.

HCCL listens on the host from HCCL_IF_BASE_PORT on, and on each device within HCCL_NPU_SOCKET_PORT_RANGE; without these
variables all groups would take CANN's defaults. The devices' own ports matter only to groups that share devices.
"""

import socket
from collections.abc import Mapping

from msx_frontend.devices.accelerator import NoMorePortsError

HOST, NPU = "HCCL_IF_BASE_PORT", "HCCL_NPU_SOCKET_PORT_RANGE"
HOST_RANGE = "HCCL_HOST_SOCKET_PORT_RANGE"
"""Takes precedence over HOST; CANN recommends it, or NPU, where several processes use one device."""

_HOST_BASE, _HOST_PORTS = 60000, 32
"""CANN's default, and how many ports it takes from there on."""
_NPU_BASE, _NPU_PORTS = 16666, 64
"""CANN's default, and at least as many ports as HCCL has processes on one device."""
_LAST_PORT = 65535


def hccl_ports(block: int, inherited: Mapping[str, str], *, shared: bool) -> dict[str, str] | None:
    """Variables of the group that has the `block`-th part of the ports; what the operator has chosen is left alone.

    `shared`: other groups may be on its devices. None where a process of this host listens on one of the ports. Raises
    NoMorePortsError.
    """
    ports: dict[str, str] = {}
    if HOST_RANGE not in inherited:
        first = _first_port(HOST, _host_base(inherited), _HOST_PORTS, block)
        if not _free(first, _HOST_PORTS):
            return None
        ports[HOST] = str(first)
    if shared and NPU not in inherited:
        first = _first_port(NPU, _NPU_BASE, _NPU_PORTS, block)
        ports[NPU] = f"{first}-{first + _NPU_PORTS - 1}"
    return ports


def _host_base(inherited: Mapping[str, str]) -> int:
    base = inherited.get(HOST, "")
    return int(base) if base.isdecimal() else _HOST_BASE


def _first_port(variable: str, base: int, ports: int, block: int) -> int:
    first = base + block * ports
    if first + ports - 1 > _LAST_PORT:
        blocks = max((_LAST_PORT + 1 - base) // ports, 0)
        raise NoMorePortsError(
            f"from port {base} on ({variable}) HCCL has ports for {blocks} worker group{'' if blocks == 1 else 's'} "
            f"on this host, {ports} for each"
        )
    return first


def _free(first: int, count: int) -> bool:
    return all(map(_can_listen, range(first, first + count)))


def _can_listen(port: int) -> bool:
    """Ports of connections that have ended (TIME_WAIT) count as free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
