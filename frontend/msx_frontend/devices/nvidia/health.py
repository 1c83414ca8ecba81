"""Whether a GPU is fit for models, by what NVML says of it.

As NVIDIA's device plugin for Kubernetes judges: an XID counts until the server starts anew, because nothing tells when
the card has recovered from it.
"""

import logging
from collections.abc import Iterable

from msx_frontend.devices.nvidia.gpus import NvidiaGpu, instance_of
from msx_frontend.devices.nvidia.messages import UNUSABLE, GpuFigures, Xid

log = logging.getLogger("msx.devices")

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs that programs cause: the card itself is well. NVIDIA's device plugin leaves out the same."""


class XidLog:
    """The first XID of each card or instance: those behind it follow from it."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, tuple[int, int] | None], int] = {}

    def add(self, xids: Iterable[Xid]) -> None:
        for uuid, number, instance in dict.fromkeys((xid.uuid, xid.number, instance_of(xid)) for xid in xids):
            if number in APPLICATION_XIDS:
                log.warning("GPU %s reports XID %d, which a program on it causes: it stays healthy", uuid, number)
            else:
                self._first.setdefault((uuid, instance), number)

    def find(self, device: NvidiaGpu) -> int | None:
        """The XID of its card, or of the instance; None where there was none."""
        numbers = (self._first.get((device.gpu, place)) for place in (None, device.instance))
        return next((number for number in numbers if number is not None), None)


def fault(figures: GpuFigures, xid: int | None) -> str:
    """Why no model may run on it, in a few words; "" where it is well."""
    if figures.error:
        return UNUSABLE.get(figures.error, "lost")
    if xid is not None:
        return f"XID {xid}"
    if figures.remap_failed:
        return "row remapping failed"
    return "row remapping pending" if figures.remap_pending else ""
