"""Chooses the accelerator of this machine. All accelerators are listed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msx_frontend.devices.accelerator import Accelerator, Device
from msx_frontend.devices.ascend import Ascend
from msx_frontend.devices.none import NoAccelerator


def choose_accelerator(number_of_npu: int | None, env: Mapping[str, str]) -> tuple[Accelerator, Sequence[Device]]:
    """The first accelerator that has devices, with them. Blocks, as `Accelerator.detect` does."""
    known: Sequence[Accelerator] = (Ascend(number_of_npu, env),)
    for accelerator in known:
        if devices := accelerator.detect():
            return accelerator, devices
    return NoAccelerator(frozenset().union(*(one.variables for one in known))), ()
