"""Ports for the collectives of worker groups: each group has a block of its own while it has its lease."""

from collections.abc import Collection, Mapping
from itertools import count
from typing import NamedTuple

from msx_frontend.devices.accelerator import Accelerator, NoMorePortsError
from msx_frontend.devices.errors import NoPortsError, PortsHeldError


class PortBlock(NamedTuple):
    number: int | None = None
    """None for a worker without collectives."""
    environment: Mapping[str, str] = {}
    """Variables that make a rank use these ports."""


def free_block(accelerator: Accelerator, model_key: str, taken: Collection[int | None], *, shared: bool) -> PortBlock:
    """The first block that neither a group nor another process has. Raises PortsHeldError, or NoPortsError."""
    for number in count():  # ends with the accelerator's last block
        if number in taken:
            continue
        try:
            ports = accelerator.collective_ports(number, shared=shared)
        except NoMorePortsError as error:
            raise (PortsHeldError if number else NoPortsError)(model_key, str(error)) from error
        if ports is not None:
            return PortBlock(number, ports)
    raise AssertionError
