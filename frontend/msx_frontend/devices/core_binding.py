"""Which cores a rank runs on: those of the NUMA node that its device is attached to (`bind_cores`, `bindCores`)."""

import logging
import os
from collections.abc import Sequence

from msx_frontend.devices.accelerator import Device

log = logging.getLogger("msx.devices")


def near_cores(model_key: str, devices: Sequence[Device]) -> tuple[int, ...]:
    """The cores near any of a rank's devices that this server may use, ascending; empty, with a warning, for none.

    What the server may use follows its own affinity and the cpuset of its cgroup.
    """
    near = frozenset().union(*(device.cores for device in devices))
    cores = tuple(sorted(near & _usable()))
    if not cores:
        names = ", ".join(device.id for device in devices)
        why = "this server may use none of the cores near" if near else "it is not known which cores are near"
        log.warning("%s is not bound to cores (bindCores): %s device %s", model_key, why, names)
    return cores


def _usable() -> frozenset[int]:
    try:
        return frozenset(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return frozenset()
