"""Chooses the accelerator of this machine. All accelerators are listed here."""

from collections.abc import Mapping, Sequence

from msx_frontend.devices.accelerator import Accelerator, Device
from msx_frontend.devices.ascend import Ascend
from msx_frontend.devices.none import NoAccelerator
from msx_frontend.devices.nvidia.accelerator import Nvidia

KNOWN: tuple[type[Accelerator], ...] = (Ascend, Nvidia)


def choose_accelerator(limit: int | None, env: Mapping[str, str]) -> tuple[Accelerator, Sequence[Device]]:
    """The first accelerator that has devices, with them; at most `limit`. Blocks, as `Accelerator.detect` does."""
    for kind in KNOWN:
        accelerator = kind(limit, env)
        if devices := accelerator.detect():
            return accelerator, devices
    return NoAccelerator(), ()


def accelerator_of(resource: str) -> type[Accelerator]:
    """The accelerator that Ray calls so; NoAccelerator for another name."""
    return next((kind for kind in KNOWN if kind.resource == resource), NoAccelerator)


def resources_of_devices() -> list[str]:
    """Ray's names of the devices, in the order of preference."""
    return [kind.resource for kind in KNOWN]


def visible_variables() -> frozenset[str]:
    """The variables of all accelerators: workers inherit none of them, whichever was chosen."""
    return frozenset(kind.visible for kind in KNOWN)
