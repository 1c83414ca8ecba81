"""The devices that a plan may be made for, and where each number is from.

[1] conf/hardware_config.py of github.com/JiusiServe/light-llm-simulator: memory, cube peak in float16, bandwidth of the
    memory and between dies, of 910B2, 910B3, 910B4 and of a die of the A3 pod (910C).
[2] src/platform/platform_config/Ascend910B2C.ini of CANN's runtime (gitcode.com): 24 cores, 1800 MHz, cubes of
    16×16×16: 24 × 1.8e9 × 8192 = 353.9e12 operations a second, as [1] has it. Its 294.9 and 245.7 are 20 cores at
    1800 and at 1500 MHz.
[3] 3dnews.ru/1131049 on the Atlas 300I Duo: two chips, 96 GB, 408 GB/s and 280e12 int8 operations a second together.
"""

from __future__ import annotations

from typing import NamedTuple

from msx_core.cgroup import memory_limit
from msx_sdk.errors import HandlerLoadError

GIB = 1 << 30
CPU = "cpu"


class NpuPeaks(NamedTuple):
    """What MindSpore sees as one device. `memory` in bytes, `bandwidth` of it and `link` to another device of the same
    machine in bytes a second, `flops` of the cubes in 16 bits; None: not known. `doubt`: which number is not certain,
    and why."""

    memory: int
    bandwidth: float | None = None
    flops: float | None = None
    link: float | None = None
    doubt: str = ""

    @property
    def target(self) -> str:
        return "CPU" if self.flops is None else "Ascend"


_LINK = "the bandwidth between NPUs is from one source"

NPUS = {
    "910B1": NpuPeaks(64 * GIB, 1.6e12, 353.8e12, 196e9, "no source was found: these are the 910B2's numbers"),
    "910B2": NpuPeaks(64 * GIB, 1.6e12, 353.8e12, 196e9, _LINK),  # [1], [2]
    "910B3": NpuPeaks(64 * GIB, 1.6e12, 294.9e12, 196e9, _LINK),  # [1], [2]
    "910B4": NpuPeaks(32 * GIB, 0.8e12, 245.7e12, 32e9, _LINK),  # [1], [2]
    "910C": NpuPeaks(
        64 * GIB, 1.6e12, 353.8e12, 196e9,
        "a 910C has two dies, which are two devices each of these numbers; other sources say up to 400e12 "
        "operations a second for a die",
    ),  # [1]; techpowerup.com/335749: 780e12 and 3200 GB/s for both dies
    "310P": NpuPeaks(
        48 * GIB, 204e9, 70e12, None,
        "half of an Atlas 300I Duo, its float16 taken as half of int8; other cards have 24 GB a chip",
    ),  # [3]
}  # fmt: skip


def device_of(name: str) -> NpuPeaks:
    """Raises HandlerLoadError, which names the known ones."""
    if name.lower() == CPU:
        return NpuPeaks(memory_limit())
    found = {known.lower(): npu for known, npu in NPUS.items()}.get(name.lower().removeprefix("ascend"))
    if found is None:
        raise HandlerLoadError(f"--npu: {name!r} is not known; known are {', '.join((*NPUS, CPU))}")
    return found
